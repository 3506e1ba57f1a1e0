// The frames between the two ends of a measured voice session: stretches of audio that carry a number, so that the
// other end recognizes each and measures its delay. A device and a contender exchange binary frames of PCM16 and the
// few JSON messages below.

import type { RawData } from 'ws';

export const SAMPLES_PER_MS = 24;
const BYTES_PER_SAMPLE = 2;
/** The duration of a frame of the user's audio, in milliseconds. */
export const FRAME_MS = 20;
/** More stretches than are ever in transit at once. */
const REMEMBERED = 1024;

/** The messages to a device other than audio. */
export type ToDevice =
  /** The following audio belongs to this item. */
  | { readonly type: 'item'; readonly itemId: string }
  /** Drops unplayed sound. */
  | { readonly type: 'clear' }
  /** A result was told, and the user has heard it. */
  | { readonly type: 'told' };

/** The messages from a device other than audio. */
export type FromDevice =
  | { readonly type: 'played'; readonly itemId: string; readonly playedMs: number }
  /** Makes the background work return its result. */
  | { readonly type: 'finish' };

export const textOf = (data: RawData): string => (data as Buffer).toString();

/** The audio in transit in one direction, with the delay of each stretch. */
export class TimedSound {
  readonly #sentAt = new Float64Array(REMEMBERED);
  readonly #lateness: number[];
  #sent = 0;

  /** Each stretch that arrives adds to `lateness`, in milliseconds. */
  constructor(lateness: number[]) {
    this.#lateness = lateness;
  }

  /** Returns a stretch of sound that is sent now. */
  next(durationMs: number): Buffer {
    this.#sent += 1;
    const bytes = Buffer.alloc(durationMs * SAMPLES_PER_MS * BYTES_PER_SAMPLE);
    bytes.writeUInt32LE(this.#sent);
    this.#sentAt[this.#sent % REMEMBERED] = performance.now();
    return bytes;
  }

  /** Records the arrival of a stretch; its first bytes are enough. */
  arrived(bytes: Buffer): void {
    const number = bytes.readUInt32LE();
    if (number === 0 || number > this.#sent) throw new Error(`Nobody sent the sound ${number}`);
    this.#lateness.push(performance.now() - (this.#sentAt[number % REMEMBERED] ?? NaN));
  }
}
