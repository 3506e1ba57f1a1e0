// Finds the option whose label nearly matches the utterance, to allow for typing and recognition errors.

import { contentOf, type Choice } from './choice.ts';
import { similarity } from './similarity.ts';
import type { Tables } from './tables.ts';
import type { Utterance } from './utterance.ts';

/**
 * The minimum similarity at which an utterance counts as naming an option. Tuned with real transcripts (see the tests).
 */
export const minSimilarity = 0.6;

/** The minimum similarity if only letters or only sounds are compared. */
const minOneSide = 0.75;

/** The minimum difference in similarity between the best option and the next one. */
const minLead = 0.12;

/** The minimum length of a name, because shorter names resemble too many words. */
const minLength = 3;

/** The maximum length of a name in an utterance, in words. */
const maxWords = 10;

export interface NearestOption {
  readonly best: Choice;
  /** Other options that are about as similar. */
  readonly rivals: readonly Choice[];
  readonly how: 'spelling' | 'sound';
  readonly score: number;
}

interface Nearness {
  readonly choice: Choice;
  readonly score: number;
  readonly letters: number;
  readonly sound: number;
}

/** Returns whether no other label contains the word. */
function isOnlyIn(word: string, choice: Choice, choices: readonly Choice[]): boolean {
  return choices.every((other) => other === choice || !other.label.includes(word));
}

export function nearestOption(
  choices: readonly Choice[],
  said: Utterance,
  tables: Tables,
): NearestOption | null {
  if (tables.language.sounds.length === 0) return null;
  const spans = spansOf(said, tables);
  const [best, ...others] = choices
    .map((choice) => nearness(choice, spans, tables))
    .toSorted((a, b) => b.score - a.score);
  if (!best || best.score < minSimilarity) return null;
  if (Math.max(best.letters, best.sound) < minOneSide) return null;
  // "Black coffee" is not "black cab", and "any cab" is not "minicab".
  const words = contentOf(said, tables).map((index) => said.words[index] as string);
  const { label } = best.choice;
  const left = words.filter((word) => !label.includes(word));
  const missing = label.filter((word) => !words.includes(word));
  if (left.some((word) => choices.some((choice) => choice.label.includes(word)))) return null;
  const isPart =
    left.length > 0 &&
    words.some((word) => label.includes(word) && isOnlyIn(word, best.choice, choices));
  if (
    isPart &&
    similarity(left.join(''), missing.join(''), tables.language).overall < minSimilarity
  )
    return null;
  return {
    best: best.choice,
    rivals: others.filter(({ score }) => best.score - score < minLead).map(({ choice }) => choice),
    how: best.letters >= minOneSide ? 'spelling' : 'sound',
    score: best.score,
  };
}

/** Returns the candidates for a name: the utterance without the words that carry no meaning. */
function spansOf(said: Utterance, tables: Tables): readonly string[] {
  const { words } = said;
  const isThinking = (word: string): boolean => tables.thinking.has(word);
  const begin = words.findIndex((word) => !isThinking(word));
  const to = words.findLastIndex((word) => !isThinking(word)) + 1;
  if (to - begin > maxWords || words.every((word) => tables.noise.has(word))) return [];
  const content = contentOf(said, tables);
  // If no word carries a meaning, the whole utterance is the only candidate.
  const first = content[0] ?? begin;
  const last = content.at(-1) ?? to - 1;
  const spans: string[] = [];
  for (let start = begin; start <= first; start += 1) {
    for (let end = last + 1; end <= to; end += 1) {
      const span = words.slice(start, end).join('');
      if (span.length >= minLength) spans.push(span);
    }
  }
  return spans;
}

function nearness(choice: Choice, spans: readonly string[], { language }: Tables): Nearness {
  const name = choice.label.join('');
  let nearest: Nearness = { choice, score: 0, letters: 0, sound: 0 };
  if (name.length < minLength) return nearest;
  for (const span of spans) {
    // A different number, or an opposite, never counts as similar.
    if (digitsOf(span) !== digitsOf(name)) continue;
    const isOpposite = language.negativePrefixes.some(
      (prefix) => span === prefix + name || name === prefix + span,
    );
    if (isOpposite) continue;
    const { letters, sound, overall } = similarity(span, name, language);
    if (overall > nearest.score) nearest = { choice, score: overall, letters, sound };
  }
  return nearest;
}

function digitsOf(text: string): string {
  return text.replace(/[^\p{Nd}]+/gu, ' ').trim();
}
