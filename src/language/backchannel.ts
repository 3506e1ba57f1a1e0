// Recognises backchannels: the sounds and words with which a listener shows attention ("mm-hm", "okay", "right") while
// the speaker continues. Whether a word is a backchannel also depends on its timing, which this module does not
// consider. It also recognises that a speaker has not finished: the text breaks off ("book me a ride to") or is a
// hesitation ("um"). Each language lists words that seldom end a sentence. Such a list is far more reliable than the
// punctuation of a speech recogniser, which puts a full stop after most unfinished sentences.
//
// Owns:     the sounds; each language's tables contain the words.
// Does not: know the speaker, or whether a question is open (in which case "okay" is an answer).

import type { AnswerLanguage } from './language.ts';
import { languageFor } from './languages.ts';
import {
  phraseAt,
  standsAt,
  tablesOf as languageTables,
  type Phrases,
  type Words,
} from './tables.ts';
import { readUtterance, wordsOf } from './utterance.ts';

/** Sounds that are neither words nor answers in any language. */
const hums = 'mm, mmm, hm, hmm, mhm, mm-hm, mm-hmm, uh-huh, ah, aha, oh'.split(', ');
/** A sound that means no. */
const denial = 'mm-mm';

interface Tables {
  readonly backchannels: Phrases;
  readonly hums: Phrases;
  readonly denials: Phrases;
}

const made = new WeakMap<AnswerLanguage, Tables>();

/**
 * Returns `whole` if the text consists only of backchannels, and `beginning` if more words could turn it into one.
 * `language`: a tag such as `en-GB`. In an unknown language, only sounds are recognised. A question ("right?") is not a
 * backchannel.
 */
export function backchannelIn(text: string, language = 'en'): 'whole' | 'beginning' | 'none' {
  return listensIn(text, language, 'backchannels');
}

/** Returns whether a text consists of sounds that are not words ("mm"); the parameters are those of `backchannelIn`. */
export function humIn(text: string, language = 'en'): 'whole' | 'beginning' | 'none' {
  return listensIn(text, language, 'hums');
}

function listensIn(
  text: string,
  language: string,
  kind: 'backchannels' | 'hums',
): 'whole' | 'beginning' | 'none' {
  const answers = languageFor(language);
  const phrasesOf = (list: readonly string[]): Phrases =>
    list.map((phrase) => wordsOf(phrase, answers));
  let tables = made.get(answers);
  if (!tables) {
    tables = {
      backchannels: phrasesOf([...hums, 'okay', ...answers.backchannels]),
      hums: phrasesOf(hums),
      denials: phrasesOf([denial]),
    };
    made.set(answers, tables);
  }
  const known = tables[kind];
  const { words, asks } = readUtterance(text, answers);
  if (words.length === 0) return text.trim() === '' ? 'beginning' : 'none';
  let index = 0;
  while (index < words.length) {
    if (asks || phraseAt(words, index, tables.denials) > 0) return 'none';
    const length = phraseAt(words, index, known);
    if (length === 0) {
      const rest = words.slice(index);
      const isBeginning = known.some((phrase) => standsAt(phrase, 0, rest));
      return isBeginning ? 'beginning' : 'none';
    }
    index += length;
  }
  return 'whole';
}

/**
 * Returns whether the speaker of this text will probably continue. `language`: a tag such as `en-GB`. A question, and
 * any text in an unknown language, is considered finished.
 */
export function isUnfinished(text: string, language = 'en'): boolean {
  const tables = languageTables(languageFor(language));
  const { words, asks } = readUtterance(text, tables.language);
  if (words.length === 0 || asks) return false;
  if (words.every((word) => tables.fillers.has(word))) return true;
  const last = words.at(-1) as string;
  const { unfinished, holds, commands, repeats, repeatsAlone } = tables.phrases;
  const breaksOff =
    tables.fillers.has(last) || unfinished.some((phrase) => endsWith(words, phrase));
  if (!breaksOff) return false;
  // "Hold on" and "go on" are complete, although most texts that end in "on" are not.
  const whole: Phrases = [...holds, ...commands, ...repeats, ...repeatsAlone];
  const isWhole = (phrase: Words): boolean =>
    endsWith(words, phrase) && (phrase.length > 1 || words.length === 1);
  return !whole.some(isWhole) && backchannelIn(text, language) !== 'whole';
}

function endsWith(words: Words, phrase: Words): boolean {
  return phrase.length <= words.length && standsAt(words, words.length - phrase.length, phrase);
}
