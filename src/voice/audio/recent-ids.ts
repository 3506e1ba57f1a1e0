// A bounded set of the newest ids, for example to recognise late events of responses that have ended.

import { forgetOldest } from '../../values/forget-oldest.ts';

const DEFAULT_MAX_SIZE = 100;

export class RecentIds {
  readonly #ids = new Set<string>();
  readonly #maxSize: number;

  /** @param maxSize The maximum number of ids. The oldest id is removed first. */
  constructor(maxSize = DEFAULT_MAX_SIZE) {
    this.#maxSize = maxSize;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Adds an id. Returns whether the id is new. */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    forgetOldest(this.#ids, this.#maxSize);
    return true;
  }

  /** All ids, oldest first. */
  get all(): readonly string[] {
    return [...this.#ids];
  }

  clear(): void {
    this.#ids.clear();
  }
}
