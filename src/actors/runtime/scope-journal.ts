// The journal of one scope (a session, or a service of the program), including the scope's snapshots. A snapshot is one
// entry that replaces all earlier entries. A process that continues the scope folds only the snapshot and the later
// entries.
//
// Owns:     the scope's claim, the number of entries since the last snapshot, the time of the next snapshot, the order
//           of the entries around a snapshot, and the deletion of the entries that it replaces.
// Does not: interpret an entry or a snapshot (session/lifecycle/session-journal.ts, subagents/service-ledger.ts).
//
// Invariants
//   SCOPE-JOURNAL-1. While a snapshot entry is being written, no other entry of the scope is written. Later entries
//       wait, even if the snapshot entry has to be retried.
//   SCOPE-JOURNAL-2. Entries stop waiting when the journal permanently refuses the snapshot entry.
//   SCOPE-SNAPSHOTS-1. A snapshot is made only while no unit of the scope has an event in its mailbox or on its way to
//       the journal. Otherwise, a message between two units could be missing from the snapshot.
//   SCOPE-SNAPSHOTS-2. No entry is written between the making of a snapshot and the snapshot's own entry.
//   SCOPE-SNAPSHOTS-3. A scope that continues from a snapshot has the same state as one that continues from all earlier
//       entries. The snapshot contains nothing else.
//   SCOPE-SNAPSHOTS-4. Entries before a snapshot are deleted only after the snapshot has been stored, and only if the
//       policy requests it. They are never deleted if there is a snapshot that this version cannot read (upcasters.ts,
//       SNAPSHOT-FORMS-2).

import { OffstageError } from '../../values/errors.ts';
import type { TraceContext } from '../../values/traceparent.ts';
import { isForGood } from '../ports/journal-error.ts';
import {
  standsForAll,
  type Journal,
  type JournalEntry,
  type JournalPosition,
  type JournalQuery,
  type TracedWork,
} from '../ports/journal.ts';
import type { AnyUnit, UnitEvent } from './commit-unit.ts';
import { callSafely, inSpanOf, type Host } from './host.ts';
import { UNIT, type UnfoldableEntry } from './quarantine.ts';

interface ScopeJournalOptions {
  /** Called when an entry has been stored and no other entry is being written. */
  rested(): void;
  /** Returns whether another object in this process has taken over the scope under the same claim. */
  isTakenOver(): boolean;
}

export class ScopeJournal implements Journal {
  readonly #inner: Journal;
  readonly #options: ScopeJournalOptions;
  #sinceAll = 0;
  #underWay = 0;
  /** The snapshot entry that is being written; later entries wait for `lifted`. */
  #barrier: { readonly lifted: Promise<void>; readonly lift: () => void } | null = null;

  constructor(inner: Journal, options: ScopeJournalOptions) {
    this.#inner = inner;
    this.#options = options;
  }

  /** The number of entries since the last snapshot entry. */
  get sinceAll(): number {
    return this.#sinceAll;
  }

  /** Whether no entry is being written. */
  get isIdle(): boolean {
    return this.#underWay === 0 && this.#barrier === null;
  }

  /** Sets the number of entries that earlier processes have written since the last snapshot. */
  found(entries: number): void {
    this.#sinceAll = entries;
  }

