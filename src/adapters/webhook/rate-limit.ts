// A token bucket: a burst, and then a constant rate.

/** A rate of requests. */
export interface Rate {
  /** The number of requests at once. */
  readonly burst: number;
  /** The number added each second, up to `burst`. */
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

  /** Takes a token if there is one. `now` in milliseconds. */
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
