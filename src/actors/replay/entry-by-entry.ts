// Folds entries into a replayed unit, one by one, as the process that wrote them did.
//
// Owns:     setting an entry aside that cannot be folded.
// Does not: know sessions or subagents.

import type { JournalEntry } from '../ports/journal.ts';
import type { AnyUnit, UnitBody } from '../runtime/commit-unit.ts';
import { createHost, type Host } from '../runtime/host.ts';
import { UnfoldableEntry, isSetAside } from '../runtime/set-aside.ts';

/** @param at The start of the replay; later times are those of its entries. */
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

/** The fate of one entry. */
export interface TakenEntry {
  /** Whether the unit would accept it here. */
  readonly isAccepted: boolean;
  /** The reason why it is set aside; null if it is folded. */
  readonly setAside: string | null;
}

/**
 * Folds entries into a replayed unit, one by one. An entry that cannot be folded is set aside: `begin` resets
 * the unit to the state before the entries, and those before it are folded again.
 */
export class EntryByEntry {
  readonly #unit: AnyUnit;
  readonly #begin: () => void;
  readonly #between: () => void;
  readonly #taken: JournalEntry[] = [];

  /** @param between The work that a running process does before the next entry is folded. */
  constructor(unit: AnyUnit, begin: () => void, between: () => void = () => {}) {
    this.#unit = unit;
    this.#begin = begin;
    this.#between = between;
  }

  /** @param reason The reason why a later entry sets it aside; null if none does. */
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
        this.#unit.setSequence(before.seq - 1);
        this.#unit.refold([before]);
      }
      return this.#without(entry, error.entry.reason);
    }
    this.#taken.push(entry);
    return { isAccepted, setAside: null };
  }

  #without({ seq }: JournalEntry, setAside: string): TakenEntry {
    this.#unit.setSequence(seq);
    return { isAccepted: false, setAside };
  }
}

/** Handlers that ignore every consequence, for a replayed unit. */
export const nothingFollows = {
  release() {},
  crashed() {},
  journalRefused() {},
} satisfies Partial<UnitBody>;
