// Recognises phrases that come with an answer or instead of one: requests for time, requests to repeat the question,
// corrections, and messages for the lead agent. The rules match only listed phrases, because a wrong guess would
// prevent the user's answer from reaching the asker.

import { backchannelIn } from './backchannel.ts';
import { languageFor } from './languages.ts';
import {
  findPhrase,
  phraseAt,
  standsAt,
  tablesOf,
  type Phrases,
  type Tables,
  type Words,
} from './tables.ts';
import { from, readUtterance, type Utterance } from './utterance.ts';

/**
 * Returns whether the utterance asks for time. `whole`: the utterance contains nothing else, except a reason ("hold on, I
 * need to look"). `anywhere`: the request occurs in the utterance. Thinking aloud counts only if the user says nothing else.
 */
export function isHold(
  { words, breaks }: Utterance,
  { phrases, noise, hesitations, thinking }: Tables,
  extent: 'whole' | 'anywhere',
): boolean {
  if (extent === 'anywhere') {
    // "That can wait" does not ask for time, so a single word counts only at the start of a clause.
    const isAsked = (start: number, length: number): boolean =>
      length > 1 || start === 0 || breaks.has(start - 1) || noise.has(words[start - 1] as string);
    if (
      phrases.holds.some((phrase) =>
        findPhrase(words, phrase).some((start) => isAsked(start, phrase.length)),
      )
    )
      return true;
  }
  let asked =
    words.some((word) => hesitations.has(word)) && words.every((word) => thinking.has(word));
  let muses = false;
  for (let index = 0; index < words.length;) {
    const held = phraseAt(words, index, phrases.holds);
    const length = held || phraseAt(words, index, phrases.musings);
    if (length > 0) {
      asked = true;
      muses = held === 0;
      index += length;
      continue;
    }
    // Polite phrases ("s'il vous plaît") are also used in other contexts.
    const reasons = muses ? phrases.musingTails : phrases.holdReasons;
    if (asked && phraseAt(words, index, reasons) > 0) return true;
    const tail = asked ? phraseAt(words, index, phrases.holdTails) : 0;
    if (tail === 0 && !noise.has(words[index] as string)) return false;
    index += Math.max(1, tail);
  }
  return asked;
}

/** The last phrase that asks for time or retracts the preceding words. */
export interface Turn {
  readonly kind: 'hold' | 'correction';
  /** The index of the first word after the phrase. */
  readonly end: number;
}

/**
 * Finds the last such phrase. `chooses`: returns whether an option is named before this index; a `no` at this index is
 * then a correction. `isOutside`: returns whether the word is outside every label.
 */
export function lastTurn(
  { words, breaks }: Utterance,
  { phrases, noise }: Tables,
  isOutside: (index: number) => boolean,
  chooses: (index: number) => boolean,
): Turn | null {
  const isFree = (start: number, length: number): boolean =>
    words.slice(start, start + length).every((_, n) => isOutside(start + n));
  let last = null as Turn | null;
  for (let index = 0; index < words.length;) {
    // "I can't wait" does not ask for time.
    const isAnchored =
      index === 0 ||
      last?.end === index ||
      breaks.has(index - 1) ||
      noise.has(words[index - 1] as string) ||
      chooses(index) ||
      !isOutside(index - 1) ||
      standsBefore(words, index, [...phrases.bareCorrections, ...phrases.joints]);
    const held = phraseAt(words, index, phrases.holds);
    const corrected = chooses(index) ? phraseAt(words, index, phrases.corrections) : 0;
    const bare = chooses(index) ? phraseAt(words, index, phrases.bareCorrections) : 0;
    if (held > corrected && (isAnchored || held > 1) && isFree(index, held)) {
      let end = index + held;
      for (let tail = 1; tail > 0; end += tail) tail = phraseAt(words, end, phrases.holdTails);
      last = { kind: 'hold', end };
    } else if (corrected > 0 && isFree(index, corrected))
      last = { kind: 'correction', end: index + corrected };
    else if (
      bare > 0 &&
      isFree(index, bare) &&
      (breaks.has(index + bare - 1) || last?.end === index)
    )
      last = { kind: 'correction', end: index + bare };
    index = last && last.end > index ? last.end : index + 1;
  }
  return last;
}

