// Which messages were taken already: bounded, and never forgotten while they would still be
// accepted a second time.

/** Remembers keys until they expire; the newest, when it is full of keys that never do. */
export class ReplayGuard {
  readonly #max: number;
  /** Until when each is remembered, the oldest first. */
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
