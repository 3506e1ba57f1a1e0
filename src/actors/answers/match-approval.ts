// A yes or a no to something that will really happen.
//
// Invariants
//   A1. Approved is only an utterance that consists of the closed list `yes` and nothing
//       else (politeness, fillers and asides apart). Nothing like it is enough: recognition
//       turns "go ahead" into "no head".
//   A2. Any negation wins: with one anywhere in it nothing is approved; it is denied if it
//       reads as a refusal, and asked again if not ("no problem").
//   A3. "Wait" and a question are neither, and a condition is no consent. With doubt it is
//       unclear: ask again.
//   A4. A filler ("um") changes nothing; a sound of doubt ("hmm") is not one.

import { digression, hold, unclear, type Match } from './match.ts';
import { isCommand, isHold, startsDigression, startsQuestion, wantsRepeat } from './side-talk.ts';
import { findPhrase, phraseAt, standsAt, type Phrases, type Tables, type Words } from './tables.ts';
import { wordsOf, type Utterance } from './utterance.ts';

const denied = { kind: 'denied' } as const satisfies Match;
const approved = { kind: 'approved' } as const satisfies Match;

/** `action`: the name of the tool, as "yes, send it" may name it. */
export function matchApproval(said: Utterance, tables: Tables, action = ''): Match {
  if (said.words.length === 0 || wantsRepeat(said, tables)) return unclear;
  const words = said.words.filter((word) => !tables.fillers.has(word));
  const utterance = { ...said, words };
  // Sounds of thinking, and politeness at most.
  const isSound = (word: string): boolean => tables.fillers.has(word) || tables.thinking.has(word);
  if (words.length < said.words.length && said.words.every(isSound)) return hold;

  const verdict = verdictOf(words, tables, namesOf(action, tables));
  if (verdict && said.asks) return unclear;
  if (verdict) return verdict === 'no' ? denied : approved;
  if (isCommand(utterance, tables)) return denied;

  const isQuestion = said.asks || startsQuestion(utterance, tables);
  if (!isQuestion && refuses(words, tables)) return denied;
  if (isHold(utterance, tables, 'anywhere'))
    // "Let me think … yes": whoever says nothing now would keep the user waiting.
    return endsInConsent(words, tables) ? unclear : hold;
  return isQuestion || startsDigression(utterance, tables) ? digression : unclear;
}

type Said = 'nothing' | 'yes' | 'no';

/** Reads the words as a row of listed phrases; null if a word is left over, or nothing was said. */
function verdictOf(words: Words, { phrases }: Tables, names: Phrases): 'yes' | 'no' | null {
  const lists: readonly { readonly entries: Phrases; readonly says: Said }[] = [
    { entries: phrases.no, says: 'no' },
    { entries: phrases.yes, says: 'yes' },
    { entries: phrases.polite, says: 'nothing' },
    { entries: phrases.asides, says: 'nothing' },
    { entries: names, says: 'nothing' },
  ];
  // For each number of words read so far: what can have been said ("please do not" can be
  // read in two ways; only one of them comes to the end).
  const readings: Set<Said>[] = [...words, ''].map(() => new Set());
  readings[0]?.add('nothing');
  for (let start = 0; start < words.length; start += 1) {
    for (const said of readings[start] ?? []) {
      for (const { entries, says } of lists) {
        for (const entry of entries) {
          if (!standsAt(words, start, entry)) continue;
          const together = said === 'no' || says === 'no' ? 'no' : says === 'yes' ? 'yes' : said;
          readings[start + entry.length]?.add(together);
        }
      }
    }
  }
  const whole = readings[words.length];
  if (whole?.has('no')) return 'no';
  return whole?.has('yes') ? 'yes' : null;
}

/** How the action may be named beside a yes: "send", "send it", "send the email". */
function namesOf(action: string, { language, phrases }: Tables): Phrases {
  const spoken = action.replace(/(?<=\p{Ll})(?=\p{Lu})/gu, ' ').replaceAll('_', ' ');
  const [verb, ...objects] = wordsOf(spoken, language);
  if (verb === undefined) return [];
  const object = objects.length > 0 ? [objects] : [];
  return [
    [verb],
    ...object.map((rest) => [verb, ...rest]),
    ...phrases.pronouns.map((pronoun) => [verb, ...pronoun]),
    ...phrases.pronouns.flatMap((pronoun) => object.map((rest) => [verb, ...pronoun, ...rest])),
  ];
}

/** A refusal is in it ("yes, but don't send it"), or it begins with a no and goes on ("no, send it to Peter"). */
function refuses(words: Words, { phrases }: Tables): boolean {
  const harmless = phrases.notRefusals.flatMap((phrase) =>
    findPhrase(words, phrase).map((start) => ({ start, end: start + phrase.length })),
  );
  const counts = (start: number, length: number): boolean =>
    !harmless.some((phrase) => phrase.start <= start && start + length <= phrase.end);
  for (const phrase of phrases.refusals)
    if (findPhrase(words, phrase).some((start) => counts(start, phrase.length))) return true;

  const beside = [...phrases.polite, ...phrases.asides, ...phrases.holds];
  const start = skip(words, 0, beside);
  const length = phraseAt(words, start, phrases.no);
  if (length === 0 || !counts(start, length)) return false;
  // One odd word after a no may be a slip of the recogniser: "no head" was "go ahead".
  return words.length - skip(words, start + length, beside) !== 1;
}

function endsInConsent(words: Words, tables: Tables): boolean {
  return words.some((_, start) => verdictOf(words.slice(start), tables, []) === 'yes');
}

/** The first index from `start` on where none of `phrases` stands. */
function skip(words: Words, start: number, phrases: Phrases): number {
  let index = start;
  for (let length = 1; length > 0; index += length) length = phraseAt(words, index, phrases);
  return index;
}
