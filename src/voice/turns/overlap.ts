// Tells whether an utterance that started over the lead agent's speech is the user's voice or the loudspeaker's echo.
//
//   ECHO-1. An utterance is an echo if its audio rises and falls with the played audio, and its words are those of the
//       speech. The audio alone suffices for a long utterance, and in a room with a recent echo, where a recogniser may
//       have misheard the words. The words alone suffice in a room with a recent echo if all of them occur in the
//       speech: delayed audio matches nothing, and the start of the utterance may be reported after the speech. An
//       utterance is not an echo if the voice continues after the speech, or if someone speaks over the echo and some
//       words are not from the speech.
//   ECHO-2. If the user answers without a pause, the echo and the answer form one utterance: the echoed words at its
//       start are not the user's.
//
// Owns:     the comparisons of the utterance's audio, and the items that were playing.
// Does not: stop or continue speech, or measure audio (`EchoMeter` does).

import { closestPart, editDistance } from '../../language/similarity.ts';
import { isNumber, plainWords } from '../../language/utterance.ts';
import { ECHO_LIKENESS, type EchoMeter } from '../audio/echo-meter.ts';

const COMPARED_EVERY_MS = 160;
const ECHO_SHARE = 0.6;
const ECHO_WORDS = 0.6;
/** The share and number of matching comparisons that prove an echo regardless of its words. */
const SURE = { share: 0.9, compared: 8 };
/** The number of consecutive comparisons that show an echo, or a voice that is `LOUDER_DB` louder than the echo. */
const RUN = 3;
/** The minimum number of comparisons: a single one may match by coincidence. */
const LEAST_COMPARED = 2;
const LOUDER_DB = 5;
/** A room's longest reverberation, in milliseconds. */
const TAIL_MS = 400;
/** The minimum excess of echoed words over other words at the start of an utterance. */
const LEAST_ECHOED = 3;
/** Two words with at least this similarity count as the same, because a recogniser may spell an echoed word differently. */
const SAME_WORD = 0.6;
const MAX_WORDS = 200;
const MAX_COMPARED_CHARS = 1_500;
const LONGEST_WORD = 64;

export class Overlap {
  readonly utteranceId: string;
  /** The words of its items when they were cut off; null if they were not. */
  wordsWhenCut: string | null = null;
  readonly #meter: EchoMeter;
  /** The items that have played since the utterance started. */
  readonly items = new Set<string>();
  #compared = 0;
  #alike = 0;
  /** The number of latest consecutive comparisons that showed an echo (`#alikeRun`) or another voice (`#otherRun`). */
  #alikeRun = 0;
  #otherRun = 0;
  /** Whether the utterance has ever sounded like an echo, and like another voice. */
  #hasEchoed = false;
  #hasOther = false;
  /** The echo's level relative to the played audio, in dB. */
  #echoDb = 0;
  /** The duration of audio since the last comparison, in milliseconds. */
  #sinceMs = Number.POSITIVE_INFINITY;
  /** The duration of voice after the speech, in milliseconds. */
  #afterMs = 0;

  /** @param items The items that were playing when the utterance started, if they have ended since. */
  constructor(utteranceId: string, meter: EchoMeter, items: readonly string[] = []) {
    this.utteranceId = utteranceId;
    this.#meter = meter;
    for (const itemId of items) this.items.add(itemId);
  }

  /** Whether the audio is an echo now. */
  get isEchoing(): boolean {
    return this.#alikeRun >= RUN;
  }

  /** Whether the audio was an echo at first and is now another voice. */
  get isOther(): boolean {
    return this.#otherRun >= RUN;
  }

  /** Records microphone audio. `playing`: the items that are playing. `voicedMs`: the duration of voice in it. */
  heard(playing: readonly string[], soundMs: number, voicedMs: number, now: number): void {
    if (playing.length === 0) this.#afterMs += voicedMs;
    this.#sinceMs += soundMs;
    if (this.#sinceMs >= COMPARED_EVERY_MS) this.soundsLikeEcho(playing, now);
  }

  /** Compares the newest audio with the played audio. Returns whether they match. */
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

  /** ECHO-1. `said`: the words of its items. `echoes`: whether the room had a recent echo. */
  isEcho(text: string, said: string, echoes: boolean): boolean {
    if (this.#afterMs >= TAIL_MS) return false;
    const own = this.ownWords(text, said, echoes);
    if (this.#hasOther && own !== '') return false;
    const share = this.#compared === 0 ? 0 : this.#alike / this.#compared;
    if (share >= SURE.share && this.#compared >= SURE.compared) return true;
    if (share < ECHO_SHARE) return echoes && !this.#hasOther && own === '';
    // The recogniser gets few words of an echo fragment right.
    if (echoes && !this.#hasOther && this.#compared >= LEAST_COMPARED) return true;
    const words = plainWords(text).slice(0, MAX_COMPARED_CHARS);
    return closestPart(words, plainWords(said).slice(-MAX_COMPARED_CHARS)) >= ECHO_WORDS;
  }

  /**
   * Returns the words after the echoed ones at the start (ECHO-2); empty if none remain. `said`: the items' words.
   * `echoes`: whether the room had a recent echo.
   */
  ownWords(text: string, said: string, echoes: boolean): string {
    const isAnswered = this.#hasEchoed && (this.#hasOther || this.#afterMs > 0);
    if (!isAnswered && !echoes) return text;
    const words = text.trim().split(/\s+/);
    return words.slice(echoedAtFirst(words, plainWords(said).split(' '))).join(' ');
  }
}

/** Returns how many of the first words belong to the speech, according to the alignment with the most words in common. */
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

/** Returns 1 for the same word, -1 for a different one, and 0 if either is a number, in digits or words. */
function likenessOf(word: string, other: string): number {
  if (word === other) return 1;
  const longer = Math.max(word.length, other.length, 1);
  if (isNumber(word) || isNumber(other)) return 0;
  if (longer > LONGEST_WORD) return -1;
  return 1 - editDistance(word, other) / longer >= SAME_WORD ? 1 : -1;
}
