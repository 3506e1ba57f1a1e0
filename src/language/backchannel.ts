// Backchannels, the sounds and words by which a listener shows attention ("mm-hm", "okay", "right"): they
// take no turn, and the speaker continues. Whether a word is meant so also depends on its moment; this module
// reads only the words.
//
// Owns:     the words, by language.
// Does not: know the speaker, or whether a question is open (then "okay" is an answer).

import { languageFor } from './languages.ts';
import { phraseAt, standsAt, type Phrases } from './tables.ts';
import { readUtterance, wordsOf } from './utterance.ts';

/** Backchannels of every language. */
const sounds = 'mm, mmm, hm, hmm, mhm, mm-hm, mm-hmm, uh-huh, ah, aha, oh, okay';
/** Sounds that mean no. */
const denials = 'mm-mm';

const byLanguage: Readonly<Record<string, string>> = {
  en:
    'ooh, yeah, yes, yep, yup, right, sure, alright, all right, i see, got it, gotcha, good, ' +
    'great, nice, cool, fine, wow, true, exactly, of course, makes sense, that makes sense, ' +
    'go on, very good, sounds good',
  de:
    'ja, jo, jap, genau, klar, stimmt, richtig, gut, sehr gut, schön, verstehe, ich verstehe, ' +
    'ach so, achso, alles klar, in ordnung, natürlich',
  fr:
    "oui, ouais, d'accord, je vois, bien, très bien, bien sûr, voilà, exactement, c'est ça, " +
    'entendu, je comprends, parfait',
  es:
    'ajá, sí, vale, claro, ya, ya veo, bueno, bien, muy bien, exacto, de acuerdo, entiendo, ' +
    'por supuesto, perfecto',
};

const made = new Map<string, { readonly phrases: Phrases; readonly denials: Phrases }>();

/**
 * Tells whether a text consists of backchannels only. `beginning`: not yet, but it may become so, as the
 * beginning of an unfinished utterance. `language`: a tag such as `en-GB`; for an unknown language only
 * sounds are recognized. A question ("right?") is no backchannel.
 */
export function backchannelIn(text: string, language = 'en'): 'whole' | 'beginning' | 'none' {
  const answers = languageFor(language);
  const { code } = answers;
  const phrasesOf = (list: string): Phrases =>
    list.split(', ').map((phrase) => wordsOf(phrase, answers));
  let tables = made.get(code);
  if (!tables) {
    const phrases = [...phrasesOf(sounds), ...phrasesOf(byLanguage[code] ?? sounds)];
    tables = { phrases, denials: phrasesOf(denials) };
    made.set(code, tables);
  }
  const { words, asks } = readUtterance(text, answers);
  if (words.length === 0) return text.trim() === '' ? 'beginning' : 'none';
  let index = 0;
  while (index < words.length) {
    if (asks || phraseAt(words, index, tables.denials) > 0) return 'none';
    const length = phraseAt(words, index, tables.phrases);
    if (length === 0) {
      const rest = words.slice(index);
      const isBeginning = tables.phrases.some((phrase) => standsAt(phrase, 0, rest));
      return isBeginning ? 'beginning' : 'none';
    }
    index += length;
  }
  return 'whole';
}