/** Returns whether the user wants to hear the question again. */
export function wantsRepeat(utterance: Utterance, tables: Tables): boolean {
  const { repeats, repeatsAlone, holds } = tables.phrases;
  const { words } = utterance;
  const isAlone = (plain: Words): boolean => {
    let end = 0;
    for (let length = 1; length > 0; end += length) length = phraseAt(plain, end, repeatsAlone);
    return end > 0 && end === plain.length;
  };
  const spoken = words.filter((word) => !tables.thinking.has(word) && !tables.fillers.has(word));
  // "Uh-huh" is not "huh?".
  if (isAlone(spoken) || isAlone(spoken.filter((word) => !tables.noise.has(word))))
    return backchannelIn(utterance.raw, tables.language.code) !== 'whole';
  let start = beginning(utterance, tables);
  if (phraseAt(words, 0, repeats) > 0) return true;
  for (let length = 1; length > 0; start += length) {
    if (phraseAt(words, start, repeats) > 0) return true;
    length = phraseAt(words, start, holds);
  }
  return false;
}

/** Returns whether the utterance starts with a phrase for the lead agent. */
export function startsDigression(utterance: Utterance, tables: Tables): boolean {
  return starts(utterance, tables, tables.phrases.digressionStarts);
}

/** Returns whether the utterance starts with a question that does not choose an option (unlike "how about …"). */
export function startsQuestion(utterance: Utterance, tables: Tables): boolean {
  const { questionStarts, requestStarts } = tables.phrases;
  return starts(utterance, tables, questionStarts) && !starts(utterance, tables, requestStarts);
}

/**
 * Returns whether the utterance ends as a question and one of its clauses starts like a question: "Darling, is Friday
 * all right?".
 */
export function asksInClause(utterance: Utterance, tables: Tables): boolean {
  if (!utterance.asks) return false;
  const begins = [-1, ...utterance.breaks].map((index) => index + 1);
  return begins.some((start) => startsQuestion(from(utterance, start), tables));
}

/**
 * Returns whether other words are followed by a question, which may be for another person: "Dad, are you coming".
 * Speech recognisers do not write question marks.
 */
export function asksAside({ words, breaks }: Utterance, { phrases, frame }: Tables): boolean {
  const { questionStarts, requestStarts, holds, polite } = phrases;
  return [...words.keys()].slice(1).some((start) => {
    const isClause = breaks.has(start - 1) || standsBefore(words, start, holds);
    // "I will …" does not address anyone.
    const isAddressed = start <= LONGEST_ADDRESS && !frame.has(words[start - 1] as string);
    if (!isClause && !isAddressed) return false;
    const length = phraseAt(words, start, questionStarts);
    return (
      length > (isClause ? 0 : 1) && phraseAt(words, start, [...requestStarts, ...polite]) < length
    );
  });
}

/** The maximum number of words in a form of address: "hey Sam". */
const LONGEST_ADDRESS = 2;

/** Returns whether the utterance dismisses the question and says nothing else. */
export function isCommand(utterance: Utterance, tables: Tables): boolean {
  const start = beginning(utterance, tables);
  const length = phraseAt(utterance.words, start, tables.phrases.commands);
  const rest = utterance.words.slice(start + length);
  return length > 0 && rest.every((word) => tables.noise.has(word));
}

/**
 * Returns whether the words only ask the agent to stop speaking ("not now, thanks"). `language`: a tag such as `en-GB`;
 * returns false for a language without tables.
 */
