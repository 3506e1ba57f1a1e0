// One subagent, folded again by the same machine and log that run live.
//
// Owns:     its unit and its life, and their views.
// Does not: call models or tools, or ask questions.

import type { Stamped } from '../../machines/index.ts';
import type { RecordSnapshot } from '../subagents/subagent-registry.ts';
import type { JournalEntry } from '../ports/journal.ts';
import { CommitUnit, type UnitBody, type UnitEvent } from '../runtime/commit-unit.ts';
import type { Effect } from '../runtime/hosting.ts';
import { SUBAGENT_SHAPES } from '../subagent/event-shapes.ts';
import { outcomeOf } from '../subagent/outcome-of.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { SubagentUnitSnapshot } from '../subagent/subagent.ts';
import { SPAWNED, SUBAGENT_VERSION, type SpawnedEvent } from '../subagent/spawned-event.ts';
import { stateOf, SubagentLife } from '../subagent/subagent-life.ts';
import type { SubagentUnitEvent } from '../subagent/subagent-ports.ts';
import { journalCut } from '../ports/journal-error.ts';
import { EntryByEntry, nothingFollows, replayHost, type TakenEntry } from './replay-host.ts';
import type { ReplaySubagent } from './replay-view.ts';

/** The state to continue from. */
interface Begun extends Pick<RecordSnapshot, 'id' | 'bornAt' | 'birth'> {
  /** Null: from its birth. */
  readonly rest: SubagentUnitSnapshot | null;
}

export class ReplayedSubagent implements UnitBody {
  readonly release = nothingFollows.release;
  readonly crashed = nothingFollows.crashed;
  readonly journalRefused = nothingFollows.journalRefused;
  readonly #id: string;
  readonly #birth: SpawnedEvent;
  readonly shapes = SUBAGENT_SHAPES;
  readonly #unit: CommitUnit;
  readonly #entries: EntryByEntry;
  #life: SubagentLife;
  #outcome: Outcome | null = null;

  private constructor(scope: string, { id, bornAt, birth, rest }: Begun, seq: number) {
    this.#id = id;
    this.#birth = birth;
    const identity = { id, scope, kind: 'subagent', definitionVersion: SUBAGENT_VERSION };
    this.#unit = new CommitUnit(identity, replayHost(bornAt), this);
    this.#unit.setSequence(seq);
    const postbox = { post: (effect: Effect) => this.#unit.post('subagent', effect) };
    const from = rest ? { id, ...rest.life } : { id, at: bornAt, ...birth.limits };
    const life = () => new SubagentLife(from, postbox, { id });
    this.#life = life();
    this.#entries = new EntryByEntry(this.#unit, () => (this.#life = life()));
  }

  /** @throws {JournalError} `JOURNAL_CUT` if `spawned` is not its birth. */
  static born(spawned: JournalEntry): ReplayedSubagent {
    const { scope, unit: id, seq, at: bornAt, event } = spawned;
    if (event.type !== SPAWNED) throw journalCut(spawned);
    const birth = event as SpawnedEvent;
    return new ReplayedSubagent(scope, { id, bornAt, birth, rest: null }, seq - 1);
  }

  /** Restores it from a snapshot: a live one continues from there, an ended one is only a view. */
  static known(scope: string, record: RecordSnapshot): ReplayedSubagent | ReplaySubagent {
    const { rest, ...begun } = record;
    if (!('outcome' in rest)) return new ReplayedSubagent(scope, { ...begun, rest }, rest.seq);
    const { name, parentId, callId, task } = record.birth;
    const { outcome, step } = rest;
    return {
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
      outcome,
    };
  }

  /** Folds the entry. `reason`: why a later entry sets it aside; null if none does. */
  take(entry: JournalEntry, reason: string | null): TakenEntry {
    return this.#entries.take(entry, reason);
  }

  /** Marks it as ended by an entry that is set aside. */
  endedBy(message: string): void {
    const { step: steps } = this.#life.actor.getSnapshot().context;
    const error = { code: 'INTERNAL', message, retryable: false };
    this.#outcome ??= outcomeOf({ status: 'failed', steps, error }, this.#life.log);
  }

  accepts(_actor: string, event: UnitEvent & Stamped): boolean {
    return event.type === SPAWNED || this.#life.accepts(event);
  }

  apply(_actor: string, event: UnitEvent & Stamped): void {
    if (event.type === SPAWNED) return;
    const snapshot = this.#life.apply(event as SubagentUnitEvent & Stamped);
    if (snapshot.status === 'done') this.#outcome ??= outcomeOf(snapshot.output, this.#life.log);
  }

  get view(): ReplaySubagent {
    const { actor, log } = this.#life;
    const { name, parentId, callId, task } = this.#birth;
    const snapshot = actor.getSnapshot();
    return {
      id: this.#id,
      name,
      parentId,
      callId,
      task: task.description,
      state: stateOf(snapshot),
      step: snapshot.context.step,
      messages: log.messages.length,
      settledCalls: log.ledger.length,
      outcome: this.#outcome,
    };
  }
}
