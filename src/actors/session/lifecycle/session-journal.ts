// A session's state in its journal: the snapshot of all its parts in one entry, the entries since the session was last
// opened, and the folding of an entry. Live, restored and replayed sessions use this file.
//
//   ── a life that was closed ──┤ opened ── … ── snapshot ── … the end
//                                                └ this is folded
//
// Owns:     the forms of the snapshot, the entry from which a session continues, and the route of an event to the
//           component that folds it.
// Does not: decide when a snapshot is made (runtime/scope-journal.ts), restore the parts (session-life.ts), interpret a
//           part's content (each part defines it), or call the app, because an event contains everything needed to fold
//           it.

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
import { answerGiven, userSaid, wordsRead, wordsReturned } from '../questions/user-words.ts';
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
  /** The services, by name. */
  readonly services: Readonly<Record<string, ServiceSnapshot>>;
  readonly delegation: SubagentTreeSnapshot;
  /** Whether the session was idle when it was suspended. If so, its clients are considered still attached. */
  readonly isAsleep: boolean;
}

interface SnapshotEvent extends Omit<SessionSnapshot, 'inputs'> {
  readonly type: typeof SNAPSHOT;
  readonly versions: typeof SNAPSHOT_FORMS.versions;
  readonly inputs: unknown;
}

/** The formats of a session's snapshot. There is only one so far. */
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

/** Returns the snapshot in this entry, or null if the entry contains none or this version cannot read it. */
export function snapshotIn(
  entry: JournalEntry,
  forms: SnapshotForms = SNAPSHOT_FORMS,
): SessionSnapshot | null {
  const snapshot = readSnapshot(entry, forms);
  if (!snapshot) return null;
  const { inputs, versions: _, ...rest } = snapshot as SnapshotEvent;
  return { ...rest, inputs: inputsOf(inputs) };
}

/** The parts of a session whose state is in a snapshot. */
interface Parts {
  readonly unit: SessionUnit;
  readonly records: SessionRecords;
  readonly services: SessionServices;
  readonly tree: SubagentTree;
}

/** Returns a session's snapshot, or null while any part is busy. */
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

/** The events with which a process resumes a session. */
export const CONTINUES: ReadonlySet<string> = new Set(['session.recovered', 'session.woken']);

/** A session's journal, restricted to the part that is folded. */
export interface SessionHistory {
  /** Whether there is nothing to continue, because the journal is empty or its session was closed. */
  readonly isNew: boolean;
  /** The state before the folded entries, or null if the entries contain all of it. */
  readonly snapshot: SessionSnapshot | null;
  /** The entry with this snapshot, or null if there is no snapshot. */
  readonly snapshotEntry: JournalEntry | null;
  /** Snapshots with an invalid shape, to be quarantined. */
  readonly unfit: readonly UnfoldableEntry[];
  /** Whether a snapshot cannot be read, in which case the entries before it are folded instead. */
  readonly hasUnreadable: boolean;
  /** Whether the session was idle when it was suspended and continues as if it had never left memory. */
  readonly isAsleep: boolean;
  /** The number of folded entries. */
  readonly folded: number;
  /** When the last entry was accepted, in milliseconds since 1970. */
  readonly lastAt: number;
  /** The total time for which the session has been loaded in any process since it was last opened, in milliseconds. */
  readonly awakeMs: number;
  /** The folded entries by unit. */
  readonly units: ReadonlyMap<string, readonly JournalEntry[]>;
  /** The ids of the units that have entries, including those of earlier sessions with this id. */
  readonly unitIds: ReadonlySet<string>;
  /** Returns the folded entries of a unit. */
  of(unit: string): readonly JournalEntry[];
  /** Returns the number of the unit's earlier entries, including those of earlier sessions with this id. */
  before(unit: string): number;
}

/**
 * Finds the entries to fold in the journal of the session `id`. `quarantined`: the numbers of quarantined snapshots.
 * @throws {JournalError} `JOURNAL_CUT` if the opening is missing; `JOURNAL_VERSION` if the journal has only a snapshot
 *   that this version cannot read.
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
  // The entries of an earlier, closed session are gone, but their numbers remain in use.
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

/** Returns whether these entries of the session `id` can be continued. */
export function canContinue(entries: readonly JournalEntry[], id: string): boolean {
  return entries.length > 0 && !isClosed(entries, id);
}

/** Returns whether the session was closed. A session's end is the last entry of its unit. */
function isClosed(entries: readonly JournalEntry[], id: string): boolean {
  const own = entries.filter(({ unit }) => unit === id);
  const last = own.findLast(({ event }) => event.type !== QUARANTINED)?.event.type;
  const life = own.findLast((entry) => isOpening(entry) || entry.event.type === LOST);
  return last === 'subagents.ended' || last === 'deadline.close' || life?.event.type === LOST;
}

interface Beginning {
  /** The index of the snapshot's entry. */
  readonly begins: number;
  /** Null if the entry is the opening. */
  readonly snapshot: SessionSnapshot | null;
}

/** Returns the snapshot in this entry, or null if the entry contains none or no session can continue from it. */
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

/** Returns the last snapshot that this version can read, or the opening. */
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
  // If an entry predates openings, it has an old version. Reading it fails with an error that names the version.
  const [first] = entries;
  if (first && (first.seq > 1 || first.event.type === SNAPSHOT))
    throw journalCut(first, unfit[0] ?? passedOver);
  return { begins: 0, snapshot: null };
}

/** Applies an event to the records, and returns the messages that it causes within the unit. */
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
  if (kind === 'clients') forgetEndedCalls(records, unit);
  if (event.type === 'reading.ended') {
    records.fold(received);
    return wordsRead(records, unit, received.id, event);
  }
  if (kind === 'questions') wordsReturned(records, unit, event);
  if (kind === 'transfers') return transferRequested(unit, event);
  if (kind === 'directives') unit.post('directives.changed', undefined);
  if (event.type === 'conversation.summarised') unit.post('conversation.summarised', event);
  return records.fold(received);
}

/** Client calls that have ended but whose result the tool may not have received yet. */
const MAX_ENDED_CALLS = 20;

function forgetEndedCalls({ clientCalls }: SessionRecords, unit: SessionUnit): void {
  const ended = unit.clientCalls.ids.filter((id) => unit.clientCalls.stateOf(id)?.done === true);
  for (const id of ended.slice(0, -MAX_ENDED_CALLS)) {
    unit.clientCalls.forget(id);
    clientCalls.delete(id);
  }
}

/**
 * Removes the records of everything that has ended, as a live session does when it executes effects. Returns their
 * names, such as `question sub_1:1`.
 */
export function forgetWhatIsOver(records: SessionRecords, unit: SessionUnit): readonly string[] {
  const { questions, calls, batches, schedules, ways } = unit;
  const all = {
    question: questions,
    call: calls,
    batch: batches,
    schedule: schedules,
    reach: ways,
  };
  const over = Object.entries(all).flatMap(([kind, members]) =>
    members.ids
      .filter((id) => members.stateOf(id)?.done === true)
      .map((id) => ({ kind, members, id })),
  );
  for (const { kind, members, id } of over) {
    members.forget(id);
    if (kind === 'question') records.questions.delete(id);
    if (kind === 'schedule') records.schedules.delete(id);
  }
  return over.map(({ kind, id }) => `${kind} ${id}`);
}
