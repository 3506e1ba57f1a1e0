// The state of a session as its journal holds it: the snapshot of all its parts in one entry, the entries of the
// life that continues, and the fold of an entry. The same for a live session, a restored one, and one that is
// replayed.
//
//   ── a life that was closed ──┤ opened ── … ── snapshot ── … the end
//                                                └ this is folded
//
// Owns:     the forms of the snapshot, where the life that continues begins, and the route of an event to the
//           component that folds it.
// Does not: decide when a snapshot is made (runtime/scope-journal.ts), restore the parts (session-life.ts),
//           know the content of a part (each defines its own), or the app: an event holds all that its
//           folding needs.

import { messageOf } from '../../../values/errors.ts';
import type { Received, SessionMessage } from '../../contracts/session-protocol.ts';
import { journalCut } from '../../ports/journal-error.ts';
import { byUnit, type JournalEntry } from '../../ports/journal.ts';
import type { UnitEvent } from '../../runtime/commit-unit.ts';
import { misshapen } from '../../runtime/event-shapes.ts';
import { QUARANTINED, UnfoldableEntry, quarantineErrorOf } from '../../runtime/quarantine.ts';
import {
  isUnreadable,
  readSnapshot,
  unreadable,
  type SnapshotForms,
} from '../../runtime/upcasters.ts';
import { timeAwake, type MadeSnapshot } from '../../runtime/scope-journal.ts';
import { SERVICE_VERSION, type ServiceSnapshot } from '../../services/service.ts';
import type { SessionServices } from '../../services/session-services.ts';
import { SUBAGENT_VERSION } from '../../subagent/subagent-events.ts';
import type { SubagentTree } from '../../subagents/subagent-tree.ts';
import type { SubagentTreeSnapshot } from '../../subagents/subagent-registry.ts';
import { transferRequested } from '../lead/lead-agents.ts';
import { questionSettled } from '../questions/settle-question.ts';
import { answerGiven, userSaid, wordsReturned } from '../questions/user-words.ts';
import type { SessionRecords, SessionRecordsSnapshot } from '../state/session-records.ts';
import {
  inputsOf,
  isOpening,
  LOST,
  openedWith,
  SESSION_SHAPES,
  SESSION_VERSION,
  type SessionInputs,
} from '../unit/session-entries.ts';
import type { SessionUnit, SessionUnitSnapshot } from '../unit/session-unit.ts';

export const SNAPSHOT = 'session.snapshot';

/** The state from which a session continues. */
export interface SessionSnapshot {
  readonly inputs: SessionInputs;
  readonly unit: SessionUnitSnapshot;
  readonly books: SessionRecordsSnapshot;
  /** The services, by their names. */
  readonly services: Readonly<Record<string, ServiceSnapshot>>;
  readonly delegation: SubagentTreeSnapshot;
  /** True if the session was put away idle: its clients are still attached. */
  readonly isAsleep: boolean;
}

interface SnapshotEvent extends Omit<SessionSnapshot, 'inputs'> {
  readonly type: typeof SNAPSHOT;
  readonly versions: typeof SNAPSHOT_FORMS.versions;
  readonly inputs: unknown;
}

/** No form of a session's snapshot has been dropped yet. */
export const SNAPSHOT_FORMS = {
  type: SNAPSHOT,
  versions: {
    form: 1,
    session: SESSION_VERSION,
    subagent: SUBAGENT_VERSION,
    service: SERVICE_VERSION,
  },
  upcasters: {},
} as const satisfies SnapshotForms;

/** Returns the snapshot of this entry; null: it is none, or one that this version cannot read. */
export function snapshotIn(
  entry: JournalEntry,
  forms: SnapshotForms = SNAPSHOT_FORMS,
): SessionSnapshot | null {
  const snapshot = readSnapshot(entry, forms);
  if (!snapshot) return null;
  const { inputs, versions: _, ...rest } = snapshot as SnapshotEvent;
  return { ...rest, inputs: inputsOf(inputs) };
}

/** The parts of a session whose state a snapshot holds. */
interface Parts {
  readonly unit: SessionUnit;
  readonly records: SessionRecords;
  readonly services: SessionServices;
  readonly tree: SubagentTree;
}

/** Returns the snapshot of a session; null while a part of it is busy. */
export function snapshotOf(
  { unit, records, services, tree }: Parts,
  isAsleep: boolean,
): MadeSnapshot | null {
  const subagents = services.isBusy ? null : tree.toSnapshot();
  if (!subagents) return null;
  const ofUnit = unit.toSnapshot();
  const event: UnitEvent & SnapshotEvent = {
    type: SNAPSHOT,
    versions: SNAPSHOT_FORMS.versions,
    inputs: openedWith(unit.inputs).inputs,
    unit: ofUnit,
    books: records.toSnapshot(),
    services: services.toSnapshot(),
    delegation: subagents,
    isAsleep,
  };
  const lives = subagents.subagents.length + ofUnit.calls.length + ofUnit.questions.length;
  return { event, lives };
}

/** Events with which a process continues a session. */
export const CONTINUES: ReadonlySet<string> = new Set(['session.recovered', 'session.woken']);

