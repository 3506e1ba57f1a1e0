// The journal as one scope (a session, or a service of the program) sees it, and its snapshots: each is one entry
// that stands for all before it. A process that continues the scope starts there, and folds only the later
// entries.
//
// Owns:     how a scope is taken up and given up, the number of entries since the last snapshot, when a snapshot is made, the order around its entry,
//           and which entries it replaces.
// Does not: know the content of an entry or a snapshot (session/lifecycle/session-journal.ts,
//           subagents/service-ledger.ts).
//
// Invariants
//   SCOPE-JOURNAL-1. While a snapshot entry is being written, no other entry of the scope is: later entries
//        wait behind it, however often it has to be retried.
//   SCOPE-JOURNAL-2. Entries do not wait for a snapshot entry that is refused permanently.
//   SCOPE-SNAPSHOTS-1. A snapshot is made when no unit of the scope has an event in its mailbox or at the
//        journal. So information that one part has passed on and forgotten is in the part that received it.
//   SCOPE-SNAPSHOTS-2. No entry is written between the instant of a snapshot and its place in the journal.
//   SCOPE-SNAPSHOTS-3. Continuing from a snapshot equals continuing from all entries before it: it holds
//       nothing else.
//   SCOPE-SNAPSHOTS-4. Entries before a snapshot are deleted only once the snapshot itself is kept, only if
//        that is requested, and never if there is a snapshot that this version cannot read
//        (upcasters.ts, SNAPSHOT-FORMS-2).

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
  /** Reports that an entry was kept and none is being written. */
  rested(): void;
  /**
   * Tells whether another object in this process has taken the scope over: it continues under the same claim.
   */
  isTakenOver(): boolean;
}

export class ScopeJournal implements Journal {
  readonly #inner: Journal;
  readonly #options: ScopeJournalOptions;
  #sinceAll = 0;
  #underWay = 0;
  /** The snapshot entry being written; later entries wait for `lifted`. */
  #barrier: { readonly lifted: Promise<void>; readonly lift: () => void } | null = null;

  constructor(inner: Journal, options: ScopeJournalOptions) {
    this.#inner = inner;
    this.#options = options;
  }

  /** The number of entries kept since the last snapshot entry. */
  get sinceAll(): number {
    return this.#sinceAll;
  }

  /** Whether no entry is being written. */
  get isIdle(): boolean {
    return this.#underWay === 0 && this.#barrier === null;
  }

  /** Records the number of entries that existed before this process. */
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
   * Claims the scope and reads its entries; `check` may refuse them. If any of it fails, the claim is given
   * back, because another process may continue the scope.
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

  /** Gives the claim back; a failure is reported. Never rejects. */
  async releaseSafely(scope: string, host: Host): Promise<void> {
    try {
      await this.release(scope);
    } catch (error) {
      host.report(error, `journal of ${scope}`);
    }
  }

  /**
   * Gives up a scope with an entry that cannot be applied: `event` becomes its last entry, and the claim is given
   * back, so that the next scope of this id begins anew.
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
      // SCOPE-JOURNAL-2. A snapshot entry that is retried still precedes all others.
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

/** A scope and the version of the unit that is named like it. */
interface ScopeIdentity {
  readonly id: string;
  readonly host: Host;
  readonly version: number;
}

/** Returns the entry of the scope's own unit that ends it. */
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

/** The number of turns of the event loop for which a scope that is left waits for its journal. */
const MAX_TURNS = 10_000;

/** The scope that snapshots are made of. */
interface SnapshotScope {
  readonly id: string;
  readonly host: Host;
  /** The unit that writes the entry. */
  readonly unit: AnyUnit;
  /** The actor of the unit that the entry is for. */
  readonly actor: string;
  /** Returns the snapshot; null if a part of the scope is busy. */
  made(isAsleep: boolean): MadeSnapshot | null;
}

export interface MadeSnapshot {
  readonly event: UnitEvent;
  /** The number of members in it. */
  readonly lives: number;
}

export class ScopeSnapshots {
  readonly #scope: SnapshotScope;
  readonly #journal: ScopeJournal;
  readonly #policy: SnapshotPolicy;
  /** The number of members in the latest snapshot: writing one costs about as much as that many entries. */
  #lives = 0;
  #isScheduled = false;
  #trimmed: Promise<void> | null = null;
  #keepsAll = false;

  constructor(scope: SnapshotScope, journal: ScopeJournal, policy: SnapshotPolicy) {
    this.#scope = scope;
    this.#journal = journal;
    this.#policy = policy;
  }

  /** Handles a kept entry. Whether a snapshot is due is checked a turn of the event loop later. */
  entryKept(): void {
    if (this.#isScheduled || this.#scope.unit.disposed || !this.#isDue) return;
    this.#isScheduled = true;
    this.#scope.host.environment.scheduler.yieldThen(() => {
      this.#isScheduled = false;
      if (this.#isDue) this.take();
    });
  }

  /**
   * Writes a snapshot now. Returns false if an entry is under way (SCOPE-SNAPSHOTS-1) or nothing has happened
   * since the last one.
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
   * Waits until received events are written down, as far as the journal can, and writes the final snapshot
   * before the scope is left, unless snapshots are disabled. Returns whether the scope was idle then, and the
   * snapshot says so: an event that comes later is behind it. `isIdle` is evaluated at that instant, not at the
   * call: an event may have come meanwhile.
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

  /** Prevents deletions for the snapshots that this process makes. */
  keepAll(): void {
    this.#keepsAll = true;
  }

  /** Records that a snapshot was kept as the entry `seq` of its unit. */
  written(seq: number): void {
    const { host, id: scope, unit } = this.#scope;
    if (!this.#policy.trim || this.#keepsAll) return;
    callSafely(host, 'trimming of the journal', () => {
      const trimmed = this.#journal.trim({ scope, unit: unit.id, seq });
      this.#trimmed = Promise.resolve(trimmed).catch(() => {});
      return trimmed;
    });
  }

  /** Resolves when the entries before the latest snapshot are deleted, if they are to be. */
  async whenTrimmed(): Promise<void> {
    await this.#trimmed;
  }

  get #isDue(): boolean {
    return this.#journal.sinceAll >= Math.max(this.#policy.afterEntries, this.#lives);
  }
}

/** When a session writes a snapshot of itself, from which it is recovered faster. */
export interface SnapshotPolicy {
  /**
   * The number of entries of a session after which a snapshot is made, at the next instant in which none of
   * its entries is under way; more if the session has more members (calls, questions, subagents) than that. A
   * snapshot is also made when it is suspended. `Infinity`: never. @defaultValue 1000; `Infinity` if no
   * `journal` is given
   */
  readonly afterEntries: number;
  /**
   * Deletes the entries before a snapshot, if the journal can: the session takes less space, and cannot be
   * replayed, recorded or forked from an earlier point. @defaultValue false
   */
  readonly trim: boolean;
}

/**
 * Returns the milliseconds from the first of these entries to the last, without the gaps before entries with
 * which a process resumed. The time after the last entry of a process is unknown and not counted.
 */
export function timeAwake(
  entries: readonly JournalEntry[],
  goesOn: (entry: JournalEntry) => boolean,
): number {
  let awakeMs = 0;
  let before = entries[0]?.at ?? 0;
  for (const entry of entries) {
    // The previous process may have had another clock.
    if (!goesOn(entry)) awakeMs += Math.max(0, entry.at - before);
    before = entry.at;
  }
  return awakeMs;
}
