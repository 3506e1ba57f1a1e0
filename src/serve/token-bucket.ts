// Limits the rate of a client or user: a burst, and a number of tokens per second.

import type { Clock } from '../actors/ports/environment.ts';

/** The rate of a token bucket. */
export interface ServeRate {
  /** The maximum amount that may be taken at one time. */
  readonly burst: number;
  /** The number of tokens that are added per second, up to `burst`. */
  readonly perSecond: number;
}

export class TokenBucket {
  readonly #clock: Clock;
  readonly #rate: ServeRate;
  #tokens: number;
  #filledAt: number;

  constructor(clock: Clock, rate: ServeRate) {
    this.#clock = clock;
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#filledAt = clock.now();
  }

  /** The time that an empty bucket needs to become full. */
  get fillMs(): number {
    return (1_000 * this.#rate.burst) / this.#rate.perSecond;
  }

  /** Takes `amount` if the bucket contains that much. Otherwise takes nothing and returns false. */
  take(amount = 1): boolean {
    const now = this.#clock.now();
    const { burst, perSecond } = this.#rate;
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#filledAt) / 1000) * perSecond);
    this.#filledAt = now;
    if (this.#tokens < amount) return false;
    this.#tokens -= amount;
    return true;
  }
}
