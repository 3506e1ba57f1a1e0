// How much may come in: a burst, and then so much each second.

/** How many requests. */
export interface Rate {
  /** At once. */
  readonly burst: number;
  /** Added each second, up to `burst`. */
  readonly perSecond: number;
}

export class RateLimit {
  readonly #rate: Rate;
  #left: number;
  #filledAt = Number.NEGATIVE_INFINITY;

  constructor(rate: Rate) {
    this.#rate = rate;
    this.#left = rate.burst;
  }

  /** Takes one if there is one. `now` in milliseconds. */
  take(now: number): boolean {
    const { burst, perSecond } = this.#rate;
    const seconds = Math.max(0, now - this.#filledAt) / 1000;
    this.#left = Math.min(burst, this.#left + seconds * perSecond);
    this.#filledAt = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
