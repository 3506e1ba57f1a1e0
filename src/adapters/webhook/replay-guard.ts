// Remembers accepted messages: bounded, and for as long as they would be accepted a second time.

/** Remembers keys until they expire; if it is full of keys that never do, the newest. */
export class ReplayGuard {
  readonly #max: number;
  /** The expiry of each key, the oldest first. */
  readonly #until = new Map<string, number>();

  constructor(max: number) {
    this.#max = max;
  }

  has(key: string, now: number): boolean {
    const until = this.#until.get(key);
    return until !== undefined && until >= now;
  }

  remember(key: string, until: number, now: number): void {
    this.#until.delete(key);
    for (const [old, oldUntil] of this.#until) {
      if (oldUntil >= now && this.#until.size < this.#max) break;
      this.#until.delete(old);
    }
    this.#until.set(key, until);
  }
}
