// An utterance that began over the lead agent's speech: does the microphone hear the user, or the loudspeaker?
//
//   ECHO-1. It is an echo if its sound rises and falls with what is played, and its words are those of the speech; for a
//       long one, and in a room that echoed of late, where a recogniser may have misheard it, the sound suffices. It is
//       none if the voice goes on when the speech is over, or somebody speaks over it and words are left: they answer.
//       Where an echo was heard of late, the words suffice, if all are those of the speech: sound that comes late is
//       like nothing, and its beginning may be reported when the speech is over.
//   ECHO-2. An answer without a pause before it is one utterance with the echo: the words of the echo at its beginning
//       are not the user's.
//
// Owns:     the comparisons of its sound, and the items that were playing.
// Does not: stop or continue speech, or hear anything (`EchoMeter` does).

import { closestPart, editDistance } from '../../language/similarity.ts';
import { isNumber, plainWords } from '../../language/utterance.ts';
import { ECHO_LIKENESS, type EchoMeter } from '../audio/echo-meter.ts';

const COMPARED_EVERY_MS = 160;
const ECHO_SHARE = 0.6;
const ECHO_WORDS = 0.6;
/** Without a look at its words. */
const SURE = { share: 0.9, compared: 8 };
/** So many comparisons in a row show an echo, or that somebody speaks over it: that is this much louder. */
const RUN = 3;
/** A single comparison may be chance. */
const LEAST_COMPARED = 2;
const LOUDER_DB = 5;
/** The sound of a room goes on for less than this. */
const TAIL_MS = 400;
/** So many words more are those of the speech than are not. */
const LEAST_ECHOED = 3;
/** A recogniser may write a word of the echo differently. */
const SAME_WORD = 0.6;
const MAX_WORDS = 200;
const MAX_COMPARED_CHARS = 1_500;
const LONGEST_WORD = 64;

export class Overlap {
  readonly utteranceId: string;
  /** The words of its items when they were cut off; null: they were not. */
  wordsWhenCut: string | null = null;
  readonly #meter: EchoMeter;
  /** The items that were playing since it began. */
  readonly items = new Set<string>();
  #compared = 0;
  #alike = 0;
  /** How many of the last comparisons in a row showed an echo, or somebody else. */
  #alikeRun = 0;
  #otherRun = 0;
  /** Whether it was an echo, and somebody else's, at some time. */
  #hasEchoed = false;
  #hasOther = false;
  /** The level of the echo, against what is played. */
  #echoDb = 0;
  /** The sound since the last comparison. */
  #sinceMs = Number.POSITIVE_INFINITY;
  /** The voice after the speech. */
  #afterMs = 0;

  /** @param items those that were playing when it began, if it is over by now */
  constructor(utteranceId: string, meter: EchoMeter, items: readonly string[] = []) {
    this.utteranceId = utteranceId;
    this.#meter = meter;
    for (const itemId of items) this.items.add(itemId);
  }

  /** Whether its sound is an echo by now. */
  get isEchoing(): boolean {
    return this.#alikeRun >= RUN;
  }

  /** Whether its sound was an echo at first, and is somebody else's now. */
  get isOther(): boolean {
    return this.#otherRun >= RUN;
  }

  /** Records sound of the microphone. `playing`: the items that are. `voicedMs`: the length of the voice in it. */
  heard(playing: readonly string[], soundMs: number, voicedMs: number, now: number): void {
    if (playing.length === 0) this.#afterMs += voicedMs;
    this.#sinceMs += soundMs;
    if (this.#sinceMs >= COMPARED_EVERY_MS) this.soundsLikeEcho(playing, now);
  }

  /** Compares its sound of late with what was played. */
  soundsLikeEcho(playing: readonly string[], now: number): boolean {
    for (const itemId of playing) this.items.add(itemId);
    const comparison = this.#meter.compare(now);
    if (comparison === null) return false;
    const { likeness, gainDb } = comparison;
    this.#sinceMs = 0;
    const isAlike = likeness >= ECHO_LIKENESS;
    const isOther = !isAlike && this.#alike > 0 && gainDb > this.#echoDb + LOUDER_DB;
    if (isAlike) this.#echoDb += (gainDb - this.#echoDb) / (this.#alike + 1);
    this.#compared += 1;
    this.#alike += Number(isAlike);
    this.#alikeRun = isAlike ? this.#alikeRun + 1 : 0;
    this.#otherRun = isOther ? this.#otherRun + 1 : 0;
    this.#hasEchoed ||= this.isEchoing;
    this.#hasOther ||= this.isOther;
    return isAlike;
  }

  /** ECHO-1. `said`: the words of its items. `echoes`: an echo was heard of late. */
  isEcho(text: string, said: string, echoes: boolean): boolean {
    if (this.#afterMs >= TAIL_MS) return false;
    const own = this.ownWords(text, said, echoes);
    if (this.#hasOther && own !== '') return false;
    const share = this.#compared === 0 ? 0 : this.#alike / this.#compared;
    if (share >= SURE.share && this.#compared >= SURE.compared) return true;
    if (share < ECHO_SHARE) return echoes && !this.#hasOther && own === '';
    // Of a piece of the echo hardly a word is taken down right.
    if (echoes && !this.#hasOther && this.#compared >= LEAST_COMPARED) return true;
    const words = plainWords(text).slice(0, MAX_COMPARED_CHARS);
    return closestPart(words, plainWords(said).slice(-MAX_COMPARED_CHARS)) >= ECHO_WORDS;
  }

  /**
   * Returns the words without those of an echo at their beginning (ECHO-2); empty if no other is left. `said`: the words
   * of its items. `echoes`: an echo was heard of late.
   */
  ownWords(text: string, said: string, echoes: boolean): string {
    const isAnswered = this.#hasEchoed && (this.#hasOther || this.#afterMs > 0);
    if (!isAnswered && !echoes) return text;
    const words = text.trim().split(/\s+/);
    return words.slice(echoedAtFirst(words, plainWords(said).split(' '))).join(' ');
  }
}

/** Returns how many of the first words are a part of the speech: the alignment with the most words in common. */
function echoedAtFirst(words: readonly string[], said: readonly string[]): number {
  const speech = said.slice(-MAX_WORDS);
  let best = { count: 0, score: LEAST_ECHOED - 1 };
  // The echo may begin anywhere in the speech.
  let before: readonly number[] = speech.map(() => 0);
  for (const [index, word] of words.slice(0, MAX_WORDS).entries()) {
    const plain = plainWords(word);
    const scores: number[] = [];
    for (const [place, other] of speech.entries()) {
      const reached = place === 0 ? -index : (before[place - 1] ?? 0);
      const score = Math.max(
        reached + likenessOf(plain, other),
        (before[place] ?? 0) - 1,
        (scores[place - 1] ?? -1 - index) - 1,
      );
      scores.push(score);
      if (score > best.score) best = { count: index + 1, score };
    }
    before = scores;
  }
  return best.count;
}

/** 1: the same word; -1: another one; 0: unknown, since a recogniser may write a number in digits or in words. */
function likenessOf(word: string, other: string): number {
  if (word === other) return 1;
  const longer = Math.max(word.length, other.length, 1);
  if (isNumber(word) || isNumber(other)) return 0;
  if (longer > LONGEST_WORD) return -1;
  return 1 - editDistance(word, other) / longer >= SAME_WORD ? 1 : -1;
}
