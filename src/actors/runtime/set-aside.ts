// Entries that a unit cannot take in: their event does not have the shape that its type says, or folding
// them throws. The unit goes on without them; that it does so is itself an entry, so that every later
// process, and every later version, goes on without the same ones.
//
//   … 17 answer.given {text: 42}   18 entry.set_aside {seq: 17, event: 'answer.given', reason: …} …
//
// Does not: decide when an entry is set aside (commit-unit.ts), or restore a unit without it (its body).
//
// Invariants
//   ASIDE-1. A unit that was refolded is what it would be if the entries that are set aside had
//            never been written, but for their numbers.
//   ASIDE-2. What an entry of this kind says is honoured also where this version could fold the entry.
//   ASIDE-3. Nothing else is set aside: an entry of another version, a gap and a damaged journal are errors.

import { JournalError } from '../ports/journal-error.ts';
import type { JournalEntry } from '../ports/journal.ts';
import type { UnitEvent } from './unit-body.ts';
import type { SetAsideEntry } from '../contracts/session-views.ts';

export const SET_ASIDE = 'entry.set_aside';

/** The actor of entries that are about the unit itself. */
export const UNIT = 'unit';

/** The event of such an entry. */
export interface SetAside extends UnitEvent {
  readonly type: typeof SET_ASIDE;
  /** The number of the entry that is set aside. */
  readonly seq: number;
  /** The type of its event. */
  readonly event: string;
  readonly reason: string;
  /** The unit has ended with it. @defaultValue false */
  readonly ends?: true;
}

/** What becomes of a unit with an entry that it cannot take in; see `RuntimeOptions.onUnfoldable`. */
export type OnUnfoldable = 'set_aside' | 'lose';

/** An entry that cannot be taken in, as an error: reported where it is set aside, thrown where it is not. */
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

/** The error of an entry that another process set aside; undefined: none did. */
export function asideErrorOf(
  { scope, unit, seq, event }: JournalEntry,
  entries: readonly JournalEntry[],
): UnfoldableEntry | undefined {
  for (const { unit: of, event: by } of entries)
    if (of === unit && isSetAside(by) && by.seq === seq)
      return new UnfoldableEntry({ scope, unit, seq, event: event.type, reason: by.reason }, null);
  return undefined;
}

/** The numbers of the entries of a unit that are set aside by others of its entries. */
export function setAsideIn(entries: Iterable<JournalEntry>): Set<number> {
  const seqs = new Set<number>();
  for (const { event } of entries) if (isSetAside(event)) seqs.add(event.seq);
  return seqs;
}

export function isSetAside(event: UnitEvent): event is SetAside {
  return event.type === SET_ASIDE && 'seq' in event && typeof event.seq === 'number';
}
