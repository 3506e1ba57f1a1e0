// Determines whether an utterance that started over the lead agent's speech is the user's voice or an echo from the
// loudspeaker.
//
//   ECHO-1. An utterance is an echo if its audio rises and falls with the played audio and its words occur in the
//       speech. The audio alone is enough for a long utterance, and in a room with a recent echo, where a recogniser
//       may have misheard the words. In a room with a recent echo, the words alone are enough if all of them occur in
//       the speech, because delayed audio does not match and the start of the utterance may be reported after the end
//       of the speech. An utterance is not an echo if the voice continues after the speech has ended, or if a person
//       speaks over the echo and some of the words are not from the speech.
//   ECHO-2. If the user answers without a pause, the echo and the answer form one utterance, and the echoed words at
//       its start are not the user's.
//
// Owns:     the comparisons of the utterance's audio, and the items that were playing.
// Does not: stop or continue speech, or measure audio (`EchoMeter` does).

import { closestPart, editDistance } from '../../language/similarity.ts';
import { isNumber, plainWords } from '../../language/utterance.ts';
import { ECHO_LIKENESS, type EchoMeter } from '../audio/echo-meter.ts';

const COMPARED_EVERY_MS = 160;
const ECHO_SHARE = 0.6;
const ECHO_WORDS = 0.6;
/** The fraction and the number of matching comparisons that prove an echo regardless of the words. */
const SURE = { share: 0.9, compared: 8 };
/** The number of consecutive comparisons that must show an echo, or a voice `LOUDER_DB` louder than the echo. */
const RUN = 3;
/** The minimum number of comparisons, because a single comparison may match by chance. */
const LEAST_COMPARED = 2;
const LOUDER_DB = 5;
/** The longest reverberation of a room, in milliseconds. */
const TAIL_MS = 400;
/** At the start of an utterance, there must be at least this many more echoed words than other words. */
const LEAST_ECHOED = 3;
/** The minimum similarity at which two words count as the same, because a recogniser may misspell an echoed word. */
const SAME_WORD = 0.6;
const MAX_WORDS = 200;
const MAX_COMPARED_CHARS = 1_500;
const LONGEST_WORD = 64;

export class Overlap {
  readonly utteranceId: string;
  /** The words of the items when these were cut off; null if they were not cut off. */
  wordsWhenCut: string | null = null;
  readonly #meter: EchoMeter;
  /** The items that have played since the utterance started. */
  readonly items = new Set<string>();
  #compared = 0;
  #alike = 0;
  /** The number of latest consecutive comparisons that showed an echo (`#alikeRun`) or another voice (`#otherRun`). */
  #alikeRun = 0;
  #otherRun = 0;
  /** Whether the utterance has ever sounded like an echo, and whether it has ever sounded like another voice. */
  #hasEchoed = false;
  #hasOther = false;
  /** The echo's level relative to the played audio, in dB. */
  #echoDb = 0;
  /** The duration of audio since the last comparison, in milliseconds. */
  #sinceMs = Number.POSITIVE_INFINITY;
  /** The duration of voice after the end of the speech, in milliseconds. */
  #afterMs = 0;

  /** @param items The items that were playing when the utterance started, if they have ended in the meantime. */
  constructor(utteranceId: string, meter: EchoMeter, items: readonly string[] = []) {
    this.utteranceId = utteranceId;
    this.#meter = meter;
    for (const itemId of items) this.items.add(itemId);
  }

  /** Whether the audio is an echo at this moment. */
  get isEchoing(): boolean {
    return this.#alikeRun >= RUN;
  }

  /** Whether the audio started as an echo and is now a different voice. */
  get isOther(): boolean {
    return this.#otherRun >= RUN;
  }

  /**
   * Records microphone audio. `playing`: the items that are playing. `voicedMs`: the duration of voice in the audio.
   */
  heard(playing: readonly string[], soundMs: number, voicedMs: number, now: number): void {
    if (playing.length === 0) this.#afterMs += voicedMs;
    this.#sinceMs += soundMs;
    if (this.#sinceMs >= COMPARED_EVERY_MS) this.soundsLikeEcho(playing, now);
  }

  /** Compares the newest audio with the played audio. Returns whether the two match. */
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

  /** ECHO-1. `said`: the words of the items that were playing. `echoes`: whether the room has recently had an echo. */
  isEcho(text: string, said: string, echoes: boolean): boolean {
    if (this.#afterMs >= TAIL_MS) return false;
    const own = this.ownWords(text, said, echoes);
    if (this.#hasOther && own !== '') return false;
    const share = this.#compared === 0 ? 0 : this.#alike / this.#compared;
    if (share >= SURE.share && this.#compared >= SURE.compared) return true;
    if (share < ECHO_SHARE) return echoes && !this.#hasOther && own === '';
    // If an echo is only a fragment, the recogniser gets few of its words right.
    if (echoes && !this.#hasOther && this.#compared >= LEAST_COMPARED) return true;
    const words = plainWords(text).slice(0, MAX_COMPARED_CHARS);
    return closestPart(words, plainWords(said).slice(-MAX_COMPARED_CHARS)) >= ECHO_WORDS;
  }

  /**
   * Returns the words after the echoed words at the start (ECHO-2); empty if none remain. `said`: the items' words.
   * `echoes`: whether the room has recently had an echo.
   */
  ownWords(text: string, said: string, echoes: boolean): string {
    const isAnswered = this.#hasEchoed && (this.#hasOther || this.#afterMs > 0);
    if (!isAnswered && !echoes) return text;
    const words = text.trim().split(/\s+/);
    return words.slice(echoedAtFirst(words, plainWords(said).split(' '))).join(' ');
  }
}

/**
 * Aligns the words with the speech. Returns how many words at the start belong to the speech.
 */
function echoedAtFirst(words: readonly string[], said: readonly string[]): number {
  const speech = said.slice(-MAX_WORDS);
  let best = { count: 0, score: LEAST_ECHOED - 1 };
  // The echo may start anywhere in the speech.
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

/** Returns 1 for the same word, -1 for a different word, and 0 if either is a number, in digits or in words. */
function likenessOf(word: string, other: string): number {
  if (word === other) return 1;
  const longer = Math.max(word.length, other.length, 1);
  if (isNumber(word) || isNumber(other)) return 0;
  if (longer > LONGEST_WORD) return -1;
  return 1 - editDistance(word, other) / longer >= SAME_WORD ? 1 : -1;
}
