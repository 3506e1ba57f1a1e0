// Sound of the user that nobody has heard: kept while nobody can take it, and what was said
// to a connection that ended before it was understood.
//
// Owns:     what is to be given to the next who can hear, and what was given lately.
// Does not: know who hears, or when somebody speaks.
//
// Invariants
//   USER-SOUND-1. What is kept is the newest `maxMs`, and is given in order, once.
//   USER-SOUND-2. What was given lately is remembered for as long as it may have to be given again:
//       while the user speaks up to `maxMs`, else so much as a wire takes to notice that they do.

import type { AudioFrame } from './audio-frame.ts';
import { createBoundedBuffer, type BoundedBuffer } from './bounded-buffer.ts';
import { RecentSound } from './recent-sound.ts';

/** A wire notices late that somebody has begun to speak. */
const NOTICE_MS = 2000;

export class UserSound {
  readonly #maxMs: number;
  readonly #kept: BoundedBuffer;
  readonly #given = new RecentSound();

  constructor(maxMs: number) {
    this.#maxMs = maxMs;
    this.#kept = createBoundedBuffer({ maxMs, keep: 'newest' });
  }

  /** Nobody can take it now. */
  keep(frame: AudioFrame): void {
    this.#kept.push(frame);
  }

  /** It was given to who listens. `isUnderstood`: nobody speaks whose words are not known yet. */
  given(frame: AudioFrame, isUnderstood: boolean): void {
    const mostMs = isUnderstood ? Math.min(NOTICE_MS, this.#maxMs) : this.#maxMs;
    this.#given.add(frame, mostMs);
  }

  /** Whoever listened is another one. Returns whether any of the newest `ms` is to be given again. */
  again(ms: number): boolean {
    const later = this.#kept.drain();
    const again = this.#given.take(ms);
    for (const frame of [...again, ...later]) this.#kept.push(frame);
    return again.length > 0;
  }

  /** Takes what is kept, in order. */
  take(): readonly AudioFrame[] {
    return this.#kept.drain();
  }

  /** What was given will not be given again. */
  forget(): void {
    this.#given.clear();
  }

  /** There is nobody who speaks. */
  clear(): void {
    this.#kept.clear();
    this.forget();
  }
}
