// Recognises replies that only acknowledge an answer ("Premium. One moment, please."): they repeat the answer, ask for
// a moment, and neither promise, claim nor ask anything.
//
// Owns:     the reading; the tables of a language hold its words.
// Does not: know who says the words.

import type { AnswerLanguage } from './language.ts';
import { languageFor } from './languages.ts';
import { phraseAt, type Phrases } from './tables.ts';
import { readUtterance, wordsOf } from './utterance.ts';

/** The answer that a reply may acknowledge. */
export interface AcknowledgedAnswer {
  /** The label of the chosen option; null if the answer is no choice. */
  readonly choice: string | null;
  readonly isApproval: boolean;
  /** Set if the words were no answer: the user asked for time, or to hear the question again. */
  readonly asksFor?: 'time' | 'repeat';
  /** A tag such as `en-GB`; in an unknown language no reply is recognised. */
  readonly language: string;
}

const made = new WeakMap<
  AnswerLanguage,
  Readonly<Record<'moments' | 'times' | 'agreed', Phrases>>
>();

/**
 * Returns whether a text only acknowledges this answer. `beginning`: the text does not so far, but may when it is
 * complete. A question never does.
 */
export function acknowledgementIn(
  text: string,
  { choice, isApproval, asksFor, language }: AcknowledgedAnswer,
): 'whole' | 'beginning' | 'none' {
  const answers = languageFor(language);
  const phrasesOf = (list: readonly string[]): Phrases =>
    list.map((phrase) => wordsOf(phrase, answers));
  let tables = made.get(answers);
  if (!tables) {
    tables = {
      moments: phrasesOf(answers.moments),
      times: phrasesOf(answers.patience),
      agreed: phrasesOf(answers.agreements),
    };
    made.set(answers, tables);
  }
  const label = choice === null || isApproval ? [] : [wordsOf(choice, answers)];
  const phrases = asksFor
    ? [...(asksFor === 'time' ? tables.times : []), ...tables.agreed]
    : isApproval
      ? tables.moments
      : [...tables.moments, ...tables.agreed, ...label];
  const { words, asks } = readUtterance(text, answers);
  if (words.length === 0) return text.trim() === '' ? 'beginning' : 'none';
  let index = 0;
  while (index < words.length) {
    const length = asks ? 0 : phraseAt(words, index, phrases);
    if (length === 0) {
      // The last word may be incomplete as well.
      const rest = words.slice(index).join(' ');
      const isBeginning = phrases.some((phrase) => phrase.join(' ').startsWith(rest));
      return !asks && isBeginning ? 'beginning' : 'none';
    }
    index += length;
  }
  return 'whole';
}
