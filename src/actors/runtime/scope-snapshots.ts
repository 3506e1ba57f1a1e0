// What a whole scope (a session, or a program's service) has become, as one entry of its journal: a
// process that goes on with it begins there, and folds only what came after.
//
// Owns:     when one is made, and what is deleted for it.
// Does not: know what is in it (session/lifecycle/snapshots.ts, subagents/service-history.ts).
//
// Invariants
//   SCOPE-SNAPSHOTS-1. It is made when nothing is on its way: no unit of the scope has anything in its mailbox
//        or at the journal. So what one part has forgotten since another one had it is in the other.
//   SCOPE-SNAPSHOTS-2. Nothing is written between the instant in which it is made and its place in the journal.
//   SCOPE-SNAPSHOTS-3. What goes on from it is what goes on from all entries before it: it holds nothing else.
//   SCOPE-SNAPSHOTS-4. What is before it is deleted only when it is kept itself, and only where that was asked for;
//        never where there is a snapshot that this version cannot read (snapshot-forms.ts, SNAPSHOT-FORMS-2).

import type { CommitUnit, UnitEvent } from './commit-unit.ts';
import { callSafely, type Host } from './host.ts';
import type { ScopeJournal } from './scope-journal.ts';

/** What snapshots are made of. */
export interface SnapshotScope {
  readonly id: string;
  readonly host: Host;
  /** Whose entry it is. */
  readonly unit: CommitUnit;
  /** For whom of the unit. */
  readonly actor: string;
  /** What it has become; null: a part of it is busy. */
  made(isAsleep: boolean): MadeSnapshot | null;
}

export interface MadeSnapshot {
  readonly event: UnitEvent;
  /** So many lives are in it. */
  readonly lives: number;
}

export class ScopeSnapshots {
  readonly #scope: SnapshotScope;
  readonly #journal: ScopeJournal;
  readonly #policy: SnapshotPolicy;
  /** Lives that the latest one had: one costs about as much as so many entries. */
  #lives = 0;
  #isScheduled = false;
  #trimmed: Promise<void> | null = null;
  #keepsAll = false;

  constructor(scope: SnapshotScope, journal: ScopeJournal, policy: SnapshotPolicy) {
    this.#scope = scope;
    this.#journal = journal;
    this.#policy = policy;
  }

  /** Something was kept: is it time? It is looked at a turn of the event loop later. */
  entryKept(): void {
    if (this.#isScheduled || this.#scope.unit.disposed || !this.#isDue) return;
    this.#isScheduled = true;
    this.#scope.host.environment.scheduler.yieldThen(() => {
      this.#isScheduled = false;
      if (this.#isDue) this.take();
    });
  }

  /** Writes one down now. False: something is on its way (SCOPE-SNAPSHOTS-1), or nothing has happened since the last. */
  take(isAsleep = false): boolean {
    const { unit, actor } = this.#scope;
    if (unit.disposed || unit.isHeld || unit.isBusy || !this.#journal.isAtRest) return false;
    if (this.#journal.sinceAll === 0 && !isAsleep) return false;
    const made = this.#scope.made(isAsleep);
    if (!made) return false;
    this.#lives = made.lives;
    return unit.note(actor, () => made.event);
  }

  /** The last one before it is left, unless there shall be none. */
  takeLast(isAsleep: boolean): boolean {
    return (isAsleep || this.#policy.afterEntries !== Infinity) && this.take(isAsleep);
  }

  /** Nothing is deleted for one that this process makes. */
  keepAll(): void {
    this.#keepsAll = true;
  }

  /** It is kept, as the entry `seq` of its unit. */
  written(seq: number): void {
    const { host, id: scope, unit } = this.#scope;
    if (!this.#policy.trim || this.#keepsAll) return;
    callSafely(host, 'trimming of the journal', () => {
      const trimmed = this.#journal.trim({ scope, unit: unit.id, seq });
      this.#trimmed = Promise.resolve(trimmed).catch(() => {});
      return trimmed;
    });
  }

  /** Resolves when what is before the latest one is deleted, if it is to be. */
  async whenTrimmed(): Promise<void> {
    await this.#trimmed;
  }

  get #isDue(): boolean {
    return this.#journal.sinceAll >= Math.max(this.#policy.afterEntries, this.#lives);
  }
}

export interface SnapshotPolicy {
  /**
   * After so many entries of a session, at the next instant in which nothing of it is on its way;
   * later where it has more lives (calls, questions, subagents) than that. Also when it is
   * suspended, but for `Infinity`: never. @defaultValue 1000; `Infinity` where no `journal` is given
   */
  readonly afterEntries: number;
  /**
   * Deletes what is before a snapshot, where the journal can: it takes less room, and cannot be
   * replayed, recorded or forked from before it. @defaultValue false
   */
  readonly trim: boolean;
}
