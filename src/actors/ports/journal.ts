// The port to what outlives a process. What a commit unit accepts is appended
// before anything that follows from it is released; a process that starts on a journal
// folds the entries of a scope again, in their order, and goes on from there.

import type { WakeTimes } from './wake-times.ts';

/** One accepted input, completion, deadline or message of a commit unit. Plain JSON. */
export interface JournalEntry {
  /** What is recovered as a whole: the id of the session, or of the program's service. */
  readonly scope: string;
  /** The session or subagent that accepted it. */
  readonly unit: string;
  /** Counts from 1 within the unit, without gaps. The first entry says what the unit is. */
  readonly seq: number;
  /** When it was accepted; milliseconds since 1970. */
  readonly at: number;
  /** Which actor of the unit it is for. */
  readonly actor: string;
  /** The version of the machine that accepted it; entries are never refolded across versions. */
  readonly definitionVersion: number;
  readonly event: { readonly type: string };
}

/** Which entry: no two have the same. */
export type JournalPosition = Pick<JournalEntry, 'scope' | 'unit' | 'seq'>;

/** Which entries; what is left out does not matter. */
export interface JournalQuery {
  readonly scope?: string;
  readonly unit?: string;
}

/** Is this entry asked for? */
export function isAskedFor(
  { scope, unit }: JournalQuery,
  entry: Pick<JournalEntry, 'scope' | 'unit'>,
): boolean {
  return (
    (scope === undefined || entry.scope === scope) && (unit === undefined || entry.unit === unit)
  );
}

/** What is kept of one scope. */
export interface ScopeSummary {
  readonly scope: string;
  readonly entries: number;
  /** When its first and its latest entry were accepted; milliseconds since 1970. */
  readonly firstAt: number;
  readonly lastAt: number;
}

/**
 * Duties of an implementation
 * - `append` returns (or resolves) only when the entry is kept, and throws (or rejects) when it is
 *   not. An error with `retryable: false` is for good: the unit ends instead of trying again.
 * - Entries of one scope keep the order in which `append` was called, across its units: what is
 *   kept is always a beginning of that order, also after a crash.
 * - The same entry again (scope, unit, seq) after an append whose fate was not known is kept once;
 *   another entry under this number is refused for good (`JOURNAL_CONFLICT`).
 * - Where `claim` is offered, an append without it is refused for good (`FENCED`).
 * - `read` gives a scope whole or throws (`JOURNAL_CUT`, `JOURNAL_CORRUPT`): a torso is no beginning.
 *   What was trimmed is whole from the entry that it was trimmed to.
 * - `trim` deletes the oldest first: where it is interrupted, what is left has no gap, and goes with
 *   the next one. It is refused (`FENCED`) where an append would be.
 *   Units go on with their numbers after it, also those of which no entry is left.
 *
 * Guarantee to it: a unit never has two appends under way, and tries a failed one again.
 */
export interface Journal {
  append(entry: JournalEntry): void | Promise<void>;
  /** The entries that are kept, in the order in which they were appended within each scope. */
  read(query?: JournalQuery): readonly JournalEntry[] | Promise<readonly JournalEntry[]>;
  /**
   * Makes this process the one that writes the scope, before it reads and appends. A journal that
   * several processes share keeps a lease: whoever had it before has its next append refused
   * (`FENCED`, not retryable). Absent where there can be only one process.
   * @throws {CapacityError} `SCOPE_IN_USE`: another process has it, and shows signs of life.
   */
  claim?(scope: string): void | Promise<void>;
  /**
   * Deletes the entries of a scope that were appended before this one, of whatever unit: it says
   * what they had led to. Absent where entries are kept for good. An unknown one deletes nothing.
   */
  trim?(entry: JournalPosition): void | Promise<void>;
  /** This process writes the scope no more; another one may claim it at once. */
  release?(scope: string): void | Promise<void>;
  /** All scopes of which something is kept, the one that was written first first. */
  scopes?(): readonly ScopeSummary[] | Promise<readonly ScopeSummary[]>;
  /**
   * Deletes what is kept of a scope, its wake time as well. Unknown ones are fine.
   * @throws {CapacityError} `SCOPE_IN_USE`: another process writes it.
   */
  forget?(scope: string): void | Promise<void>;
  /** When scopes that nobody has in memory must be looked at. Absent: a pool of sessions keeps it in memory. */
  readonly wakeTimes?: WakeTimes;
}

/** Each unit's own, in their order; the units in the order of their first ones. */
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
