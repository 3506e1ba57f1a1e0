// Journals that a test holds back or lets fail, to see what waits for them.

import { isAskedFor } from '../../src/actors/ports/journal.ts';
import type { JournalEntry, JournalPosition } from '../../src/entries/journal.ts';
import type { Journal } from '../../src/index.ts';

/** What a journal does that is asked to trim: it deletes what is before, of the same scope. */
export function trimTo(kept: JournalEntry[], { scope, unit, seq }: JournalPosition): void {
  const at = kept.findIndex((one) => one.scope === scope && one.unit === unit && one.seq === seq);
  const rest = kept.filter((one, index) => index >= at || one.scope !== scope);
  kept.splice(0, kept.length, ...rest);
}

export interface GatedJournal extends Journal {
  /** Appends that were begun and are not kept yet, oldest first. */
  readonly waiting: readonly JournalEntry[];
  /** What was kept, in the order of keeping. */
  readonly kept: readonly JournalEntry[];
  /** Keeps the oldest that waits. */
  keepOne(): void;
  /** Keeps what waits, and from now on everything at once. */
  open(): void;
  /** From now on everything waits. */
  shut(): void;
}

/** A slow journal: an append resolves when the test says so. Begins open. */
export function gatedJournal(): GatedJournal {
  const waiting: { entry: JournalEntry; resolve: () => void }[] = [];
  const kept: JournalEntry[] = [];
  let isOpen = true;
  const keepOne = (): void => {
    const next = waiting.shift();
    if (!next) throw new Error('Nothing waits to be kept');
    kept.push(next.entry);
    next.resolve();
  };
  return {
    get waiting() {
      return waiting.map(({ entry }) => entry);
    },
    kept,
    keepOne,
    open() {
      isOpen = true;
      while (waiting.length > 0) keepOne();
    },
    shut() {
      isOpen = false;
    },
    append(entry) {
      if (isOpen) {
        kept.push(entry);
        return Promise.resolve();
      }
      return new Promise<void>((resolve) => {
        waiting.push({ entry, resolve });
      });
    },
    read: (query = {}) => kept.filter((entry) => isAskedFor(query, entry)),
    trim: (entry) => trimTo(kept, entry),
  };
}

export interface FailingJournal extends Journal {
  readonly kept: readonly JournalEntry[];
  /** Appends that failed. */
  readonly failed: readonly JournalEntry[];
  /** The next appends fail, this often. */
  failNext(times: number): void;
}

/** A journal that fails when told to: by throwing, or by rejecting. */
export function failingJournal(how: 'throws' | 'rejects'): FailingJournal {
  const kept: JournalEntry[] = [];
  const failed: JournalEntry[] = [];
  let failures = 0;
  return {
    kept,
    failed,
    failNext(times) {
      failures = times;
    },
    append(entry) {
      if (failures > 0) {
        failures -= 1;
        failed.push(entry);
        const error = new Error('the disk is full');
        if (how === 'throws') throw error;
        return Promise.reject(error);
      }
      kept.push(entry);
      return how === 'throws' ? undefined : Promise.resolve();
    },
    read: (query = {}) => kept.filter((entry) => isAskedFor(query, entry)),
    trim: (entry) => trimTo(kept, entry),
  };
}
