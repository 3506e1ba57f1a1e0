// Replies that only acknowledge an answer ("Premium. One moment, please."): they repeat it and ask for a moment,
// and promise, claim or ask nothing.
//
// Owns:     the reading; the words of a language are in its tables.
// Does not: know who says them.

import type { AnswerLanguage } from './language.ts';
import { languageFor } from './languages.ts';
import { phraseAt, type Phrases } from './tables.ts';
import { readUtterance, wordsOf } from './utterance.ts';

/** What was answered, and in which language. */
export interface AcknowledgedAnswer {
  /** The label of the option that was chosen; null: none. */
  readonly choice: string | null;
  readonly isApproval: boolean;
  /** It was no answer: the user asked for time, or to hear the question again. */
  readonly asksFor?: 'time' | 'repeat';
  /** A tag such as `en-GB`; nothing counts in an unknown language. */
  readonly language: string;
}

const made = new WeakMap<
  AnswerLanguage,
  Readonly<Record<'moments' | 'times' | 'agreed', Phrases>>
>();

/**
 * Tells whether a text only acknowledges this answer. `beginning`: not yet, but it may become so, as the beginning
 * of an unfinished reply. A question is none.
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
      // The last word may be incomplete, too.
      const rest = words.slice(index).join(' ');
      const isBeginning = phrases.some((phrase) => phrase.join(' ').startsWith(rest));
      return !asks && isBeginning ? 'beginning' : 'none';
    }
    index += length;
  }
  return 'whole';
}
