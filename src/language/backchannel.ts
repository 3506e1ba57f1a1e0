// Recognises backchannels, the sounds and words with which a listener shows attention ("mm-hm", "okay", "right") while
// the speaker goes on. Whether a word is a backchannel also depends on when it is said; this module reads only the words.
//
// Owns:     the sounds; the tables of each language hold the words.
// Does not: know the speaker, or whether a question is open (then "okay" is an answer).

import type { AnswerLanguage } from './language.ts';
import { languageFor } from './languages.ts';
import { phraseAt, standsAt, type Phrases } from './tables.ts';
import { readUtterance, wordsOf } from './utterance.ts';

/** Sounds of any language that are not words and answer nothing. */
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
 * Returns `whole` if the text consists only of backchannels, and `beginning` if the complete utterance still may. `language`:
 * a tag such as `en-GB`; in an unknown language only sounds are recognised. A question ("right?") is not a backchannel.
 */
export function backchannelIn(text: string, language = 'en'): 'whole' | 'beginning' | 'none' {
  return listensIn(text, language, 'backchannels');
}

/** Returns whether a text consists of sounds that are not words ("mm"); like `backchannelIn`. */
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
