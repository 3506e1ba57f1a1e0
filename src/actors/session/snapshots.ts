// What a whole session has become, as one entry of its journal: a process that goes on with the
// session begins there, and folds only what came after.
//
// Owns:     when one is made, and what is in it.
// Does not: put the parts back (recovery.ts), or know what a part is (each says so itself).
//
// Invariants
//   SN1. It is made when nothing is on its way: no unit of the session has anything in its mailbox
//        or at the journal. So what one part has forgotten since another one had it is in the other.
//   SN2. Nothing is written between the instant in which it is made and its place in the journal.
//   SN3. What goes on from it is what goes on from all entries before it: it holds nothing else.
//   SN4. What is before it is deleted only when it is kept itself, and only where that was asked for.

import type { Delegation } from '../delegation/delegation.ts';
import type { DelegationRest } from '../delegation/delegation-rest.ts';
import type { JournalEntry } from '../ports/journal.ts';
import type { UnitEvent } from '../runtime/commit-unit.ts';
import { callSafely, type Host } from '../runtime/host.ts';
import type { SnapshotPolicy } from '../runtime/runtime.ts';
import type { ScopeJournal } from '../runtime/scope-journal.ts';
import { SERVICE_VERSION, type ServiceRest } from '../service/service.ts';
import type { SessionServices } from '../service/session-services.ts';
import { SUBAGENT_VERSION } from '../subagent/subagent-birth.ts';
import type { Books, BooksRest } from './books.ts';
import { inputsOf, openedWith, type SessionInputs } from './session-inputs.ts';
import {
  SESSION_VERSION,
  SNAPSHOTS,
  type SessionUnit,
  type SessionUnitRest,
} from './session-unit.ts';

export const SNAPSHOT = 'session.snapshot';

/** What a session goes on from. */
export interface SessionSnapshot {
  readonly inputs: SessionInputs;
  readonly unit: SessionUnitRest;
  readonly books: BooksRest;
  /** By their names. */
  readonly services: Readonly<Record<string, ServiceRest>>;
  readonly delegation: DelegationRest;
  /** It was put away like this: whoever was there still is. */
  readonly isAsleep: boolean;
}

interface SnapshotEvent extends Omit<SessionSnapshot, 'inputs'> {
  readonly type: typeof SNAPSHOT;
  readonly versions: typeof VERSIONS;
  readonly inputs: unknown;
}

/** Of what it consists of. */
const VERSIONS = {
  session: SESSION_VERSION,
  subagent: SUBAGENT_VERSION,
  service: SERVICE_VERSION,
} as const;

/** The snapshot that this entry is; null: it is none, or one of another version. */
export function snapshotIn({ event }: JournalEntry): SessionSnapshot | null {
  if (event.type !== SNAPSHOT) return null;
  const { inputs, versions, ...rest } = event as SnapshotEvent;
  const isOurs = JSON.stringify(versions) === JSON.stringify(VERSIONS);
  return isOurs ? { ...rest, inputs: inputsOf(inputs) } : null;
}

interface Session {
  readonly id: string;
  readonly host: Host;
  readonly unit: SessionUnit;
  readonly books: Books;
  readonly services: SessionServices;
  readonly delegation: Delegation;
}

export class Snapshots {
  readonly #session: Session;
  readonly #journal: ScopeJournal;
  readonly #policy: SnapshotPolicy;
  /** Lives that the latest one had: one costs about as much as so many entries. */
  #lives = 0;
  #isScheduled = false;
  #trimmed: Promise<void> | null = null;

  constructor(session: Session, journal: ScopeJournal, policy: SnapshotPolicy) {
    this.#session = session;
    this.#journal = journal;
    this.#policy = policy;
  }

  /** Something was kept: is it time? It is looked at a turn of the event loop later. */
  entryKept(): void {
    if (this.#isScheduled || this.#session.unit.unit.disposed || !this.#isDue) return;
    this.#isScheduled = true;
    this.#session.host.environment.scheduler.yieldThen(() => {
      this.#isScheduled = false;
      if (this.#isDue) this.take();
    });
  }

  /** Writes one down now. False: something is on its way (SN1), or nothing has happened since the last. */
  take(isAsleep = false): boolean {
    const { unit, books, services, delegation } = this.#session;
    if (!this.#journal.isAtRest || (this.#journal.sinceAll === 0 && !isAsleep) || services.isBusy)
      return false;
    const subagents = delegation.rest;
    if (!subagents) return false;
    return unit.unit.note(SNAPSHOTS, (): UnitEvent & SnapshotEvent => {
      const { rest } = unit;
      this.#lives = subagents.subagents.length + rest.calls.length + rest.questions.length;
      return {
        type: SNAPSHOT,
        versions: VERSIONS,
        inputs: openedWith(unit.inputs).inputs,
        unit: rest,
        books: books.rest,
        services: services.rest,
        delegation: subagents,
        isAsleep,
      };
    });
  }

  /** The last one before it is left, unless there shall be none. */
  takeLast(isAsleep: boolean): boolean {
    return (isAsleep || this.#policy.afterEntries !== Infinity) && this.take(isAsleep);
  }

  /** It is kept, as the entry `seq` of the session. */
  written(seq: number): void {
    const { host, id } = this.#session;
    if (!this.#policy.trim) return;
    callSafely(host, 'trimming of the journal', () => {
      const trimmed = this.#journal.trim({ scope: id, unit: id, seq });
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
