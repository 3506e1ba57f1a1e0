// The newest ids of a kind: what is known of responses that are over, for as long as
// something late may come about them.

const DEFAULT_MAX_SIZE = 100;

export class RecentIds {
  readonly #ids = new Set<string>();
  readonly #maxSize: number;

  /** Beyond `maxSize` the id that was added first is forgotten. */
  constructor(maxSize = DEFAULT_MAX_SIZE) {
    this.#maxSize = maxSize;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Returns whether it is new. */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    for (const oldest of this.#ids) {
      if (this.#ids.size <= this.#maxSize) break;
      this.#ids.delete(oldest);
    }
    return true;
  }

  /** Oldest first. */
  get all(): readonly string[] {
    return [...this.#ids];
  }

  clear(): void {
    this.#ids.clear();
  }
}
