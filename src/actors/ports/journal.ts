// The port to storage that outlives a process. A commit unit appends each accepted event before it releases the
// consequences; a process that starts with a journal folds a scope's entries in order, and continues from there.

import type { TraceContext } from '../../values/traceparent.ts';
import type { WakeTimes } from './wake-times.ts';

/** A commit unit's accepted input, completion, deadline or message. Plain JSON. */
export interface JournalEntry {
  /** The scope, which is recovered as a whole: the id of the session, or of the program's service. */
  readonly scope: string;
  /** The session or subagent that accepted the event. */
  readonly unit: string;
  /** The entry's number, which counts from 1 within the unit, without gaps. The first entry defines the unit. */
  readonly seq: number;
  /** When the event was accepted, in milliseconds since 1970. */
  readonly at: number;
  /** The actor of the unit that receives the event. */
  readonly actor: string;
  /** The version of the machine that accepted the event; upcasters convert entries of older versions. */
  readonly definitionVersion: number;
  /** The event that the unit received. */
  readonly event: { readonly type: string };
}

/** The position of an entry; unique in the journal. */
export type JournalPosition = Pick<JournalEntry, 'scope' | 'unit' | 'seq'>;

/** A selection of entries; absent properties select all. */
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

/** The types of events that contain the state of a whole scope. */
const SNAPSHOT_TYPES: ReadonlySet<string> = new Set(['session.snapshot', 'service.snapshot']);

/** Returns whether the entry is a snapshot, which replaces all earlier entries of its scope. */
export function standsForAll({ scope, unit, event }: JournalEntry): boolean {
  return unit === scope && SNAPSHOT_TYPES.has(event.type);
}

/** Returns whether no earlier entry is needed: the entry is a snapshot, or reopens the id of a closed session. */
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
  /** The number of kept entries. */
  readonly entries: number;
  /** When the first and the latest entry were accepted, in milliseconds since 1970. */
  readonly firstAt: number;
  /** The time of its last entry, in milliseconds since 1970. */
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
   * Appends an entry. The entry is kept once this returns, or its promise resolves: no effect of the event is released
   * earlier.
   */
  append(entry: JournalEntry): void | Promise<void>;
  /** Returns the stored entries, within each scope in the order in which they were appended. */
  read(query?: JournalQuery): readonly JournalEntry[] | Promise<readonly JournalEntry[]>;
  /**
   * Returns the scope's entries that were appended after this one; null if this entry is not stored. If absent, a
   * reader that follows the scope reads all entries again.
   */
  readAfter?(
    entry: JournalPosition,
  ): readonly JournalEntry[] | null | Promise<readonly JournalEntry[] | null>;
  /**
   * Makes this process the scope's writer, before it reads and appends. A journal that several processes share keeps a lease:
   * the previous writer's next append is refused (`FENCED`, not retryable). Absent if only one process can use the journal.
   * @throws {CapacityError} `SCOPE_IN_USE`: another live process has the scope.
   */
  claim?(scope: string): void | Promise<void>;
  /**
   * Deletes the entries of the scope, from all its units, that were appended before this one, which replaces them.
   * Absent if entries are never deleted. An unknown position deletes nothing.
   */
  trim?(entry: JournalPosition): void | Promise<void>;
  /** Ends this process's claim; another process may claim the scope at once. */
  release?(scope: string): void | Promise<void>;
  /** Returns all scopes with stored entries, in the order of their first write. */
  scopes?(): readonly ScopeSummary[] | Promise<readonly ScopeSummary[]>;
  /**
   * Deletes the entries of a scope and its wake time. An unknown scope is not an error.
   * @throws {CapacityError} `SCOPE_IN_USE`: another process writes the scope.
   */
  forget?(scope: string): void | Promise<void>;
  /** The times at which scopes that are not in memory must be loaded. If absent, a pool keeps its sessions in memory. */
  readonly wakeTimes?: WakeTimes;
  /**
   * Returns how far the common clock of this journal's processes is ahead of this process's clock, in milliseconds. The
   * times of entries, deadlines and wakes use the common clock, because one process sets them and another reads them.
   * Absent if there is only one process, or one clock.
   */
  clockOffsetMs?(): number;
  /**
   * Returns whether the journal currently writes OpenTelemetry spans for its scopes' model calls. AI SDK integrations
   * that also write spans then do not receive these calls. Absent means false.
   */
  tracesModelCalls?(): boolean;
  /**
   * Returns the W3C trace context of the work's span, for agents and workers elsewhere that do a part of the work. Null
   * or absent if there is no span.
   */
  traceContextOf?(work: TracedWork): TraceContext | null;
  /**
   * Calls a function of the app, such as a tool's `execute`, with the work's span active, so that spans started by the
   * function become its children. Returns or throws the function's result. If absent, the function is called directly.
   */
  inSpanOf?<T>(work: TracedWork, call: () => T): T;
}

/** Returns all members of a journal, for a journal that wraps it and replaces some of them. */
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
    clockOffsetMs: journal.clockOffsetMs?.bind(journal),
    tracesModelCalls: journal.tracesModelCalls?.bind(journal),
    traceContextOf: journal.traceContextOf?.bind(journal),
    inSpanOf: journal.inSpanOf?.bind(journal),
  } satisfies { [Name in keyof Required<Journal>]: Journal[Name] };
}

/** A unit's work, or a part of it. */
export interface TracedWork {
  /** The name of the scope. */
  readonly scope: string;
  /** The unit of the work. */
  readonly unit: string;
  /** The current model call, or a tool call by its id. @defaultValue the work as a whole */
  readonly part?: 'model' | { readonly callId: string };
}

/** Returns the entries by unit, in order; units are ordered by their first entries. */
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
