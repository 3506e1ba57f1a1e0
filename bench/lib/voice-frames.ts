// The frames between the two ends of a measured voice session: stretches of sound that
// carry a number, so that each is known again at the other end and its way can be timed.
// Between the user's device and whoever is measured there are binary frames of PCM16 and the
// few JSON messages below.

import type { RawData } from 'ws';

export const SAMPLES_PER_MS = 24;
const BYTES_PER_SAMPLE = 2;
/** Sound of the user comes in frames so long. */
export const FRAME_MS = 20;
/** More than are ever on their way at once. */
const REMEMBERED = 1024;

/** The messages to a device beside the sound. */
export type ToDevice =
  /** The sound that follows is of this item. */
  | { readonly type: 'item'; readonly itemId: string }
  /** Unplayed sound is dropped. */
  | { readonly type: 'clear' }
  /** A result was told, and is known to be heard. */
  | { readonly type: 'told' };

/** The messages of a device beside the sound. */
export type FromDevice =
  | { readonly type: 'played'; readonly itemId: string; readonly playedMs: number }
  /** The work that goes on in the background has its result. */
  | { readonly type: 'finish' };

export const textOf = (data: RawData): string => (data as Buffer).toString();

/** Sound on its way in one direction, and how long each stretch of it took. */
export class TimedSound {
  readonly #sentAt = new Float64Array(REMEMBERED);
  readonly #lateness: number[];
  #sent = 0;

  /** Each stretch that arrives adds to `lateness`, in milliseconds. */
  constructor(lateness: number[]) {
    this.#lateness = lateness;
  }

  /** A stretch of sound that leaves now. */
  next(durationMs: number): Buffer {
    this.#sent += 1;
    const bytes = Buffer.alloc(durationMs * SAMPLES_PER_MS * BYTES_PER_SAMPLE);
    bytes.writeUInt32LE(this.#sent);
    this.#sentAt[this.#sent % REMEMBERED] = performance.now();
    return bytes;
  }

  /** It has arrived; its first bytes are enough. */
  arrived(bytes: Buffer): void {
    const number = bytes.readUInt32LE();
    if (number === 0 || number > this.#sent) throw new Error(`Nobody sent the sound ${number}`);
    this.#lateness.push(performance.now() - (this.#sentAt[number % REMEMBERED] ?? NaN));
  }
}
