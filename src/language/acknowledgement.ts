// Replies that only acknowledge an answer ("Premium. One moment, please."): they repeat it and ask for a moment,
// and promise, claim or ask nothing.
//
// Owns:     the words, by language.
// Does not: know who says them.

import { languageFor } from './languages.ts';
import { phraseAt, type Phrases } from './tables.ts';
import { readUtterance, wordsOf } from './utterance.ts';

/** Requests for a moment: all that may be said to an approval. */
const moments: Readonly<Record<string, string>> = {
  en:
    'one moment, one moment please, just a moment, just a moment please, a moment, a moment please, one second, ' +
    'just a second, just one moment, just one second, give me a moment, give me a second',
  de:
    'einen moment, einen moment bitte, moment, moment bitte, einen augenblick, einen augenblick bitte, ' +
    'augenblick bitte, eine sekunde, sekunde',
  fr: "un instant, un instant s'il vous plaît, un moment, un moment s'il vous plaît, une seconde, juste un instant",
  es: 'un momento, un momento por favor, un segundo, un segundo por favor, un instante, deme un momento',
};

/** What may be said to somebody who asks for time. */
const times: Readonly<Record<string, string>> = {
  en:
    'take your time, take all the time you need, no rush, no hurry, theres no rush, there is no rush, theres no hurry, ' +
    "there is no hurry, whenever you're ready, whenever you are ready, i'll wait, i will wait",
  de: 'lassen sie sich zeit, lass dir zeit, kein problem, keine eile, ich warte, nur die ruhe, in ruhe',
  fr: 'prenez votre temps, prends ton temps, pas de souci, rien ne presse, je vous attends, je patiente',
  es: 'tómese su tiempo, tómate tu tiempo, sin prisa, no hay prisa, espero, cuando quiera',
};

/** Words beside the answer, which agree to have heard it. */
const agreed: Readonly<Record<string, string>> = {
  en:
    'okay, ok, alright, all right, right, sure, got it, great, perfect, good, very good, very well, certainly, ' +
    'of course, understood, thank you, thanks, noted, it is, then, good choice, great choice, the',
  de:
    'okay, ok, gut, sehr gut, alles klar, in ordnung, gerne, perfekt, prima, verstanden, danke, vielen dank, ' +
    'dann, also, notiert, gute wahl',
  fr: "d'accord, très bien, bien, parfait, entendu, bien sûr, compris, merci, alors, noté, okay, ok, bon choix",
  es: 'de acuerdo, muy bien, bien, perfecto, vale, claro, entendido, gracias, entonces, okay, ok, buena elección',
};

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

const made = new Map<string, Readonly<Record<'moments' | 'times' | 'agreed', Phrases>>>();

/**
 * Tells whether a text only acknowledges this answer. `beginning`: not yet, but it may become so, as the beginning
 * of an unfinished reply. A question is none.
 */
export function acknowledgementIn(
  text: string,
  { choice, isApproval, asksFor, language }: AcknowledgedAnswer,
): 'whole' | 'beginning' | 'none' {
  const answers = languageFor(language);
  const { code } = answers;
  const phrasesOf = (list = ''): Phrases =>
    list === '' ? [] : list.split(', ').map((phrase) => wordsOf(phrase, answers));
  let tables = made.get(code);
  if (!tables) {
    tables = {
      moments: phrasesOf(moments[code]),
      times: phrasesOf(times[code]),
      agreed: phrasesOf(agreed[code]),
    };
    made.set(code, tables);
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
