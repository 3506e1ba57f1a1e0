// Folds entries into a replayed unit one by one, as the process that wrote them did.
//
// Does not: depend on sessions or subagents.

import type { JournalEntry } from '../ports/journal.ts';
import type { AnyUnit, UnitBody } from '../runtime/commit-unit.ts';
import { createHost, type Host } from '../runtime/host.ts';
import { isQuarantine } from '../runtime/quarantine.ts';

/** @param at The start time of the replay; later times come from the entries. */
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

/** The result of folding one entry. */
export interface TakenEntry {
  /** Whether the unit would accept the entry in its current state. */
  readonly isAccepted: boolean;
  /** Why the entry is quarantined; null if it is folded. */
  readonly setAside: string | null;
}

/**
 * Folds an entry into a replayed unit.
 * @param reason Why a later entry quarantines this entry; null if none does.
 */
export function takenEntry(unit: AnyUnit, entry: JournalEntry, reason: string | null): TakenEntry {
  if (reason !== null) {
    unit.setSequence(entry.seq);
    return { isAccepted: false, setAside: reason };
  }
  const isAccepted = isQuarantine(entry.event) || unit.wouldAccept(entry);
  const [unfoldable] = unit.refold([entry]);
  return unfoldable
    ? { isAccepted: false, setAside: unfoldable.reason }
    : { isAccepted, setAside: null };
}

/** Handlers that do nothing, so that a replayed unit executes no effects. */
export const nothingFollows = {
  release() {},
  crashed() {},
  journalRefused() {},
} satisfies Partial<UnitBody>;
