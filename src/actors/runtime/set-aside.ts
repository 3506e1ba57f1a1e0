// Entries that a unit cannot fold: their event does not match the shape of its type, or their step throws.
// The unit continues without them; that fact is itself an entry, so that every later process and every later
// version skips the same entries.
//
//   … 17 answer.given {text: 42}   18 entry.set_aside {seq: 17, event: 'answer.given', reason: …} …
//
// Does not: decide when an entry is set aside (commit-unit.ts).
//
// Invariants
//   ASIDE-1. A refolded unit has the state that it would have if the entries that are set aside had never
//            been written, except for their numbers.
//   ASIDE-2. An entry of this kind is honoured even if this version could fold the entry that it names.
//   ASIDE-3. Nothing else is set aside: an entry of another version, a gap and a damaged journal are errors.

import { JournalError } from '../ports/journal-error.ts';
import type { JournalEntry } from '../ports/journal.ts';
import type { UnitEvent } from './unit-body.ts';
import type { SetAsideEntry } from '../contracts/session-views.ts';

export const SET_ASIDE = 'entry.set_aside';

/** The actor name of entries about the unit itself. */
export const UNIT = 'unit';

/** The event of an entry that sets another one aside. */
export interface SetAside extends UnitEvent {
  readonly type: typeof SET_ASIDE;
  /** The number of the entry that is set aside. */
  readonly seq: number;
  /** The type of its event. */
  readonly event: string;
  readonly reason: string;
  /** True if the unit has ended with it, as those of earlier versions did. @defaultValue false */
  readonly ends?: true;
}

/** The treatment of a unit with an entry that it cannot fold; see `RuntimeOptions.onUnfoldable`. */
export type OnUnfoldable = 'set_aside' | 'lose';

/** The error about an entry that cannot be folded: reported if the entry is set aside, thrown otherwise. */
export class UnfoldableEntry extends JournalError {
  readonly entry: SetAsideEntry;
  constructor(entry: SetAsideEntry, cause: unknown, what = 'It is set aside') {
    const { scope, unit, seq, event, reason } = entry;
    super(
      'UNFOLDABLE_ENTRY',
      `Entry ${seq} of ${unit} in ${scope} (\`${event}\`) cannot be taken in: ${reason}. ${what}`,
      { retryable: false, cause },
    );
    this.entry = entry;
  }
}

/** Returns the error of an entry that another process set aside; undefined if there is none. */
export function asideErrorOf(
  { scope, unit, seq, event }: JournalEntry,
  entries: readonly JournalEntry[],
): UnfoldableEntry | undefined {
  for (const { unit: of, event: by } of entries)
    if (of === unit && isSetAside(by) && by.seq === seq)
      return new UnfoldableEntry({ scope, unit, seq, event: event.type, reason: by.reason }, null);
  return undefined;
}

/** Returns the numbers of the entries of a unit that other entries of it set aside. */
export function setAsideIn(entries: Iterable<JournalEntry>): Set<number> {
  const seqs = new Set<number>();
  for (const { event } of entries) if (isSetAside(event)) seqs.add(event.seq);
  return seqs;
}

export function isSetAside(event: UnitEvent): event is SetAside {
  return event.type === SET_ASIDE && 'seq' in event && typeof event.seq === 'number';
}