/** The journal of a session, as far as it is folded. */
export interface SessionHistory {
  /** Nothing continues: the journal is empty, or its session was closed. */
  readonly isNew: boolean;
  /** The state of the continuing life before the folded entries; null: the entries hold all of it. */
  readonly snapshot: SessionSnapshot | null;
  /** The entry of this snapshot; null: there is none. */
  readonly snapshotEntry: JournalEntry | null;
  /** Snapshots of a wrong shape, which are not quarantined. */
  readonly unfit: readonly UnfoldableEntry[];
  /** A snapshot of it cannot be read: the entries before the snapshot are folded instead. */
  readonly hasUnreadable: boolean;
  /** True if the session was put away idle, and continues as if it had never been away. */
  readonly isAsleep: boolean;
  /** Number of folded entries. */
  readonly folded: number;
  /** Time at which the last entry was accepted; milliseconds since 1970. */
  readonly lastAt: number;
  /** Time that the continuing life spent in some process, in milliseconds. */
  readonly awakeMs: number;
  /** The folded entries, by their unit. */
  readonly units: ReadonlyMap<string, readonly JournalEntry[]>;
  /** Ids of the units that have entries, in any life. */
  readonly unitIds: ReadonlySet<string>;
  /** Returns the folded entries of a unit. */
  of(unit: string): readonly JournalEntry[];
  /** Returns the number of a unit's entries before these, in this life or an earlier one. */
  before(unit: string): number;
}

/**
 * Finds the entries to fold among all entries of the session `id`. `quarantined`: the numbers of quarantined
 * snapshots.
 * @throws {JournalError} `JOURNAL_CUT` if the beginning of the life is missing; `JOURNAL_VERSION` if the
 * journal only has a snapshot that this version cannot read.
 */
export function historyOf(
  entries: readonly JournalEntry[],
  id: string,
  quarantined: ReadonlySet<number>,
): SessionHistory {
  const unfit: UnfoldableEntry[] = [];
  const isNew = !canContinue(entries, id);
  const { begins, snapshot } = isNew
    ? { begins: entries.length, snapshot: null }
    : beginningOf(entries, id, quarantined, unfit);
  const from = snapshot ? begins + 1 : begins;
  const folded = entries.length - from;
  const units = byUnit(entries.slice(from));
  const earlier = byUnit(entries.slice(0, from));
  // The entries of a closed session before it are not kept: its numbers go on.
  const [first] = entries;
  const isTrimmed = begins === 0 && first !== undefined && isOpening(first) && first.seq > 1;
  const awake = timeAwake(
    entries.slice(begins),
    ({ unit, event }) => unit === id && CONTINUES.has(event.type),
  );
  return {
    isNew,
    snapshot,
    snapshotEntry: snapshot ? (entries[begins] ?? null) : null,
    unfit,
    hasUnreadable: quarantined.size > 0 || entries.some((one) => isUnreadable(one, SNAPSHOT_FORMS)),
    isAsleep: snapshot?.isAsleep === true && folded === 0,
    folded,
    lastAt: entries.at(-1)?.at ?? 0,
    awakeMs: (snapshot?.delegation.awakeMs ?? 0) + awake,
    units,
    unitIds: new Set([...earlier.keys(), ...units.keys()]),
    of: (unit) => units.get(unit) ?? [],
    before: (unit) => {
      const next = isTrimmed ? units.get(unit)?.[0]?.seq : undefined;
      return earlier.get(unit)?.at(-1)?.seq ?? (next ?? 1) - 1;
    },
  };
}

/** Tells whether these entries of the session `id` hold a life that can continue. */
export function canContinue(entries: readonly JournalEntry[], id: string): boolean {
  return entries.length > 0 && !isClosed(entries, id);
}

/** Tells whether the session was closed: the end of a session is the last entry of its unit. */
function isClosed(entries: readonly JournalEntry[], id: string): boolean {
  const own = entries.filter(({ unit }) => unit === id);
  const last = own.findLast(({ event }) => event.type !== QUARANTINED)?.event.type;
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
  quarantined: ReadonlySet<number>,
  unfit: UnfoldableEntry[],
): Beginning {
  let passedOver: UnfoldableEntry | undefined;
  for (let begins = entries.length - 1; begins >= 0; begins -= 1) {
    const entry = entries[begins];
    if (entry?.unit !== id) continue;
    if (entry.event.type === SNAPSHOT && quarantined.has(entry.seq)) {
      passedOver ??= quarantineErrorOf(entry, entries);
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

/** Applies an event to the records, and returns its consequences within the unit. */
export function foldSessionEvent(
  records: SessionRecords,
  unit: SessionUnit,
  received: Received,
): readonly SessionMessage[] {
  const { kind, event } = received;
  if (kind === 'user') return userSaid(records, unit, event);
  if (kind === 'answers')
    return event.type === 'question.settled'
      ? questionSettled(records, unit, event)
      : answerGiven(records, unit, event);
  if (kind === 'questions') wordsReturned(records, unit, event);
  if (kind === 'transfers') return transferRequested(unit, event);
  if (kind === 'directives') unit.post('directives.changed', undefined);
  if (event.type === 'conversation.summarised') unit.post('conversation.summarised', event);
  return records.fold(received);
}

/**
 * Forgets records that are over, as a live session does when it carries the effects out. Returns their names,
 * such as `question sub_1:1`.
 */
export function forgetWhatIsOver(records: SessionRecords, unit: SessionUnit): readonly string[] {
  const { questions, calls, batches } = unit;
  const over = Object.entries({ question: questions, call: calls, batch: batches }).flatMap(
    ([kind, members]) =>
      members.ids
        .filter((id) => members.stateOf(id)?.done === true)
        .map((id) => ({ kind, members, id })),
  );
  for (const { kind, members, id } of over) {
    members.forget(id);
    if (kind === 'question') records.questions.delete(id);
  }
  return over.map(({ kind, id }) => `${kind} ${id}`);
}
