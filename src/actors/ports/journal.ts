// The port for storage that outlives a process. A commit unit appends each accepted event before it releases the
// event's effects. A process that starts with a journal folds a scope's entries in order and continues from there.

import type { TraceContext } from '../../values/traceparent.ts';
import type { Desk } from './desk.ts';
import type { WakeTimes } from './wake-times.ts';

/** An input, a completion, a deadline or a message that a commit unit has accepted. Plain JSON. */
export interface JournalEntry {
  /** The id of the session, or of the program's service; the entries of one scope are recovered together. */
  readonly scope: string;
  /** The session or subagent that accepted the event. */
  readonly unit: string;
  /**
   * The entry's number, which counts from 1 within the unit, without gaps. The first entry contains the definition of
   * the unit.
   */
  readonly seq: number;
  /** When the event was accepted, in milliseconds since 1970. */
  readonly at: number;
  /** The actor within the unit to which the event was sent. */
  readonly actor: string;
  /** The version of the machine that accepted the event; entries of older versions are converted by upcasters. */
  readonly definitionVersion: number;
  /** The event that the unit received. */
  readonly event: { readonly type: string };
}

/** The position of an entry, which is unique in the journal. */
export type JournalPosition = Pick<JournalEntry, 'scope' | 'unit' | 'seq'>;

/** Selects entries; absent properties do not restrict the selection. */
export interface JournalQuery {
  /** Selects only entries of this scope. @defaultValue all scopes */
  readonly scope?: string;
  /** Selects only entries of this unit. @defaultValue all units */
  readonly unit?: string;
}

/** Returns whether the query selects the entry. */
export function isAskedFor(
  { scope, unit }: JournalQuery,
  entry: Pick<JournalEntry, 'scope' | 'unit'>,
): boolean {
  return (
    (scope === undefined || entry.scope === scope) && (unit === undefined || entry.unit === unit)
  );
}

/** The types of the events that contain the whole state of a scope. */
const SNAPSHOT_TYPES: ReadonlySet<string> = new Set(['session.snapshot', 'service.snapshot']);

/** Returns whether the entry is a snapshot, which replaces all earlier entries of its scope. */
export function standsForAll({ scope, unit, event }: JournalEntry): boolean {
  return unit === scope && SNAPSHOT_TYPES.has(event.type);
}

/** Returns whether recovery can start at this entry: it is a snapshot, or it reopens the id of a closed session. */
export function canStandFirst(entry: JournalEntry): boolean {
  const { scope, unit, seq, actor, event } = entry;
  const beginsAnew =
    unit === scope && seq > 1 && actor === 'opening' && event.type === 'session.opened';
  return beginsAnew || standsForAll(entry);
}

/** A summary of one scope's stored entries. */
export interface ScopeSummary {
  /** The name of the scope. */
  readonly scope: string;
  /** The number of stored entries. */
  readonly entries: number;
  /** When the first entry was accepted, in milliseconds since 1970. */
  readonly firstAt: number;
  /** When the latest entry was accepted, in milliseconds since 1970. */
  readonly lastAt: number;
}

/**
 * Stores the entries of scopes.
 *
 * Duties of an implementation
 * - `append` returns (or resolves) only after the entry is stored, and throws (or rejects) if it is not. An error with
 *   `retryable: false` is permanent: the unit stops instead of retrying.
 * - Entries of one scope keep the order in which `append` was called, across its units: the stored entries are always a
 *   prefix of that order, even after a crash.
 * - An entry that is appended again (same scope, unit, seq), because the first append's result is unknown, is stored
 *   once; a different entry under this number is permanently refused (`JOURNAL_CONFLICT`).
 * - If `claim` exists, an append without a claim is permanently refused (`FENCED`).
 * - `read` returns a scope completely or throws (`JOURNAL_CUT`, `JOURNAL_CORRUPT`). A trimmed scope is complete from the
 *   entry to which it was trimmed.
 * - `trim` deletes the oldest entries first: after an interruption the remaining entries have no gap, and the next call
 *   deletes them. A process that must not append must not trim either (`FENCED`). Units continue their numbering after
 *   a trim, even if none of their entries remains.
 *
 * Guarantee to the implementation: a unit has at most one append in progress, and retries it if it fails.
 */