  append(entry: JournalEntry): void | Promise<void> {
    if (standsForAll(entry)) return this.#appendForAll(entry);
    if (this.#barrier) return this.#barrier.lifted.then(() => this.append(entry));
    const appended = this.#inner.append(entry);
    if (appended === undefined) {
      this.#kept();
      return undefined;
    }
    this.#underWay += 1;
    return Promise.resolve(appended).then(
      () => {
        this.#underWay -= 1;
        this.#kept();
      },
      (error: unknown) => {
        this.#underWay -= 1;
        throw error;
      },
    );
  }

  read(query?: JournalQuery): readonly JournalEntry[] | Promise<readonly JournalEntry[]> {
    return this.#inner.read(query);
  }

  claim(scope: string): void | Promise<void> {
    return this.#inner.claim?.(scope);
  }

  release(scope: string): void | Promise<void> {
    return this.#options.isTakenOver() ? undefined : this.#inner.release?.(scope);
  }

  tracesModelCalls(): boolean {
    return this.#inner.tracesModelCalls?.() ?? false;
  }

  traceContextOf(work: TracedWork): TraceContext | null {
    return this.#inner.traceContextOf?.(work) ?? null;
  }

  inSpanOf<T>(work: TracedWork, call: () => T): T {
    return inSpanOf({ journal: this.#inner }, work, call);
  }

  /**
   * Claims the scope and reads its entries; `check` may throw to refuse them. After any failure, the claim is released,
   * because another process may continue the scope.
   */
  async open(
    scope: string,
    host: Host,
    check: (entries: readonly JournalEntry[]) => void = () => {},
  ): Promise<readonly JournalEntry[]> {
    await this.claim(scope);
    try {
      const entries = await this.read({ scope });
      check(entries);
      return entries;
    } catch (error) {
      void this.releaseSafely(scope, host);
      throw error;
    }
  }

  /** Releases the claim, and reports a failure. Never rejects. */
  async releaseSafely(scope: string, host: Host): Promise<void> {
    try {
      await this.release(scope);
    } catch (error) {
      host.report(error, `journal of ${scope}`);
    }
  }

  /**
   * Ends a scope because an entry cannot be folded. Appends `event` as its last entry and releases the claim, so that a
   * new scope may use the id.
   * @returns the error for the caller.
   */
  async lose(
    { id, host, version }: ScopeIdentity,
    kind: 'session' | 'service',
    event: UnitEvent,
    error: UnfoldableEntry,
  ): Promise<OffstageError> {
    try {
      const entries = await this.read({ scope: id });
      const seq = (entries.findLast(({ unit }) => unit === id)?.seq ?? 0) + 1;
      await this.append(lastEntry({ id, host, version }, seq, event));
    } finally {
      void this.releaseSafely(id, host);
    }
    const code = kind === 'session' ? 'SESSION_LOST' : 'SERVICE_LOST';
    const message = `The ${kind} "${id}" is lost: ${error.message}`;
    return new OffstageError(code, message, { cause: error });
  }

  trim(entry: JournalPosition): void | Promise<void> {
    return this.#inner.trim?.(entry);
  }

  /** SCOPE-JOURNAL-1 */
  async #appendForAll(entry: JournalEntry): Promise<void> {
    this.#barrier ??= barrier();
    try {
      await this.#inner.append(entry);
      this.#sinceAll = 0;
      this.#lift();
      if (this.isIdle) this.#options.rested();
    } catch (error) {
      //   SCOPE-JOURNAL-2. While a snapshot entry is being retried, the other entries still wait for it.
      if (isForGood(error)) this.#lift();
      throw error;
    }
  }

  #lift(): void {
    this.#barrier?.lift();
    this.#barrier = null;
  }

  #kept(): void {
    this.#sinceAll += 1;
    if (this.isIdle) this.#options.rested();
  }
}

/** A scope, and the version of the unit that has the same id. */
interface ScopeIdentity {
  readonly id: string;
  readonly host: Host;
  readonly version: number;
}

/** Returns the entry of the scope's own unit that ends the scope. */
export function lastEntry(
  { id, host, version }: ScopeIdentity,
  seq: number,
  event: UnitEvent,
): JournalEntry {
  const at = host.environment.clock.now();
  return { scope: id, unit: id, seq, at, actor: UNIT, definitionVersion: version, event };
}

function barrier(): { readonly lifted: Promise<void>; readonly lift: () => void } {
  let lift = (): void => {};
  const lifted = new Promise<void>((resolve) => (lift = resolve));
  return { lifted, lift };
}

/**
 * The maximum number of event-loop turns that a process waits for the journal before it leaves the scope.
 */
const MAX_TURNS = 10_000;

/** The scope whose snapshots are written. */
interface SnapshotScope {
  readonly id: string;
  readonly host: Host;
  /** The unit that writes the entry. */
  readonly unit: AnyUnit;
  /** The actor that the entry addresses. */
  readonly actor: string;
  /** Returns the snapshot; null if a part of the scope is busy. */
  made(isAsleep: boolean): MadeSnapshot | null;
}

export interface MadeSnapshot {
  readonly event: UnitEvent;
  readonly lives: number;
}

export class ScopeSnapshots {
  readonly #scope: SnapshotScope;
  readonly #journal: ScopeJournal;
  readonly #policy: SnapshotPolicy;
  /**
   * The number of members in the latest snapshot. Writing a snapshot costs about as much as writing that many entries.
   */
  #lives = 0;
  #isScheduled = false;
  #trimmed: Promise<void> | null = null;
  #keepsAll = false;

