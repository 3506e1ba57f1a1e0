// The journal as one scope sees it: how much was written since something stood for all that is
// before it, and whether anything is being written at the moment.
//
// Owns:     the count, and the order around an entry that stands for all before it.
// Does not: know what is in an entry, or when one is made that stands for all (scope-snapshots.ts).
//
// Invariants
//   SCOPE-JOURNAL-1. While an entry that stands for all before it is on its way, nothing else of the scope is
//        written: what comes meanwhile waits behind it, however often it has to be tried.
//   SCOPE-JOURNAL-2. Nobody waits for an entry that is refused for good.

import type { Journal, JournalEntry, JournalPosition, JournalQuery } from '../ports/journal.ts';
import { isForGood } from '../ports/journal-error.ts';

export interface ScopeJournalOptions {
  /** Does this entry stand for all before it? */
  standsForAll(entry: JournalEntry): boolean;
  /** Something was kept, and nothing is on its way. */
  rested(): void;
}

export class ScopeJournal implements Journal {
  readonly #inner: Journal;
  readonly #options: ScopeJournalOptions;
  #sinceAll = 0;
  #underWay = 0;
  /** One that stands for all is on its way. */
  #barrier: { readonly lifted: Promise<void>; readonly lift: () => void } | null = null;

  constructor(inner: Journal, options: ScopeJournalOptions) {
    this.#inner = inner;
    this.#options = options;
  }

  /** Entries that were kept since one that stands for all before it. */
  get sinceAll(): number {
    return this.#sinceAll;
  }

  /** Nothing is on its way. */
  get isAtRest(): boolean {
    return this.#underWay === 0 && this.#barrier === null;
  }

  /** So many entries were there before this process. */
  found(entries: number): void {
    this.#sinceAll = entries;
  }

  append(entry: JournalEntry): void | Promise<void> {
    if (this.#options.standsForAll(entry)) return this.#appendForAll(entry);
    if (this.#barrier) return this.#barrier.lifted.then(() => this.append(entry));
    const appended = this.#inner.append(entry);
    if (appended === undefined) {
      this.#kept();
      return undefined;
    }
    this.#underWay += 1;
    return Promise.resolve(appended).then(
      () => {
        this.#underWay -= 1;
        this.#kept();
      },
      (error: unknown) => {
        this.#underWay -= 1;
        throw error;
      },
    );
  }

  read(query?: JournalQuery): readonly JournalEntry[] | Promise<readonly JournalEntry[]> {
    return this.#inner.read(query);
  }

  claim(scope: string): void | Promise<void> {
    return this.#inner.claim?.(scope);
  }

  release(scope: string): void | Promise<void> {
    return this.#inner.release?.(scope);
  }

  trim(entry: JournalPosition): void | Promise<void> {
    return this.#inner.trim?.(entry);
  }

  /** SCOPE-JOURNAL-1 */
  async #appendForAll(entry: JournalEntry): Promise<void> {
    this.#barrier ??= barrier();
    try {
      await this.#inner.append(entry);
      this.#sinceAll = 0;
      this.#lift();
    } catch (error) {
      // SCOPE-JOURNAL-2. One that is tried again is still before all others.
      if (isForGood(error)) this.#lift();
      throw error;
    }
  }

  #lift(): void {
    this.#barrier?.lift();
    this.#barrier = null;
  }

  #kept(): void {
    this.#sinceAll += 1;
    if (this.isAtRest) this.#options.rested();
  }
}

function barrier(): { readonly lifted: Promise<void>; readonly lift: () => void } {
  let lift = (): void => {};
  const lifted = new Promise<void>((resolve) => (lift = resolve));
  return { lifted, lift };
}
