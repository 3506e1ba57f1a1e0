// A rate of one client or user: a burst, and then so much each second.

import type { Clock } from '../actors/ports/environment.ts';

/** The rate of a token bucket. */
export interface ServeRate {
  /** The burst: what may come at once. */
  readonly burst: number;
  /** The tokens that are added each second, up to `burst`. */
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

  /** The longest time until it is full. */
  get fillMs(): number {
    return (1_000 * this.#rate.burst) / this.#rate.perSecond;
  }

  /** Takes `amount` if it is there; takes nothing if not. */
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