  constructor(scope: SnapshotScope, journal: ScopeJournal, policy: SnapshotPolicy) {
    this.#scope = scope;
    this.#journal = journal;
    this.#policy = policy;
  }

  /** Handles a stored entry. If a snapshot is due, writes it one turn of the event loop later. */
  entryKept(): void {
    if (this.#isScheduled || this.#scope.unit.disposed || !this.#isDue) return;
    this.#isScheduled = true;
    this.#scope.host.environment.scheduler.yieldThen(() => {
      this.#isScheduled = false;
      if (this.#isDue) this.take();
    });
  }

  /**
   * Writes a snapshot now. Returns false if an entry is being written (SCOPE-JOURNAL-1), or if no entry has been stored
   * since the last snapshot.
   */
  take(isAsleep = false): boolean {
    const { unit, actor } = this.#scope;
    if (unit.disposed || unit.isPaused || unit.isBusy || !this.#journal.isIdle) return false;
    if (this.#journal.sinceAll === 0 && !isAsleep) return false;
    const made = this.#scope.made(isAsleep);
    if (!made) return false;
    this.#lives = made.lives;
    return unit.checkpoint(actor, () => made.event);
  }

  /**
   * Waits for the journal to write the received events, as far as it can. Then, unless snapshots are disabled, writes
   * the final snapshot before the process leaves the scope. Returns true if the scope was idle and the snapshot records
   * that. `isIdle` is called after the wait, because an event may have arrived in the meantime.
   */
  async takeLast(isBusy: () => boolean, isIdle: () => boolean = () => false): Promise<boolean> {
    await this.#rested(isBusy);
    const wasIdle = isIdle();
    const isWanted = wasIdle || this.#policy.afterEntries !== Infinity;
    const isTaken = isWanted && this.take(wasIdle);
    if (isTaken) await this.#rested(isBusy);
    return wasIdle && isTaken;
  }

  async #rested(isBusy: () => boolean): Promise<void> {
    const { scheduler } = this.#scope.host.environment;
    for (let turns = 0; turns < MAX_TURNS && isBusy(); turns += 1)
      await new Promise<void>((resolve) => scheduler.yieldThen(resolve));
  }

  /** Stops deleting the entries that precede this process's snapshots. */
  keepAll(): void {
    this.#keepsAll = true;
  }

  /** Handles a stored snapshot, which is the entry `seq` of its unit. Deletes the entries before it, if requested. */
  written(seq: number): void {
    const { host, id: scope, unit } = this.#scope;
    if (!this.#policy.trim || this.#keepsAll) return;
    callSafely(host, 'trimming of the journal', () => {
      const trimmed = this.#journal.trim({ scope, unit: unit.id, seq });
      this.#trimmed = Promise.resolve(trimmed).catch(() => {});
      return trimmed;
    });
  }

  /** Resolves when the entries before the latest snapshot are deleted, if the policy requests it. */
  async whenTrimmed(): Promise<void> {
    await this.#trimmed;
  }

  get #isDue(): boolean {
    return this.#journal.sinceAll >= Math.max(this.#policy.afterEntries, this.#lives);
  }
}

/** The settings for the snapshots that a session writes to speed up its recovery. */
export interface SnapshotPolicy {
  /**
   * The number of entries after which a session writes a snapshot, as soon as no entry is being written. If the session
   * has more members (calls, questions, subagents) than this number, the number of members is used instead. A session
   * also writes a snapshot when it is suspended. `Infinity`: never. @defaultValue 1000; `Infinity` if no `journal` is
   * given
   */
  readonly afterEntries: number;
  /**
   * Whether to delete the entries before a snapshot, if the journal can. The session then needs less space, but cannot
   * be replayed, recorded or forked from an earlier point. @defaultValue false
   */
  readonly trim: boolean;
}

/**
 * Returns the milliseconds between the first and the last of these entries. The gap before an entry with which a
 * process resumed (`goesOn`) is not counted. The time after a process's last entry is unknown, so it is not counted
 * either.
 */
export function timeAwake(
  entries: readonly JournalEntry[],
  isResumption: (entry: JournalEntry) => boolean,
): number {
  let awakeMs = 0;
  let before = entries[0]?.at ?? 0;
  for (const entry of entries) {
    // The previous process may have used another clock.
    if (!isResumption(entry)) awakeMs += Math.max(0, entry.at - before);
    before = entry.at;
  }
  return awakeMs;
}