export function putsOff(text: string, language = 'en'): boolean {
  const tables = tablesOf(languageFor(language));
  return isPutOff(readUtterance(text, tables.language), tables);
}

/** Like `putsOff`, but for a parsed utterance. */
export function isPutOff({ words, asks }: Utterance, { phrases, noise }: Tables): boolean {
  let found = false;
  for (let index = 0; index < words.length && !asks;) {
    const stop = phraseAt(words, index, phrases.putOffs);
    const { putOffTails, bareCorrections, corrections } = phrases;
    const beside = phraseAt(
      words,
      index,
      found ? putOffTails : [...bareCorrections, ...corrections],
    );
    found ||= stop > 0;
    if (stop + beside === 0 && !noise.has(words[index] as string)) return false;
    index += Math.max(1, stop, beside);
  }
  return found && !asks;
}

/** Returns the length of the dismissal with which the utterance starts ("cancel that, I want …"), or 0. */
export function commandAtStart(
  utterance: Utterance,
  tables: Tables,
): { readonly length: number; readonly isClause: boolean } {
  const { words, breaks } = utterance;
  const start = beginning(utterance, tables);
  const length = phraseAt(words, start, tables.phrases.commands);
  return { length, isClause: breaks.has(start + length - 1) };
}

/** Returns whether the utterance withdraws the subject of the question: "we don't need the table any more". */
export function withdraws({ words }: Utterance, { phrases }: Tables, topic: Words): boolean {
  return (
    phrases.withdrawals.some((phrase) => findPhrase(words, phrase).length > 0) &&
    words.some((word) => topic.includes(word))
  );
}

/** Returns whether the utterance retracts a request without naming it: "I changed my mind". */
export function changesMind({ words }: Utterance, { phrases }: Tables): boolean {
  return phrases.withdrawals.some((phrase) => findPhrase(words, phrase).length > 0);
}

/** Returns whether a later clause starts like a request; "make it six" is a correction instead. */
export function requestsInClause({ words, breaks }: Utterance, { phrases }: Tables): boolean {
  return [...breaks].some(
    (index) =>
      phraseAt(words, index + 1, phrases.requests) >
      phraseAt(words, index + 1, phrases.corrections),
  );
}

/** Returns the indexes at which a request starts: at the beginning, after an option or after an "and". */
export function requestsIn(
  utterance: Utterance,
  tables: Tables,
  isOutside: (index: number) => boolean = () => true,
): readonly number[] {
  const { words } = utterance;
  const { requests, joints } = tables.phrases;
  const first = beginning(utterance, tables);
  return [...words.keys()].filter(
    (index) =>
      phraseAt(words, index, requests) > 0 &&
      isOutside(index) &&
      (index === first || !isOutside(index - 1) || standsBefore(words, index, joints)),
  );
}

/** Returns whether the utterance asks the agent to do something before the user answers: "make me a report first". */
export function requestsBeforehand(utterance: Utterance, tables: Tables): boolean {
  const { words } = utterance;
  const { requests, beforehand } = tables.phrases;
  const begins = phraseAt(words, beginning(utterance, tables), requests) > 0;
  const end = words.findLastIndex((word) => !tables.noise.has(word)) + 1;
  return begins && beforehand.some((phrase) => standsAt(words, end - phrase.length, phrase));
}

function standsBefore(words: Words, index: number, phrases: Phrases): boolean {
  return phrases.some((phrase) => standsAt(words, index - phrase.length, phrase));
}

function starts(utterance: Utterance, tables: Tables, phrases: Phrases): boolean {
  const { words } = utterance;
  return (
    phraseAt(words, 0, phrases) > 0 || phraseAt(words, beginning(utterance, tables), phrases) > 0
  );
}

/** Returns the index of the first word that expresses neither politeness nor hesitation. */
function beginning({ words }: Utterance, { noise }: Tables): number {
  const index = words.findIndex((word) => !noise.has(word));
  return index === -1 ? words.length : index;
}
