// What the journal has of a program's service: where the life begins that goes on, and which
// entries are folded. It is to a service what session/lifecycle/session-history.ts is to a session.
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
import { SUBAGENT_VERSION } from '../subagent/subagent-birth.ts';
import type { DelegationRest } from './delegation-rest.ts';

/** The entries of the service's own unit, beside `result.had`. */
export const CLOSED = 'service.closed';
export const RECOVERED = 'service.recovered';
export const SNAPSHOT = 'service.snapshot';

/** Raised when the ledger, or what its events carry, changes. */
export const LEDGER_VERSION = 1;

/** No form of a service's snapshot has been given up yet. */
const SNAPSHOT_FORMS = {
  type: SNAPSHOT,
  versions: { form: 1, program: LEDGER_VERSION, subagent: SUBAGENT_VERSION },
  upcasters: {},
} as const satisfies SnapshotForms;

interface SnapshotEvent extends UnitEvent {
  readonly versions: typeof SNAPSHOT_FORMS.versions;
  /** What is before it may be deleted: also for versions that can read nothing else of it. */
  readonly trims: boolean;
  readonly delegation: DelegationRest;
}

const SHAPES = { [SNAPSHOT]: z.looseObject({ delegation: delegationShape }) };

export function snapshotOf(delegation: DelegationRest, trims: boolean): SnapshotEvent {
  return { type: SNAPSHOT, versions: SNAPSHOT_FORMS.versions, trims, delegation };
}

export class ServiceHistory {
  /** Nothing goes on: there is nothing, or what there was is closed. */
  readonly isNew: boolean;
  /** What its subagents had become before the entries that are folded; null: they are all of it. */
  readonly known: DelegationRest | null;
  /** A snapshot of it cannot be read: what it follows from is folded instead. */
  readonly hasUnreadable: boolean;
  /** Snapshots that cannot be taken in, and were not set aside before. */
  readonly unfit: readonly UnfoldableEntry[];
  /** So many entries are folded. */
  readonly folded: number;
  /** They, by their unit. */
  readonly units: ReadonlyMap<string, readonly JournalEntry[]>;
  /** So many entries of the service's own unit come before these. */
  readonly before: number;
  /** So long it was in some process, in milliseconds. */
  readonly awakeMs: number;

  /**
   * `entries`: all that the journal has of the service `id`.
   * @throws {JournalError} `JOURNAL_CUT` where the beginning of the life is not there; `JOURNAL_VERSION`
   * where there is a snapshot of it that this version cannot read, and what is before it is not all there, or
   * may not be.
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
    // No entry says that a life begins. Where a deletion was broken off, the first that is left may be a birth.
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

/** Null: it is no snapshot, or one of another version. */
function restIn(entry: JournalEntry): DelegationRest | null {
  const snapshot = readSnapshot(entry, SNAPSHOT_FORMS);
  return snapshot && (snapshot as SnapshotEvent).delegation;
}

/** The error of the last snapshot that another process set aside. */
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
