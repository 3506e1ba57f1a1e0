// Journals that a test can delay or make fail, to see which actions wait for them.

import { isAskedFor } from '../../src/actors/ports/journal.ts';
import type { JournalEntry, JournalPosition } from '../../src/entries/journal.ts';
import type { Journal } from '../../src/index.ts';

/** Trims as a journal does: deletes the earlier entries of the same scope. */
export function trimTo(kept: JournalEntry[], { scope, unit, seq }: JournalPosition): void {
  const at = kept.findIndex((one) => one.scope === scope && one.unit === unit && one.seq === seq);
  const rest = kept.filter((one, index) => index >= at || one.scope !== scope);
  kept.splice(0, kept.length, ...rest);
}

export interface GatedJournal extends Journal {
  /** The appends that have started but are not stored yet, oldest first. */
  readonly waiting: readonly JournalEntry[];
  /** The stored entries, in the order in which they were stored. */
  readonly kept: readonly JournalEntry[];
  /** Stores the oldest waiting entry. */
  keepOne(): void;
  /** Stores all waiting entries, and stores every later entry immediately. */
  open(): void;
  /** Makes every append wait from now on. */
  shut(): void;
}

/**
 * Creates a slow journal, in which an append resolves when the test allows it. At first, every append is allowed.
 */
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
  /** The appends that failed. */
  readonly failed: readonly JournalEntry[];
  /** Makes this many of the next appends fail. */
  failNext(times: number): void;
}

/** Creates a journal that fails on request, either by throwing or by rejecting. */
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
