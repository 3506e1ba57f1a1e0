// What is said beside an answer: asking for time, asking to hear it again, and what is
// meant for the lead agent. The rules are few and only fire on listed beginnings, since
// a wrong guess takes the user's answer away from the one who asked.

import { findPhrase, phraseAt, sameWords, type Phrases, type Tables } from './tables.ts';
import type { Utterance } from './utterance.ts';

/**
 * Asks for time. `whole`: nothing but that, or that with a reason ("hold on, I need to look").
 * `anywhere`: that is in it at all, in words that `isFree`. Thinking aloud is only one if
 * nothing else is said.
 */
export function isHold(
  { words }: Utterance,
  { phrases, noise, hesitations, thinking }: Tables,
  extent: 'whole' | 'anywhere',
  isFree?: (index: number) => boolean,
): boolean {
  if (extent === 'anywhere') {
    if (phrases.holds.some((phrase) => findPhrase(words, phrase, isFree).length > 0)) return true;
  }
  let asked =
    words.some((word) => hesitations.has(word)) && words.every((word) => thinking.has(word));
  for (let index = 0; index < words.length;) {
    const length = phraseAt(words, index, [...phrases.holds, ...phrases.musings]);
    if (length === 0 && !noise.has(words[index] as string)) {
      return asked && phraseAt(words, index, phrases.holdReasons) > 0;
    }
    asked ||= length > 0;
    index += Math.max(1, length);
  }
  return asked;
}

/** Wants to hear the question again. */
export function wantsRepeat(utterance: Utterance, tables: Tables): boolean {
  const { repeats, repeatsAlone } = tables.phrases;
  const plain = utterance.words.filter((word) => !tables.thinking.has(word));
  return (
    starts(utterance, tables, repeats) || repeatsAlone.some((phrase) => sameWords(phrase, plain))
  );
}

/** Begins like something for the lead agent. */
export function startsDigression(utterance: Utterance, tables: Tables): boolean {
  return starts(utterance, tables, tables.phrases.digressionStarts);
}

/** Begins like a question, and not like a choice ("how about …"). */
export function startsQuestion(utterance: Utterance, tables: Tables): boolean {
  const { questionStarts, requestStarts } = tables.phrases;
  return starts(utterance, tables, questionStarts) && !starts(utterance, tables, requestStarts);
}

/** Wants to be rid of the question, and says nothing else. */
export function isCommand(utterance: Utterance, tables: Tables): boolean {
  const start = beginning(utterance, tables);
  const length = phraseAt(utterance.words, start, tables.phrases.commands);
  const rest = utterance.words.slice(start + length);
  return length > 0 && rest.every((word) => tables.noise.has(word));
}

function starts(utterance: Utterance, tables: Tables, phrases: Phrases): boolean {
  return phraseAt(utterance.words, beginning(utterance, tables), phrases) > 0;
}

/** Where the utterance begins, after politeness and hesitation. */
function beginning({ words }: Utterance, { noise }: Tables): number {
  const index = words.findIndex((word) => !noise.has(word));
  return index === -1 ? words.length : index;
}
