// The journal as one scope sees it: the number of entries since the last snapshot entry (an entry that stands
// for all before it), and whether an entry is being written.
//
// Owns:     the count, and the order around a snapshot entry.
// Does not: know the content of an entry, or when a snapshot is made (scope-snapshots.ts).
//
// Invariants
//   SCOPE-JOURNAL-1. While a snapshot entry is being written, no other entry of the scope is: later entries
//        wait behind it, however often it has to be retried.
//   SCOPE-JOURNAL-2. Entries do not wait for a snapshot entry that is refused permanently.

import type { Journal, JournalEntry, JournalPosition, JournalQuery } from '../ports/journal.ts';
import { isForGood } from '../ports/journal-error.ts';

export interface ScopeJournalOptions {
  /** Returns whether this entry stands for all before it. */
  standsForAll(entry: JournalEntry): boolean;
  /** Reports that an entry was kept and none is being written. */
  rested(): void;
}

export class ScopeJournal implements Journal {
  readonly #inner: Journal;
  readonly #options: ScopeJournalOptions;
  #sinceAll = 0;
  #underWay = 0;
  /** The snapshot entry being written; later entries wait for `lifted`. */
  #barrier: { readonly lifted: Promise<void>; readonly lift: () => void } | null = null;

  constructor(inner: Journal, options: ScopeJournalOptions) {
    this.#inner = inner;
    this.#options = options;
  }

  /** The number of entries kept since the last snapshot entry. */
  get sinceAll(): number {
    return this.#sinceAll;
  }

  /** Whether no entry is being written. */
  get isIdle(): boolean {
    return this.#underWay === 0 && this.#barrier === null;
  }

  /** Records the number of entries that existed before this process. */
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
      // SCOPE-JOURNAL-2. A snapshot entry that is retried still precedes all others.
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
    if (this.isIdle) this.#options.rested();
  }
}

function barrier(): { readonly lifted: Promise<void>; readonly lift: () => void } {
  let lift = (): void => {};
  const lifted = new Promise<void>((resolve) => (lift = resolve));
  return { lifted, lift };
}
