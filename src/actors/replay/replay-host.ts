// A host for units that are only looked at: time stands still, nothing is waited for, nothing
// is written down, and nobody carries out what their effects would be.

import type { JournalEntry } from '../ports/journal.ts';
import type { CommitUnit, UnitBody } from '../runtime/commit-unit.ts';
import { createHost, type Host } from '../runtime/host.ts';
import { isSetAside, UnfoldableEntry } from '../runtime/set-aside.ts';

/** `at`: when what is looked at begins; the times after that are those of its entries. */
export function replayHost(at: number): Host {
  return createHost({
    environment: {
      clock: { now: () => at },
      scheduler: { schedule: () => () => {}, yieldThen: () => {} },
      ids: { next: (prefix) => `${prefix}_replay` },
      random: { next: () => 0 },
    },
    journal: { append() {}, read: () => [] },
  });
}

/** What became of one entry. */
export interface TakenEntry {
  /** Would the unit accept it here? */
  readonly isAccepted: boolean;
  /** Why it is not taken in; null: it is. */
  readonly setAside: string | null;
}

/**
 * Takes entries into a unit that is only looked at, one by one. One that cannot be taken in is set
 * aside: `begin` puts the unit back to where the entries begin, and those before it are folded again.
 */
export class EntryByEntry {
  readonly #unit: CommitUnit;
  readonly #begin: () => void;
  readonly #between: () => void;
  readonly #taken: JournalEntry[] = [];

  /** `between`: what happens in a process that runs before the next entry is taken in. */
  constructor(unit: CommitUnit, begin: () => void, between: () => void = () => {}) {
    this.#unit = unit;
    this.#begin = begin;
    this.#between = between;
  }

  /** `reason`: why a later entry sets it aside; null: none does. */
  take(entry: JournalEntry, reason: string | null): TakenEntry {
    if (isSetAside(entry.event)) {
      this.#unit.refold([entry]);
      return { isAccepted: true, setAside: null };
    }
    if (reason !== null) return this.#without(entry, reason);
    const isAccepted = this.#unit.wouldAccept(entry);
    try {
      const [malformed] = this.#unit.refold([entry]);
      if (malformed) return { isAccepted: false, setAside: malformed.reason };
    } catch (error) {
      if (!(error instanceof UnfoldableEntry)) throw error;
      this.#begin();
      for (const before of this.#taken) {
        this.#between();
        this.#unit.skip(before.seq - 1);
        this.#unit.refold([before]);
      }
      return this.#without(entry, error.entry.reason);
    }
    this.#taken.push(entry);
    return { isAccepted, setAside: null };
  }

  #without({ seq }: JournalEntry, setAside: string): TakenEntry {
    this.#unit.skip(seq);
    return { isAccepted: false, setAside };
  }
}

/** What a unit that is only looked at does with what follows: nothing. */
export const nothingFollows = {
  release() {},
  crashed() {},
  journalRefused() {},
} satisfies Partial<UnitBody>;
