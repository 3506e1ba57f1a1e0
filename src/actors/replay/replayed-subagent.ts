// Replays one subagent: folds its entries into its machine and its log.
//
// Does not: execute effects, or depend on the session (replay-session.ts).

import {
  requestIdOf,
  type Stamped,
  type SubagentSnapshot,
  type WorkOf,
} from '../../machines/index.ts';
import { askOf } from '../../machines/subagent-setup.ts';
import { raisedLimits } from '../contracts/config.ts';
import { readOutcome, type Outcome } from '../contracts/outcome.ts';
import { journalCut } from '../ports/journal-error.ts';
import type { JournalEntry } from '../ports/journal.ts';
import { CommitUnit, type UnitBody, type UnitEvent } from '../runtime/commit-unit.ts';
import {
  SPAWNED,
  SUBAGENT_SHAPES,
  SUBAGENT_VERSION,
  type SpawnedEvent,
  type SubagentUnitEvent,
} from '../subagent/subagent-events.ts';
import { outcomeOf } from '../subagent/outcome-of.ts';
import { SubagentLog, type LogRecord } from '../subagent/subagent-log.ts';
import {
  begin,
  reduce,
  snapshotOf,
  stateIn,
  stateOf,
  takes,
  type SubagentUnitSnapshot,
  type SubagentUnitState,
} from '../subagent/subagent-unit.ts';
import type { RecordSnapshot } from '../subagents/subagent-registry.ts';
import { nothingFollows, replayHost, takenEntry, type TakenEntry } from './entry-by-entry.ts';
import type { ReplaySubagent } from './replay-view.ts';

/** The state from which a subagent continues. */
interface Begun extends Pick<RecordSnapshot, 'id' | 'bornAt' | 'birth'> {
  /** Null if the subagent starts with its spawn entry. */
  readonly rest: SubagentUnitSnapshot | null;
  readonly since?: number | null;
}

/** A subagent in a snapshot or in a checkpoint. Only a checkpoint contains `since`. */
export type KnownSubagent = RecordSnapshot & Pick<Begun, 'since'>;

export class ReplayedSubagent implements UnitBody {
  readonly release = nothingFollows.release;
  readonly crashed = nothingFollows.crashed;
  readonly journalRefused = nothingFollows.journalRefused;
  readonly #id: string;
  readonly #scope: string;
  readonly #spawned: SpawnedEvent;
  readonly shapes = SUBAGENT_SHAPES;
  readonly #unit: CommitUnit;
  #state: SubagentUnitState;
  #outcome: Outcome | null = null;
  readonly #spawnedAt: number;
  /** When the subagent entered its current state and step; null if unknown. */
  #since: number | null;
  /** The cached JSON of the state. */
  #text: string | null = null;

  private constructor(
    scope: string,
    { id, bornAt, birth: spawned, rest, since = null }: Begun,
    seq: number,
  ) {
    this.#id = id;
    this.#scope = scope;
    this.#spawnedAt = bornAt;
    this.#since = rest ? since : bornAt;
    this.#spawned = spawned;
    const identity = { id, scope, kind: 'subagent', definitionVersion: SUBAGENT_VERSION };
    this.#unit = new CommitUnit(identity, replayHost(bornAt), this);
    this.#unit.setSequence(seq);
    this.#state = rest ? stateIn(rest) : begin(id, { at: bornAt, limits: spawned.limits })[0];
  }

  /** @throws {JournalError} `JOURNAL_CUT` if `entry` does not spawn the subagent. */
  static spawned(entry: JournalEntry): ReplayedSubagent {
    const { scope, unit: id, seq, at: bornAt, event } = entry;
    if (event.type !== SPAWNED) throw journalCut(entry);
    const birth = event as SpawnedEvent;
    return new ReplayedSubagent(scope, { id, bornAt, birth, rest: null }, seq - 1);
  }

  /** Restores a subagent from a snapshot: a live subagent continues from it, an ended one is stored only as a view. */
  static known(scope: string, record: KnownSubagent): ReplayedSubagent | ReplaySubagent {
    const { rest, ...begun } = record;
    if (!('outcome' in rest)) return new ReplayedSubagent(scope, { ...begun, rest }, rest.seq);
    const { name, parentId, callId, task, budget } = record.birth;
    const { step } = rest;
    const outcome = readOutcome(rest.outcome);
    return {
      ...(budget && { budget }),
      id: record.id,
      name,
      parentId,
      callId,
      task: task.description,
      state:
        outcome.status === 'completed' || outcome.status === 'cancelled'
          ? outcome.status
          : 'failed',
      step,
      messages: 0,
      settledCalls: outcome.toolLedger.length,
      usage: outcome.usage,
      outcome,
    };
  }