export interface Journal {
  /**
   * Appends an entry. The entry is stored when this returns or its promise resolves; no effect of the event is released
   * before that.
   */
  append(entry: JournalEntry): void | Promise<void>;
  /** Returns the stored entries, within each scope in the order in which they were appended. */
  read(query?: JournalQuery): readonly JournalEntry[] | Promise<readonly JournalEntry[]>;
  /**
   * Returns the scope's entries that were appended after this entry; null if this entry is not stored. If absent, a
   * reader that follows the scope reads all of its entries again.
   */
  readAfter?(
    entry: JournalPosition,
  ): readonly JournalEntry[] | null | Promise<readonly JournalEntry[] | null>;
  /**
   * Makes this process the scope's writer; must be called before it reads and appends. A journal that several processes
   * share keeps a lease: the previous writer's next append is refused (`FENCED`, not retryable). Absent if only one
   * process can use the journal.
   * @throws {CapacityError} `SCOPE_IN_USE`: another live process is the scope's writer.
   */
  claim?(scope: string): void | Promise<void>;
  /**
   * Deletes all entries of the scope, in all its units, that were appended before this entry. This entry replaces the
   * deleted ones. Absent if entries are never deleted. Deletes nothing if the position is unknown.
   */
  trim?(entry: JournalPosition): void | Promise<void>;
  /** Ends this process's claim, so that another process can claim the scope immediately. */
  release?(scope: string): void | Promise<void>;
  /** Returns all scopes that have stored entries, in the order of their first write. */
  scopes?(): readonly ScopeSummary[] | Promise<readonly ScopeSummary[]>;
  /**
   * Deletes the entries of a scope, its wake time and its rows on the desk. An unknown scope is not an error.
   * @throws {CapacityError} `SCOPE_IN_USE`: another process is writing the scope.
   */
  forget?(scope: string): void | Promise<void>;
  /**
   * The times at which scopes that are not in memory must be loaded again. If absent, pools keep all sessions in
   * memory.
   */
  readonly wakeTimes?: WakeTimes;
  /** The index of the things that wait in all sessions. If absent, `pool.desk` is refused. */
  readonly desk?: Desk;
  /**
   * Returns the number of milliseconds by which the clock that this journal's processes share is ahead of this
   * process's clock. The times of entries, deadlines and wakes are times of the shared clock, because one process sets
   * them and another reads them. Absent if there is only one process, or if all processes have the same clock.
   */
  clockOffsetMs?(): number;
  /**
   * Returns whether the journal currently writes OpenTelemetry spans for its scopes' model calls. If it does, AI SDK
   * integrations that also write spans do not receive these calls. Absent means false.
   */
  tracesModelCalls?(): boolean;
  /**
   * Returns the W3C trace context of the work's span, for remote agents and workers that do a part of this work. Null
   * or absent if there is no span.
   */
  traceContextOf?(work: TracedWork): TraceContext | null;
  /**
   * Calls a function of the app, such as a tool's `execute`, while the work's span is active, so that spans that the
   * function starts become its children. Returns the function's result, or throws its error. If absent, the app's
   * function is called directly.
   */
  inSpanOf?<T>(work: TracedWork, call: () => T): T;
}

/** Returns an object with all members of a journal, some of which a wrapping journal can then replace. */
export function passedOn(journal: Journal): Journal {
  return {
    append: (entry) => journal.append(entry),
    read: (query) => journal.read(query),
    readAfter: journal.readAfter?.bind(journal),
    claim: journal.claim?.bind(journal),
    trim: journal.trim?.bind(journal),
    release: journal.release?.bind(journal),
    scopes: journal.scopes?.bind(journal),
    forget: journal.forget?.bind(journal),
    wakeTimes: journal.wakeTimes,
    desk: journal.desk,
    clockOffsetMs: journal.clockOffsetMs?.bind(journal),
    tracesModelCalls: journal.tracesModelCalls?.bind(journal),
    traceContextOf: journal.traceContextOf?.bind(journal),
    inSpanOf: journal.inSpanOf?.bind(journal),
  } satisfies { [Name in keyof Required<Journal>]: Journal[Name] };
}

/** The work of a unit, or a part of that work. */
export interface TracedWork {
  /** The name of the scope. */
  readonly scope: string;
  /** The unit of the work. */
  readonly unit: string;
  /** The current model call, or the tool call with this id. @defaultValue the whole work of the unit */
  readonly part?: 'model' | { readonly callId: string };
}

/** Groups entries by unit and keeps their order; units are ordered by their first entries. */
export function byUnit(
  entries: Iterable<JournalEntry>,
): ReadonlyMap<string, readonly JournalEntry[]> {
  const units = new Map<string, JournalEntry[]>();
  for (const entry of entries) {
    const unit = units.get(entry.unit);
    if (unit) unit.push(entry);
    else units.set(entry.unit, [entry]);
  }
  return units;
}
