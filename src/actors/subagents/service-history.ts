// Reads the journal of a program's service: finds the beginning of the life that continues, and the entries
// to fold. The counterpart of session/lifecycle/session-history.ts.
//
// Does not: fold anything (service-ledger.ts, restoration.ts).

import { z } from 'zod';
import { journalCut } from '../ports/journal-error.ts';
import { byUnit, type JournalEntry } from '../ports/journal.ts';
import type { UnitEvent } from '../runtime/commit-unit.ts';
import { misshapen } from '../runtime/event-shapes.ts';
import { asideErrorOf, setAsideIn, UnfoldableEntry } from '../runtime/set-aside.ts';
import {
  isUnreadable,
  readSnapshot,
  unreadable,
  type SnapshotForms,
} from '../runtime/snapshot-forms.ts';
import { timeAwake } from '../runtime/time-awake.ts';
import { delegationShape } from '../subagent/event-shapes.ts';
import { SUBAGENT_VERSION } from '../subagent/spawned-event.ts';
import type { SubagentTreeSnapshot } from './tree-snapshot.ts';

/** The entries of the service's own unit, beside `result.had`. */
export const CLOSED = 'service.closed';
export const RECOVERED = 'service.recovered';
export const SNAPSHOT = 'service.snapshot';

/** Raised when the ledger, or the content of its events, changes. */
export const LEDGER_VERSION = 1;

/** No form of a service's snapshot has been given up yet. */
const SNAPSHOT_FORMS = {
  type: SNAPSHOT,
  versions: { form: 1, program: LEDGER_VERSION, subagent: SUBAGENT_VERSION },
  upcasters: {},
} as const satisfies SnapshotForms;

interface SnapshotEvent extends UnitEvent {
  readonly versions: typeof SNAPSHOT_FORMS.versions;
  /** The entries before it may be deleted: also for versions that can read nothing else of it. */
  readonly trims: boolean;
  readonly delegation: SubagentTreeSnapshot;
}

const SHAPES = { [SNAPSHOT]: z.looseObject({ delegation: delegationShape }) };

export function snapshotOf(delegation: SubagentTreeSnapshot, trims: boolean): SnapshotEvent {
  return { type: SNAPSHOT, versions: SNAPSHOT_FORMS.versions, trims, delegation };
}

export class ServiceHistory {
  /** Nothing continues: the journal is empty, or its service was closed. */
  readonly isNew: boolean;
  /** The state of its subagents before the folded entries; null: the entries hold all of it. */
  readonly known: SubagentTreeSnapshot | null;
  /** A snapshot of it cannot be read: the entries before the snapshot are folded instead. */
  readonly hasUnreadable: boolean;
  /** Snapshots that cannot be applied, and were not set aside before. */
  readonly unfit: readonly UnfoldableEntry[];
  /** Number of folded entries. */
  readonly folded: number;
  /** The folded entries by their unit. */
  readonly units: ReadonlyMap<string, readonly JournalEntry[]>;
  /** Number of entries of the service's own unit before these. */
  readonly before: number;
  /** Time that it spent in some process, in milliseconds. */
  readonly awakeMs: number;

  /**
   * `entries`: all entries of the service `id`.
   * @throws {JournalError} `JOURNAL_CUT` if the beginning of the life is missing; `JOURNAL_VERSION` if it has
   * a snapshot that this version cannot read, and the entries before it are not complete, or may not be.
   */
  constructor(entries: readonly JournalEntry[], id: string) {
    const isOwn = ({ unit }: JournalEntry): boolean => unit === id;
    const aside = setAsideIn(entries.filter(isOwn));
    const unfit: UnfoldableEntry[] = [];
    const isFit = (entry: JournalEntry): boolean => {
      const { scope, unit, seq, event } = entry;
      if (restIn(entry) === null || aside.has(seq)) return false;
      const reason = misshapen(event, SHAPES);
      if (reason !== null)
        unfit.push(new UnfoldableEntry({ scope, unit, seq, event: event.type, reason }, null));
      return reason === null;
    };
    const begins =
      entries.findLastIndex((entry) => isOwn(entry) && entry.event.type === CLOSED) + 1;
    const snapshot = entries.findLastIndex(
      (entry, index) => index >= begins && isOwn(entry) && isFit(entry),
    );
    this.unfit = unfit;
    const [first] = entries;
    const passedOver = entries.filter((entry) => isUnreadable(entry, SNAPSHOT_FORMS));
    const lastOfThese = passedOver.at(-1);
    this.hasUnreadable = lastOfThese !== undefined || unfit.length > 0 || aside.size > 0;
    // No entry marks the beginning of a life. After an interrupted deletion, the first remaining entry may be
    // a `subagent.spawned`.
    const isCut =
      first &&
      (first.seq > 1 ||
        first.event.type === SNAPSHOT ||
        passedOver.some(({ event }) => (event as SnapshotEvent).trims));
    if (isCut && begins === 0 && snapshot === -1)
      throw lastOfThese
        ? unreadable(lastOfThese, SNAPSHOT_FORMS)
        : journalCut(first, unfit[0] ?? lastAside(entries, id, aside));
    const from = snapshot === -1 ? begins : snapshot + 1;
    const last = entries[snapshot];
    this.isNew = begins === entries.length;
    this.known = last ? restIn(last) : null;
    this.folded = entries.length - from;
    this.units = byUnit(entries.slice(from));
    this.before = entries.slice(0, from).findLast(isOwn)?.seq ?? 0;
    this.awakeMs =
      (this.known?.awakeMs ?? 0) +
      timeAwake(
        entries.slice(last ? snapshot : begins),
        (entry) => isOwn(entry) && entry.event.type === RECOVERED,
      );
  }
}

/** Returns the state in a snapshot; null: the entry is no snapshot, or one of another version. */
function restIn(entry: JournalEntry): SubagentTreeSnapshot | null {
  const snapshot = readSnapshot(entry, SNAPSHOT_FORMS);
  return snapshot && (snapshot as SnapshotEvent).delegation;
}

/** Returns the error of the last snapshot that another process set aside. */
function lastAside(
  entries: readonly JournalEntry[],
  id: string,
  aside: ReadonlySet<number>,
): UnfoldableEntry | undefined {
  const last = entries.findLast(
    ({ unit, seq, event }) => unit === id && event.type === SNAPSHOT && aside.has(seq),
  );
  return last && asideErrorOf(last, entries);
}