  /**
   * Returns the conversation of the subagent's model up to the last of these entries, even for an ended subagent.
   * `record`: the subagent in the snapshot that precedes the entries. Null if the entries do not contain the messages.
   */
  static messagesIn(
    entries: readonly JournalEntry[],
    record: RecordSnapshot | null,
    quarantineReason: (entry: JournalEntry) => string | null,
  ): LogRecord['messages'] | null {
    const [first] = entries;
    if (!first) return null;
    const known = record && ReplayedSubagent.known(first.scope, record);
    if (known && !(known instanceof ReplayedSubagent)) return null;
    if (!known && first.event.type !== SPAWNED) return null;
    const subagent = known ?? ReplayedSubagent.spawned(first);
    for (const entry of entries) subagent.fold(entry, quarantineReason(entry));
    return subagent.messages;
  }

  /** Folds the entry. `reason`: why a later entry quarantines this entry; null if none does. */
  fold(entry: JournalEntry, reason: string | null): TakenEntry {
    this.#text = null;
    return takenEntry(this.#unit, entry, reason);
  }

  /** Returns a `RecordSnapshot` as JSON, from which `known` continues. */
  toText(): string {
    const { snapshot, log, ...facts } = this.#state;
    this.#text ??= JSON.stringify({
      id: this.#id,
      bornAt: this.#spawnedAt,
      birth: this.#spawned,
      rest: { seq: this.#unit.seq, life: { snapshot, log }, ...facts },
      since: this.#since,
    } satisfies KnownSubagent);
    return this.#text;
  }

  /** Marks the subagent as ended by a quarantined entry. */
  endedBy(message: string): void {
    const { step: steps } = this.snapshot.context;
    const error = { code: 'INTERNAL', message, retryable: false };
    this.#outcome ??= outcomeOf(
      { status: 'failed', steps, error },
      new SubagentLog(this.#state.log),
    );
  }

  take(_actor: string, event: UnitEvent & Stamped): (UnitEvent & Stamped) | null {
    const isTaken =
      event.type === SPAWNED || takes(this.#state, event as SubagentUnitEvent & Stamped);
    return isTaken ? event : null;
  }

  apply(_actor: string, applied: UnitEvent & Stamped): void {
    const event = applied as SubagentUnitEvent & Stamped;
    if (event.type === SPAWNED) return;
    const before = stageOf(this.snapshot);
    [this.#state] = reduce(this.#state, event);
    const { snapshot } = this;
    if (stageOf(snapshot) !== before) this.#since = event.at;
    if (snapshot.status === 'done')
      this.#outcome ??= outcomeOf(snapshot.output, new SubagentLog(this.#state.log));
  }

  get messages(): LogRecord['messages'] {
    return this.#state.log.messages;
  }

  /** The service event that the subagent is examining; null if it has another task. */
  get eventId(): string | null {
    const { idempotencyKey, parentId, callId } = this.#spawned;
    const prefix = `${this.#scope}:`;
    return parentId === null && callId === null && idempotencyKey?.startsWith(prefix) === true
      ? idempotencyKey.slice(prefix.length)
      : null;
  }

  get snapshot(): SubagentSnapshot {
    return snapshotOf(this.#state);
  }

  get work(): WorkOf {
    const { snapshot, log } = this.#state;
    const { parentId, callId, relay = null, engine = null } = this.#spawned;
    const { calls, step } = snapshot.context;
    const tools = calls.flatMap(
      ({ callId: id }): [string, { toolName: string; engine?: string }][] => {
        const call = log.calls.find((one) => one.callId === id);
        if (!call) return [];
        const { toolName, job } = call;
        return [[id, { toolName, ...(job !== undefined && { engine: job }) }]];
      },
    );
    const inDoubt = log.ledger.filter(
      (entry) => entry.status === 'in_flight' && entry.step >= step - 1,
    );
    return {
      parentId,
      callId,
      relay,
      engine,
      tools: new Map(tools),
      inDoubt: inDoubt.map(({ toolName }) => toolName),
      ...(this.#since !== null && { since: this.#since }),
    };
  }

  /** The open question and the identities that may answer it; null if any identity may. */
  get asking(): readonly [requestId: string, by: readonly string[]] | null {
    const { snapshot, log } = this.#state;
    const callId = askOf(snapshot.context.calls)?.callId;
    const by = log.calls.find((call) => call.callId === callId)?.answerableBy;
    return by ? [requestIdOf(this.#id, snapshot.context.asked), by] : null;
  }

  get view(): ReplaySubagent {
    const { snapshot, log } = this.#state;
    const { name, parentId, callId, task, budget } = this.#spawned;
    return {
      ...(budget && { budget: raisedLimits(budget, snapshot.context.raised) }),
      id: this.#id,
      name,
      parentId,
      callId,
      task: task.description,
      state: stateOf(snapshot),
      step: snapshot.context.step,
      messages: log.messages.length,
      settledCalls: log.ledger.length,
      usage: log.usage,
      outcome: this.#outcome,
    };
  }
}

/** The subagent's state and step. */
const stageOf = ({ value, context: { step } }: SubagentSnapshot): string =>
  `${step} ${typeof value === 'string' ? value : Object.entries(value).join()}`;
