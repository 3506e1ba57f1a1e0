// Recognises replies that only acknowledge an answer ("Premium. One moment, please."). Such a reply repeats the answer
// or asks for a moment; it does not promise, claim or ask for anything.
//
// Owns:     the recognition. The phrases are in the tables of each language.
// Does not: know who is speaking.

import type { AnswerLanguage } from './language.ts';
import { languageFor } from './languages.ts';
import { phraseAt, type Phrases } from './tables.ts';
import { readUtterance, wordsOf } from './utterance.ts';

/** The answer that a reply may acknowledge. */
export interface AcknowledgedAnswer {
  /** The label of the chosen option; null if the user chose none. */
  readonly choice: string | null;
  readonly isApproval: boolean;
  /** Set if the user asked for time, or asked to hear the question again, instead of answering. */
  readonly asksFor?: 'time' | 'repeat';
  /** A tag such as `en-GB`. In an unknown language, no reply is recognised. */
  readonly language: string;
}

const made = new WeakMap<
  AnswerLanguage,
  Readonly<Record<'moments' | 'times' | 'agreed', Phrases>>
>();

/**
 * Returns `whole` if the text only acknowledges this answer, and `beginning` if more words could turn it into such a
 * text. A question is never an acknowledgement.
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
      // The last word may be incomplete too.
      const rest = words.slice(index).join(' ');
      const isBeginning = phrases.some((phrase) => phrase.join(' ').startsWith(rest));
      return !asks && isBeginning ? 'beginning' : 'none';
    }
    index += length;
  }
  return 'whole';
}
