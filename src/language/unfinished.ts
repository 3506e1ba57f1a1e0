// Recognises from the words alone that a speaker has not finished: the text breaks off ("book me a ride to"), or only
// thinks aloud ("um"). Each language lists words that seldom end a sentence; this is right far more often than a speech
// recogniser's punctuation, which puts a full stop after most sentences that break off.
//
// Owns:     the reading of the words.
// Does not: know how long to wait for more, or which question is open.

import { backchannelIn } from './backchannel.ts';
import { languageFor } from './languages.ts';
import { standsAt, tablesOf, type Phrases, type Words } from './tables.ts';
import { readUtterance } from './utterance.ts';

/**
 * Returns whether the speaker of this text will probably continue. `language`: a tag such as `en-GB`; a text in an
 * unknown language is always considered finished, and so is a question.
 */
export function isUnfinished(text: string, language = 'en'): boolean {
  const tables = tablesOf(languageFor(language));
  const { words, asks } = readUtterance(text, tables.language);
  if (words.length === 0 || asks) return false;
  if (words.every((word) => tables.fillers.has(word))) return true;
  const last = words.at(-1) as string;
  const { unfinished, holds, commands, repeats, repeatsAlone } = tables.phrases;
  const breaksOff =
    tables.fillers.has(last) || unfinished.some((phrase) => endsWith(words, phrase));
  if (!breaksOff) return false;
  // "Hold on" and "go on" are complete, although more words often follow "on".
  const whole: Phrases = [...holds, ...commands, ...repeats, ...repeatsAlone];
  const isWhole = (phrase: Words): boolean =>
    endsWith(words, phrase) && (phrase.length > 1 || words.length === 1);
  return !whole.some(isWhole) && backchannelIn(text, language) !== 'whole';
}

function endsWith(words: Words, phrase: Words): boolean {
  return phrase.length <= words.length && standsAt(words, words.length - phrase.length, phrase);
}
