// Reads the journal of a session: finds the beginning of the life that continues, and the entries that belong
// to it.
//
//   ── a life that was closed ──┤ opened ── … ── snapshot ── … the end
//                                                └ this is folded
//
// Does not: fold anything (recovery.ts).

import { journalCut } from '../../ports/journal-error.ts';
import { byUnit, type JournalEntry } from '../../ports/journal.ts';
import { messageOf } from '../../../values/errors.ts';
import { misshapen } from '../../runtime/event-shapes.ts';
import { SET_ASIDE, UnfoldableEntry, asideErrorOf } from '../../runtime/set-aside.ts';
import { isUnreadable, unreadable } from '../../runtime/snapshot-forms.ts';
import { timeAwake } from '../../runtime/time-awake.ts';
import { isOpening, SESSION_SHAPES, LOST } from '../unit/session-entries.ts';
import { SNAPSHOT, SNAPSHOT_FORMS, snapshotIn, type SessionSnapshot } from './snapshots.ts';
/** Events with which a process continues a session. */
const GOES_ON: ReadonlySet<string> = new Set(['session.recovered', 'session.woken']);

export class SessionHistory {
  /** Nothing continues: the journal is empty, or its session was closed. */
  readonly isNew: boolean;
  /** The state of the continuing life before the folded entries; null: the entries hold all of it. */
  readonly snapshot: SessionSnapshot | null;
  /** The entry of this snapshot; null: there is none. */
  readonly snapshotEntry: JournalEntry | null;
  /** Snapshots of a wrong shape, which are not set aside. */
  readonly unfit: readonly UnfoldableEntry[];
  /** A snapshot of it cannot be read: the entries before the snapshot are folded instead. */
  readonly hasUnreadable: boolean;
  /** Number of folded entries. */
  readonly folded: number;
  /** Time at which the last entry was accepted; milliseconds since 1970. */
  readonly lastAt: number;
  /** Time that the continuing life spent in some process, in milliseconds. */
  readonly awakeMs: number;
  /** The folded entries, by their unit. */
  readonly units: ReadonlyMap<string, readonly JournalEntry[]>;
  readonly #before: ReadonlyMap<string, readonly JournalEntry[]>;

  /**
   * `entries`: all entries of the session `id`. `aside`: the numbers of snapshots that are set aside.
   * @throws {JournalError} `JOURNAL_CUT` if the beginning of the life is missing; `JOURNAL_VERSION` if the
   * journal only has a snapshot that this version cannot read.
   */
  constructor(
    entries: readonly JournalEntry[],
    id: string,
    aside: ReadonlySet<number> = new Set(),
  ) {
    const unfit: UnfoldableEntry[] = [];
    this.isNew = !goesOn(entries, id);
    this.hasUnreadable =
      aside.size > 0 || entries.some((entry) => isUnreadable(entry, SNAPSHOT_FORMS));
    this.lastAt = entries.at(-1)?.at ?? 0;
    const { begins, snapshot } = this.isNew
      ? { begins: entries.length, snapshot: null }
      : beginningOf(entries, id, aside, unfit);
    this.unfit = unfit;
    this.snapshot = snapshot;
    this.snapshotEntry = snapshot ? (entries[begins] ?? null) : null;
    const from = this.snapshot ? begins + 1 : begins;
    this.folded = entries.length - from;
    this.awakeMs =
      (this.snapshot?.delegation.awakeMs ?? 0) +
      timeAwake(entries.slice(begins), ({ unit, event }) => unit === id && GOES_ON.has(event.type));
    this.units = byUnit(entries.slice(from));
    this.#before = byUnit(entries.slice(0, from));
  }

  /** True if the session was put away idle, and continues as if it had never been away. */
  get isAsleep(): boolean {
    return this.snapshot?.isAsleep === true && this.folded === 0;
  }

  /** Ids of the units that have entries, in any life. */
  get unitIds(): Iterable<string> {
    return new Set([...this.#before.keys(), ...this.units.keys()]);
  }

  /** Returns the folded entries of a unit. */
  of(unit: string): readonly JournalEntry[] {
    return this.units.get(unit) ?? [];
  }

  /** Returns the number of a unit's entries before these, in this life or an earlier one. */
  before(unit: string): number {
    return this.#before.get(unit)?.at(-1)?.seq ?? 0;
  }
}

/** Tells whether these entries of the session `id` hold a life that can continue. */
export function goesOn(entries: readonly JournalEntry[], id: string): boolean {
  return entries.length > 0 && !isClosed(entries, id);
}

/** Tells whether the session was closed: the end of a session is the last entry of its unit. */
function isClosed(entries: readonly JournalEntry[], id: string): boolean {
  const own = entries.filter(({ unit }) => unit === id);
  const last = own.findLast(({ event }) => event.type !== SET_ASIDE)?.event.type;
  const life = own.findLast((entry) => isOpening(entry) || entry.event.type === LOST);
  return last === 'subagents.ended' || last === 'deadline.close' || life?.event.type === LOST;
}

interface Beginning {
  /** The index of its entry. */
  readonly begins: number;
  /** Null: it is the opening. */
  readonly snapshot: SessionSnapshot | null;
}

/** Returns the snapshot of this entry; null: it is none, or none from which a session can continue. */
function fitSnapshot(entry: JournalEntry, unfit: UnfoldableEntry[]): SessionSnapshot | null {
  if (entry.event.type !== SNAPSHOT || isUnreadable(entry, SNAPSHOT_FORMS)) return null;
  const { scope, unit, seq, event } = entry;
  try {
    const reason = misshapen(event, SESSION_SHAPES);
    if (reason === null) return snapshotIn(entry);
    unfit.push(new UnfoldableEntry({ scope, unit, seq, event: event.type, reason }, null));
  } catch (error) {
    const reason = messageOf(error);
    unfit.push(new UnfoldableEntry({ scope, unit, seq, event: event.type, reason }, error));
  }
  return null;
}

/** Finds the last snapshot that this version can read, or the opening. */
function beginningOf(
  entries: readonly JournalEntry[],
  id: string,
  aside: ReadonlySet<number>,
  unfit: UnfoldableEntry[],
): Beginning {
  let passedOver: UnfoldableEntry | undefined;
  for (let begins = entries.length - 1; begins >= 0; begins -= 1) {
    const entry = entries[begins];
    if (entry?.unit !== id) continue;
    if (entry.event.type === SNAPSHOT && aside.has(entry.seq)) {
      passedOver ??= asideErrorOf(entry, entries);
      continue;
    }
    const snapshot = fitSnapshot(entry, unfit);
    if (snapshot || isOpening(entry)) return { begins, snapshot };
  }
  // SNAPSHOT-FORMS-2
  const last = entries.findLast((entry) => isUnreadable(entry, SNAPSHOT_FORMS));
  if (last) throw unreadable(last, SNAPSHOT_FORMS);
  // An entry from before there were openings reveals by its version why it cannot be read.
  const [first] = entries;
  if (first && (first.seq > 1 || first.event.type === SNAPSHOT))
    throw journalCut(first, unfit[0] ?? passedOver);
  return { begins: 0, snapshot: null };
}
