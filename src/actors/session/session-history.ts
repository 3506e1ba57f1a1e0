// What the journal has of a session: where the life begins that goes on, and whose entries are
// part of it.
//
//   ── a life that was closed ──┤ opened ── … ── snapshot ── … the end
//                                                └ this is folded
//
// Does not: fold anything (recovery.ts).

import { journalCut } from '../ports/journal-error.ts';
import { byUnit, type JournalEntry } from '../ports/journal.ts';
import { isUnreadable, unreadable } from '../runtime/snapshot-forms.ts';
import { timeAwake } from '../runtime/time-awake.ts';
import { OPENED } from './session-inputs.ts';
import { SNAPSHOT, SNAPSHOT_FORMS, snapshotIn, type SessionSnapshot } from './snapshots.ts';

/** With these a process goes on with it. */
const GOES_ON: ReadonlySet<string> = new Set(['session.recovered', 'session.woken']);

export class SessionHistory {
  /** Nothing goes on: there is nothing, or what there was is closed. */
  readonly isNew: boolean;
  /** What the life that goes on had become before the entries that are folded; null: they are all of it. */
  readonly snapshot: SessionSnapshot | null;
  /** A snapshot of it cannot be read: what it follows from is folded instead. */
  readonly hasUnreadable: boolean;
  /** So many entries are folded. */
  readonly folded: number;
  /** When the last entry was accepted; milliseconds since 1970. */
  readonly lastAt: number;
  /** So long the life that goes on was in some process, in milliseconds. */
  readonly awakeMs: number;
  /** The entries that are folded, by their unit. */
  readonly units: ReadonlyMap<string, readonly JournalEntry[]>;
  readonly #before: ReadonlyMap<string, readonly JournalEntry[]>;

  /**
   * `entries`: all that the journal has of the session `id`.
   * @throws {JournalError} `JOURNAL_CUT` where the beginning of the life is not there; `JOURNAL_VERSION`
   * where all that is there of it is a snapshot that this version cannot read.
   */
  constructor(entries: readonly JournalEntry[], id: string) {
    this.isNew = !goesOn(entries, id);
    this.hasUnreadable = entries.some((entry) => isUnreadable(entry, SNAPSHOT_FORMS));
    this.lastAt = entries.at(-1)?.at ?? 0;
    const { begins, snapshot } = this.isNew
      ? { begins: entries.length, snapshot: null }
      : beginningOf(entries, id);
    this.snapshot = snapshot;
    const from = this.snapshot ? begins + 1 : begins;
    this.folded = entries.length - from;
    this.awakeMs =
      (this.snapshot?.delegation.awakeMs ?? 0) +
      timeAwake(entries.slice(begins), ({ unit, event }) => unit === id && GOES_ON.has(event.type));
    this.units = byUnit(entries.slice(from));
    this.#before = byUnit(entries.slice(0, from));
  }

  /** It was put away idle, and goes on as if it had never been away. */
  get isAsleep(): boolean {
    return this.snapshot?.isAsleep === true && this.folded === 0;
  }

  /** Those of which it has entries, in whatever life. */
  get unitIds(): Iterable<string> {
    return new Set([...this.#before.keys(), ...this.units.keys()]);
  }

  /** The entries of a unit that are folded. */
  of(unit: string): readonly JournalEntry[] {
    return this.units.get(unit) ?? [];
  }

  /** So many entries of a unit come before these, in this life or an earlier one. */
  before(unit: string): number {
    return this.#before.get(unit)?.at(-1)?.seq ?? 0;
  }
}

/** Is there something in these entries of the session `id` to go on with? */
export function goesOn(entries: readonly JournalEntry[], id: string): boolean {
  return entries.length > 0 && !isClosed(entries, id);
}

/** The end of a session is the last entry of its unit: nobody is left whom it waited for. */
function isClosed(entries: readonly JournalEntry[], id: string): boolean {
  const last = entries.findLast(({ unit }) => unit === id)?.event.type;
  return last === 'subagents.ended' || last === 'deadline.close';
}

interface Beginning {
  /** The index of its entry. */
  readonly begins: number;
  /** Null: it is the opening. */
  readonly snapshot: SessionSnapshot | null;
}

/** The last snapshot that this version can read, or the opening. */
function beginningOf(entries: readonly JournalEntry[], id: string): Beginning {
  for (let begins = entries.length - 1; begins >= 0; begins -= 1) {
    const entry = entries[begins];
    if (entry?.unit !== id) continue;
    const snapshot = snapshotIn(entry);
    if (snapshot || entry.event.type === OPENED) return { begins, snapshot };
  }
  // SF2
  const last = entries.findLast((entry) => isUnreadable(entry, SNAPSHOT_FORMS));
  if (last) throw unreadable(last, SNAPSHOT_FORMS);
  // What was written before there were openings says by its version what is wrong with it.
  const [first] = entries;
  if (first && (first.seq > 1 || first.event.type === SNAPSHOT)) throw journalCut(first);
  return { begins: 0, snapshot: null };
}
