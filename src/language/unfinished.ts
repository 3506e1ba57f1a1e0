// Recognises by the words alone that a speaker has not finished: the text breaks off ("book me a ride to"), or only
// thinks aloud ("um"). It uses a list of last words per language, which is right far more often than the punctuation of
// a speech recogniser: that puts a full stop after most sentences that break off.
//
// Owns:     the reading of the words. It does not know how long to wait for more, or which question is open.

import { backchannelIn } from './backchannel.ts';
import { languageFor } from './languages.ts';
import { standsAt, tablesOf, type Phrases, type Words } from './tables.ts';
import { readUtterance } from './utterance.ts';

/**
 * Returns whether the speaker of this text will probably continue. `language`: a tag such as `en-GB`; a text in an
 * unknown language always counts as finished, and so does a question.
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
  // "Hold on", "go on": the phrase is complete, although its last word often precedes more words.
  const whole: Phrases = [...holds, ...commands, ...repeats, ...repeatsAlone];
  const isWhole = (phrase: Words): boolean =>
    endsWith(words, phrase) && (phrase.length > 1 || words.length === 1);
  return !whole.some(isWhole) && backchannelIn(text, language) !== 'whole';
}

function endsWith(words: Words, phrase: Words): boolean {
  return phrase.length <= words.length && standsAt(words, words.length - phrase.length, phrase);
}
