// Entries that a unit cannot fold: the event does not match the shape for its type, its address does not accept events
// of that type, or its step throws. The unit continues without these entries and records that in another entry, so that
// every later process and version skips the same entries.
//
//   … 17 answer.given {text: 42}   18 entry.set_aside {seq: 17, event: 'answer.given', reason: …} …
//
// Does not: decide when an entry is quarantined (commit-unit.ts).
//
// Invariants
//   QUARANTINE-1. The state of a refolded unit is the same as if the quarantined entries had never been written, except
//       that their numbers remain in use.
//   QUARANTINE-2. An `entry.set_aside` applies even if this version could fold the entry that it names.
//   QUARANTINE-3. Nothing else is quarantined. An entry of another version, a gap or a damaged journal causes an error.

import { JournalError } from '../ports/journal-error.ts';
import type { JournalEntry } from '../ports/journal.ts';
import type { UnitEvent } from './unit-body.ts';
import type { QuarantinedEntry } from '../contracts/session-views.ts';

export const QUARANTINED = 'entry.set_aside';

/** The actor name of entries about the unit itself. */
export const UNIT = 'unit';

/** The event that quarantines another entry. */
export interface Quarantine extends UnitEvent {
  readonly type: typeof QUARANTINED;
  /** The number of the entry to quarantine. */
  readonly seq: number;
  /** The type of that entry's event. */
  readonly event: string;
  readonly reason: string;
  /** True if the unit ended because of the quarantine, as in earlier versions. @defaultValue false */
  readonly ends?: true;
}

/** How an entry that cannot be folded is handled; see `RuntimeOptions.onUnfoldable`. */
export type OnUnfoldable = 'set_aside' | 'lose';

/** The error for an entry that cannot be folded. It is reported if the entry is quarantined, and thrown otherwise. */
export class UnfoldableEntry extends JournalError {
  readonly entry: QuarantinedEntry;
  constructor(entry: QuarantinedEntry, cause: unknown, what = 'It is quarantined') {
    const { scope, unit, seq, event, reason } = entry;
    super(
      'UNFOLDABLE_ENTRY',
      `Entry ${seq} of ${unit} in ${scope} (\`${event}\`) cannot be taken in: ${reason}. ${what}`,
      { retryable: false, cause },
    );
    this.entry = entry;
  }
}

/** Returns the error for an entry that another process quarantined; undefined if no process did. */
export function quarantineErrorOf(
  { scope, unit, seq, event }: JournalEntry,
  entries: readonly JournalEntry[],
): UnfoldableEntry | undefined {
  for (const { unit: of, event: by } of entries)
    if (of === unit && isQuarantine(by) && by.seq === seq)
      return new UnfoldableEntry({ scope, unit, seq, event: event.type, reason: by.reason }, null);
  return undefined;
}

/** Returns the numbers of the entries that are quarantined by these entries of a unit. */
export function quarantinedIn(entries: Iterable<JournalEntry>): Set<number> {
  const seqs = new Set<number>();
  for (const { event } of entries) if (isQuarantine(event)) seqs.add(event.seq);
  return seqs;
}

export function isQuarantine(event: UnitEvent): event is Quarantine {
  return event.type === QUARANTINED && 'seq' in event && typeof event.seq === 'number';
}
