// Buffers whose size is limited in milliseconds of audio.
//
// `createBoundedBuffer` creates a queue of whole frames that reports the audio that it drops. A queue of user audio
// keeps the newest frames (old speech is useless after a stall); a queue of model audio keeps the oldest (a sentence is
// heard from its start).
//
// `RecentSound` keeps the newest audio of a stream, at one sample rate. It copies the samples into a few long pieces
// that are reused, so that the frames can be released immediately. (Frames that are kept for seconds move to the
// garbage collector's old generation and cause pauses.)
//
// BOUNDED-BUFFER-1. The audio in the buffer never exceeds `maxMs`.
// BOUNDED-BUFFER-2. Each frame that is pushed is either still in the buffer, or was taken, cleared, or counted in
//     `dropped`.
// BOUNDED-BUFFER-3. Frames leave the buffer in order of arrival.
// RECENT-SOUND-1. `take` returns the newest audio, in order and unchanged.
// RECENT-SOUND-2. The buffer holds at most the requested duration plus one piece (`PIECE_MS`).

import { frameDurationMs, type AudioFrame } from './audio-frame.ts';
import { checkOptions, oneOf, optional, type OptionChecks } from '../../values/plain-checks.ts';

/** An amount of audio that was dropped. */
export interface DroppedAudio {
  /** The number of dropped frames. */
  readonly frames: number;
  /** The duration of the dropped audio, in milliseconds. */
  readonly durationMs: number;
}

/** The options of `createBoundedBuffer`. */
export interface BoundedBufferOptions {
  /** The maximum duration in milliseconds; more than 0. */
  readonly maxMs: number;
  /** When full: `newest` drops frames from the front to make room; `oldest` rejects the new frame. */
  readonly keep: 'newest' | 'oldest';
  /** Called after each push that drops audio, with the amount that this push dropped. Must not throw. */
  readonly onDrop?: (dropped: DroppedAudio) => void;
}

/** A first-in-first-out queue of whole frames, limited in milliseconds. */
export interface BoundedBuffer {
  /**
   * Adds a frame at the end. A single frame longer than `maxMs` is dropped as a whole.
   * @returns whether the frame was added
   */
  push(frame: AudioFrame): boolean;
  /** Removes and returns the first frame. */
  shift(): AudioFrame | undefined;
  /** Removes and returns all frames, in order. */
  drain(): AudioFrame[];
  /** Discards all frames; they do not count as dropped. */
  clear(): void;
  /** The number of frames in the queue. */
  readonly size: number;
  /** The duration of the audio in the queue, in milliseconds. */
  readonly durationMs: number;
  /** The audio that has been dropped since the buffer was created. */
  readonly dropped: DroppedAudio;
}

const optionChecks: OptionChecks<BoundedBufferOptions> = {
  maxMs: (value) => (typeof value === 'number' && value > 0 ? null : 'expected a number above 0'),
  keep: oneOf('newest', 'oldest'),
  onDrop: optional((value) => (typeof value === 'function' ? null : 'Invalid input')),
};

/**
 * Creates a queue that holds at most `maxMs` of audio and reports the audio that it drops.
 * @throws {ConfigurationError} `INVALID_OPTION` if `maxMs` is not a number above 0.
 */
export function createBoundedBuffer(options: BoundedBufferOptions): BoundedBuffer {
  const { maxMs, keep, onDrop } = checkOptions('createBoundedBuffer', optionChecks, options);
  let frames: AudioFrame[] = [];
  let heldMs = 0;
  let dropped: DroppedAudio = { frames: 0, durationMs: 0 };

  const drop = (count: number, durationMs: number): void => {
    dropped = { frames: dropped.frames + count, durationMs: dropped.durationMs + durationMs };
    onDrop?.({ frames: count, durationMs });
  };
  const shift = (): AudioFrame | undefined => {
    const frame = frames.shift();
    if (frame !== undefined) heldMs -= frameDurationMs(frame);
    // Adding and subtracting fractions of milliseconds does not return exactly to 0.
    if (frames.length === 0) heldMs = 0;
    return frame;
  };
  const drain = (): AudioFrame[] => {
    const all = frames;
    frames = [];
    heldMs = 0;
    return all;
  };

  return {
    push(frame) {
      const lengthMs = frameDurationMs(frame);
      if (lengthMs > maxMs || (keep === 'oldest' && heldMs + lengthMs > maxMs)) {
        drop(1, lengthMs);
        return false;
      }
      let count = 0;
      let durationMs = 0;
      while (heldMs + lengthMs > maxMs) {
        const oldest = shift();
        if (oldest === undefined) break;
        count += 1;
        durationMs += frameDurationMs(oldest);
      }
      frames.push(frame);
      heldMs += lengthMs;
      if (count > 0) drop(count, durationMs);
      return true;
    },
    shift,
    drain,
    clear() {
      drain();
    },
    get size() {
      return frames.length;
    },
    get durationMs() {
      return heldMs;
    },
    get dropped() {
      return dropped;
    },
  };
}

/** The duration of a piece, in milliseconds. */
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

  /** The duration of the audio in the buffer, in milliseconds. */
  get durationMs(): number {
    return this.#toMs(this.#length);
  }

  /** Adds a frame, and drops audio that is older than `mostMs`. A frame with another rate clears the buffer first. */
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
    // RECENT-SOUND-2: the oldest piece is dropped once all of it is too old.
    for (;;) {
      const oldest = this.#pieces[0];
      if (!oldest || this.#toMs(this.#length - oldest.length) < mostMs) return;
      this.#pieces.shift();
      this.#length -= oldest.length;
      this.#spare = oldest;
    }
  }

  /** Removes and returns the newest `ms` milliseconds, or everything if there is less. */
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

  /** Returns a piece with room for more samples. */
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
