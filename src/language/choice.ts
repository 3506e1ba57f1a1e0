// Splits an option into words, and maps the words of an utterance to label words. A spoken word may be inflected ("das
// rote"), clipped ("doppel" for "Doppelzimmer") or split ("regional zug").

import type { AnswerOption } from './match.ts';
import type { Tables, Words } from './tables.ts';
import { readUtterance, wordsOf, type Utterance } from './utterance.ts';

/** An option, split into words. */
export interface Choice {
  readonly option: AnswerOption;
  readonly label: Words;
  /** The words of the label and the description that do not occur in every option. */
  readonly content: Words;
}

export function choicesOf(options: readonly AnswerOption[], tables: Tables): readonly Choice[] {
  return options.map((option) => {
    const { label, description = '' } = option;
    const said = readUtterance(`${label}\n${description}`, tables.language);
    return {
      option,
      label: wordsOf(label, tables.language),
      content: contentOf(said, tables).map((index) => said.words[index] as string),
    };
  });
}

/** Returns whether a word does not help to identify an option: politeness, hesitation, "I'd like the … one". */
export function isSlight(
  { words, proforms }: Utterance,
  { frame, noise }: Tables,
  index: number,
): boolean {
  const word = words[index] ?? '';
  return proforms.has(index) || frame.has(word) || noise.has(word);
}

/** Returns the indexes of the words that help to identify an option. */
export function contentOf(said: Utterance, tables: Tables): readonly number[] {
  return [...said.words.keys()].filter((index) => !isSlight(said, tables, index));
}

/** The minimum length of a clipped word; a shorter one would be the beginning of too many words. */
const MIN_CLIPPED_CHARS = 4;
/** A clipped word must lack at least this many letters, so that "Basis" does not stand for "Basiss". */
const MIN_LEFT_OUT_CHARS = 3;

/** The label words, and a cache from each spoken word to its label word. */
interface LabelWords {
  readonly all: ReadonlySet<string>;
  readonly meant: Map<string, string>;
}

const labelWords = new WeakMap<readonly Choice[], LabelWords>();

function labelWordsOf(choices: readonly Choice[]): LabelWords {
  const known = labelWords.get(choices);
  if (known) return known;
  const made = { all: new Set(choices.flatMap(({ label }) => label)), meant: new Map() };
  labelWords.set(choices, made);
  return made;
}

/**
 * Returns the label word that this word stands for. Returns the word itself if it could stand for several label words
 * or for none.
 */
export function labelWord(word: string, choices: readonly Choice[], tables: Tables): string {
  const { all, meant } = labelWordsOf(choices);
  const known = meant.get(word);
  if (known !== undefined) return known;
  const found = findLabelWord(word, all, tables);
  meant.set(word, found);
  return found;
}

function findLabelWord(word: string, all: ReadonlySet<string>, { language }: Tables): string {
  if (all.has(word)) return word;
  for (const ending of language.inflections) {
    const stem = word.endsWith(ending) ? word.slice(0, -ending.length) : '';
    if (all.has(stem)) return stem;
    if (all.has(word + ending)) return word + ending;
  }
  if (word.length < MIN_CLIPPED_CHARS) return word;
  const longer = [...all].filter((one) => one.startsWith(word));
  const [only] = longer;
  const isClipped = only !== undefined && only.length - word.length >= MIN_LEFT_OUT_CHARS;
  return longer.length === 1 && isClipped ? only : word;
}

/** Returns the utterance with each word replaced by the label word that it stands for. */
export function asLabelled(said: Utterance, choices: readonly Choice[], tables: Tables): Utterance {
  const { all } = labelWordsOf(choices);
  const words: string[] = [];
  const proforms = new Set<number>();
  const breaks = new Set<number>();
  for (let index = 0; index < said.words.length; index += 1) {
    const whole = `${said.words[index]}${said.words[index + 1] ?? ''}`;
    const isApart = index + 1 < said.words.length && all.has(whole);
    if (said.proforms.has(index)) proforms.add(words.length);
    words.push(isApart ? whole : labelWord(said.words[index] as string, choices, tables));
    if (isApart) index += 1;
    if (said.breaks.has(index)) breaks.add(words.length - 1);
  }
  return { ...said, words, proforms, breaks };
}
