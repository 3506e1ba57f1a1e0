// The newest sound of a stream of one rate, by the millisecond: samples are copied into a few long, reused
// pieces, so that the frames themselves are released at once. (If frames were kept for seconds, those of each
// session would grow old and cause pauses of the garbage collector.)
//
// Invariants
//   RECENT-SOUND-1. `take` returns the newest sound, in order, unchanged.
//   RECENT-SOUND-2. The buffer holds at most the requested length plus one piece.

import type { AudioFrame } from './audio-frame.ts';

/** The length of a piece. */
const PIECE_MS = 500;

interface Piece {
  readonly samples: Int16Array;
  length: number;
}

export class RecentSound {
  #sampleRateHz = 0;
  #pieces: Piece[] = [];
  #spare: Piece | null = null;
  /** The number of samples in all pieces. */
  #length = 0;

  /** The length of the held sound in milliseconds. */
  get durationMs(): number {
    return this.#toMs(this.#length);
  }

  /** Adds a frame, and drops sound older than `mostMs`. A frame of another rate clears the buffer first. */
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
    // RECENT-SOUND-2: the oldest piece is dropped when all of it is too old.
    for (;;) {
      const oldest = this.#pieces[0];
      if (!oldest || this.#toMs(this.#length - oldest.length) < mostMs) return;
      this.#pieces.shift();
      this.#length -= oldest.length;
      this.#spare = oldest;
    }
  }

  /** Takes the newest `ms` milliseconds, or all if there is less. */
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

  /** Returns the piece with room for writing. */
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
