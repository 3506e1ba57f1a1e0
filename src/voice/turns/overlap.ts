// An utterance that began over the lead agent's speech: does the microphone hear the user, or the loudspeaker?
//
//   ECHO-1. It is an echo if its sound rises and falls with what is played, and its words are those of the speech; for a
//       long one, whose words a recogniser may have misheard, the sound suffices. It is none if the voice goes on when
//       the speech is over: somebody answers.
//
// Owns:     the comparisons of its sound, and the items that were playing.
// Does not: stop or continue speech, or hear anything (`EchoMeter` does).

import { closestPart } from '../../language/similarity.ts';
import { plainWords } from '../../language/utterance.ts';
import { ECHO_LIKENESS, type EchoMeter } from '../audio/echo-meter.ts';

const COMPARED_EVERY_MS = 160;
const ECHO_SHARE = 0.6;
const ECHO_WORDS = 0.6;
/** Without a look at its words. */
const SURE = { share: 0.9, compared: 8 };
/** So many comparisons in a row show an echo, or that somebody speaks over it: that is this much louder. */
const RUN = 3;
const LOUDER_DB = 5;
/** The sound of a room goes on for less than this. */
const TAIL_MS = 400;

export class Overlap {
  readonly utteranceId: string;
  readonly #meter: EchoMeter;
  readonly #items = new Set<string>();
  #compared = 0;
  #alike = 0;
  /** How many of the last comparisons in a row showed an echo, or somebody else. */
  #alikeRun = 0;
  #otherRun = 0;
  /** The level of the echo, against what is played. */
  #echoDb = 0;
  /** The sound since the last comparison. */
  #sinceMs = Number.POSITIVE_INFINITY;
  /** The voice after the speech. */
  #afterMs = 0;

  constructor(utteranceId: string, meter: EchoMeter) {
    this.utteranceId = utteranceId;
    this.#meter = meter;
  }

  /** The items that were playing since it began. */
  get items(): ReadonlySet<string> {
    return this.#items;
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
    for (const itemId of playing) this.#items.add(itemId);
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
    return isAlike;
  }

  /** ECHO-1. `said`: the words of its items. */
  isEcho(text: string, said: string): boolean {
    if (this.#compared === 0 || this.#afterMs >= TAIL_MS) return false;
    const share = this.#alike / this.#compared;
    if (share >= SURE.share && this.#compared >= SURE.compared) return true;
    const words = plainWords(text);
    const size = words.split(' ').length;
    return share >= ECHO_SHARE && closestPart(words, plainWords(said), [size]) >= ECHO_WORDS;
  }
}
