// The newest sound of a stream of one rate, by the millisecond: samples in a few long
// pieces that are used again, so that the frames themselves are forgotten at once. (Kept for
// seconds, each frame of each session would grow old, and cost the garbage collector a pause.)
//
// Invariants
//   RECENT-SOUND-1. What is taken is the newest sound, in order, as it was given.
//   RECENT-SOUND-2. No more is held than was asked for, and a piece.

import type { AudioFrame } from './audio-frame.ts';

/** So long a piece is. */
const PIECE_MS = 500;

interface Piece {
  readonly samples: Int16Array;
  length: number;
}

export class RecentSound {
  #sampleRateHz = 0;
  #pieces: Piece[] = [];
  #spare: Piece | null = null;
  /** Samples in all pieces. */
  #length = 0;

  /** How much there is. */
  get durationMs(): number {
    return this.#toMs(this.#length);
  }

  /** Adds a frame, and forgets what is older than `mostMs`. Sound of another rate begins anew. */
  add({ samples, sampleRateHz }: AudioFrame, mostMs: number): void {
    if (sampleRateHz !== this.#sampleRateHz) {
      this.clear();
      this.#spare = null;
      this.#sampleRateHz = sampleRateHz;
    }
    for (let from = 0; from < samples.length;) {
      const piece = this.#roomy();
      const length = Math.min(samples.length - from, piece.samples.length - piece.length);
      const fits = length === samples.length;
      piece.samples.set(fits ? samples : samples.subarray(from, from + length), piece.length);
      piece.length += length;
      this.#length += length;
      from += length;
    }
    // RECENT-SOUND-2: the oldest piece goes when all of it is too old.
    for (;;) {
      const oldest = this.#pieces[0];
      if (!oldest || this.#toMs(this.#length - oldest.length) < mostMs) return;
      this.#pieces.shift();
      this.#length -= oldest.length;
      this.#spare = oldest;
    }
  }

  /** Takes the newest `ms`, or all that there is. */
  take(ms: number): readonly AudioFrame[] {
    let surplus = Math.round(((this.durationMs - ms) * this.#sampleRateHz) / 1000);
    const sampleRateHz = this.#sampleRateHz;
    const frames = this.#pieces.flatMap(({ samples, length }) => {
      const from = Math.min(Math.max(surplus, 0), length);
      surplus -= from;
      return from === length ? [] : [{ samples: samples.slice(from, length), sampleRateHz }];
    });
    this.clear();
    return frames;
  }

  clear(): void {
    this.#pieces = [];
    this.#length = 0;
  }

  /** The piece that is written to. */
  #roomy(): Piece {
    const last = this.#pieces.at(-1);
    if (last && last.length < last.samples.length) return last;
    const size = Math.ceil((this.#sampleRateHz * PIECE_MS) / 1000);
    const piece = this.#spare ?? { samples: new Int16Array(size), length: 0 };
    this.#spare = null;
    piece.length = 0;
    this.#pieces.push(piece);
    return piece;
  }

  #toMs(samples: number): number {
    return this.#sampleRateHz === 0 ? 0 : (samples * 1000) / this.#sampleRateHz;
  }
}
