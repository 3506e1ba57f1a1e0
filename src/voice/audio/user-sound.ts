// Sound of the user that no model has understood: kept while no model can take it, or sent to a connection
// that ended before the transcript came.
//
// Owns:     the sound for the next model, and the sound sent lately.
// Does not: know which model listens, or when the user speaks.
//
// Invariants
//   USER-SOUND-1. The newest `maxMs` of sound is kept, and is sent in order, once.
//   USER-SOUND-2. Sent sound is remembered as long as it may have to be sent again: up to `maxMs` while the
//       user speaks, otherwise for as long as a transport takes to detect speech.

import type { AudioFrame } from './audio-frame.ts';
import { createBoundedBuffer, type BoundedBuffer, RecentSound } from './bounded-buffer.ts';
/** Lag with which a transport detects the start of speech. */
const NOTICE_MS = 2000;

export class UserSound {
  readonly #maxMs: number;
  readonly #kept: BoundedBuffer;
  readonly #given = new RecentSound();

  constructor(maxMs: number) {
    this.#maxMs = maxMs;
    this.#kept = createBoundedBuffer({ maxMs, keep: 'newest' });
  }

  /** Keeps a frame that no model can take now. */
  keep(frame: AudioFrame): void {
    this.#kept.push(frame);
  }

  /** Records a frame that was sent. `isUnderstood`: no words of the user are still unknown. */
  given(frame: AudioFrame, isUnderstood: boolean): void {
    const mostMs = isUnderstood ? Math.min(NOTICE_MS, this.#maxMs) : this.#maxMs;
    this.#given.add(frame, mostMs);
  }

  /** Handles a change of the model. Returns whether any of the newest `ms` has to be sent again. */
  again(ms: number): boolean {
    const later = this.#kept.drain();
    const again = this.#given.take(ms);
    for (const frame of [...again, ...later]) this.#kept.push(frame);
    return again.length > 0;
  }

  /** Takes the kept frames, in order. */
  take(): readonly AudioFrame[] {
    return this.#kept.drain();
  }

  /** Forgets the sent sound: it will not be sent again. */
  forget(): void {
    this.#given.clear();
  }

  /** Drops all sound when the client is gone. */
  clear(): void {
    this.#kept.clear();
    this.forget();
  }
}
