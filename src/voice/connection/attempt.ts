// One attempt to speak an offer from the outbox: the response that speaks it, the duration of its audio, and how much
// of it has been heard.
//
// Owns:     the calculation of what counts as heard.
// Does not: talk to the transport or the outbox.
//
// Invariants
//   ATTEMPT-1. An attempt counts as heard if its response ended normally and the client reported at least
//       `heardFraction` of its audio as played.
//   ATTEMPT-2. If the user heard at least one whole sentence before the interruption, the next attempt continues from
//       there; otherwise it starts from the beginning.

import { endsSentence } from '../../values/sentences.ts';
import type { Offer } from '../../actors/session/lead/speaker.ts';
import { ONSET_MS } from './transport.ts';

export class Attempt {
  readonly offer: Offer;
  readonly responseKey: string;
  responseId: string | null = null;
  /** Whether the client has started to play the attempt's audio. */
  hasBegun = false;
  readonly #heardFraction: number;
  readonly #totals = new Map<string, number>();
  readonly #played = new Map<string, number>();
  #heardSentence = false;
  #ended = false;
  /** When the client last reported progress; null if it has not reported any. */
  #playedAt: number | null = null;
  /** When playback started, in milliseconds since 1970. */
  #beganAt = Number.NEGATIVE_INFINITY;

  constructor(offer: Offer, heardFraction: number) {
    this.offer = offer;
    this.responseKey = `offer:${offer.generation}:${offer.deliveryId}`;
    this.#heardFraction = heardFraction;
  }

  /** Records that the response ended normally, with all of its audio. */
  ended(audio: readonly { readonly itemId: string; readonly durationMs: number }[]): void {
    this.#ended = true;
    for (const { itemId, durationMs } of audio) this.#totals.set(itemId, durationMs);
  }

  get hasAudio(): boolean {
    return sum(this.#totals) > 0;
  }

  /** Records played audio. `at`: the time of the client's report; absent if there was no report. */
  played(itemId: string, playedMs: number, at?: number): void {
    const before = this.#played.get(itemId) ?? 0;
    if (playedMs > before && at !== undefined) {
      if (this.#playedAt === null) this.#beganAt = at - playedMs;
      this.#playedAt = at;
    }
    this.#played.set(itemId, Math.max(playedMs, before));
  }

  /** Records the words of an item that were heard before the item was cut off; null if unknown. */
  heardWords(words: string | null): void {
    this.#heardSentence ||= words !== null && hasWholeSentence(words);
  }

  /** Whether at least one whole sentence was heard before the interruption. */
  get isBegun(): boolean {
    return this.#heardSentence;
  }

  get isHeard(): boolean {
    const total = sum(this.#totals);
    return this.#ended && total > 0 && sum(this.#played) >= this.#heardFraction * total;
  }

  /**
   * Returns the time by which enough of the attempt had been heard if it was played in real time. This is at most
   * `now`, the time of the report. Null if there is no report.
   */
  heardAt(now: number): number | null {
    if (this.#playedAt === null) return null;
    const neededMs = this.#heardFraction * sum(this.#totals);
    const beyondMs = sum(this.#played) - neededMs;
    const at = Math.max(this.#playedAt - Math.max(0, beyondMs), this.#beganAt + neededMs);
    // A client may report all audio as played in a single report.
    return Math.min(at - ONSET_MS, now);
  }
}

const sentences = new Intl.Segmenter(undefined, { granularity: 'sentence' });

function hasWholeSentence(words: string): boolean {
  return [...sentences.segment(words)].some(({ segment }) => endsSentence(segment));
}

function sum(durations: ReadonlyMap<string, number>): number {
  let total = 0;
  for (const duration of durations.values()) total += duration;
  return total;
}
