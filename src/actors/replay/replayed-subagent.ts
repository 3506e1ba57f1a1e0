// One subagent, folded again by the very machine and log that run live.
//
// Owns:     its unit and its life, and how they are shown.
// Does not: think, call tools, or ask anybody.

import type { Stamped } from '../../machines/index.ts';
import type { JournalEntry } from '../ports/journal.ts';
import { CommitUnit, type UnitBody, type UnitEvent } from '../runtime/commit-unit.ts';
import type { Effect } from '../runtime/hosting.ts';
import { outcomeOf } from '../subagent/outcome-of.ts';
import type { Outcome } from '../subagent/outcome.ts';
import { SPAWNED, SUBAGENT_VERSION, type SubagentBirth } from '../subagent/subagent-birth.ts';
import { stateOf, SubagentLife } from '../subagent/subagent-life.ts';
import { journalCut } from './journal-cut.ts';
import { nothingFollows, replayHost } from './replay-host.ts';
import type { ReplaySubagent } from './replay-view.ts';

export class ReplayedSubagent implements UnitBody {
  readonly release = nothingFollows.release;
  readonly crashed = nothingFollows.crashed;
  readonly journalRefused = nothingFollows.journalRefused;
  readonly #id: string;
  readonly #birth: SubagentBirth;
  readonly #unit: CommitUnit;
  readonly #life: SubagentLife;
  #outcome: Outcome | null = null;

  /** @throws {JournalError} `JOURNAL_CUT` where `spawned` is not its birth. */
  constructor(spawned: JournalEntry) {
    const { scope, unit: id, seq, at, event } = spawned;
    if (event.type !== SPAWNED) throw journalCut(spawned);
    this.#id = id;
    this.#birth = event as SubagentBirth;
    const identity = { id, scope, kind: 'subagent', definitionVersion: SUBAGENT_VERSION };
    this.#unit = new CommitUnit(identity, replayHost(at), this);
    this.#unit.skip(seq - 1);
    const postbox = { post: (effect: Effect) => this.#unit.post('subagent', effect) };
    this.#life = new SubagentLife({ id, at, ...this.#birth.limits }, postbox, { id });
  }

  /** Takes the entry in. Returns whether the subagent would accept it. */
  take(entry: JournalEntry): boolean {
    const isAccepted = this.#unit.wouldAccept(entry);
    this.#unit.refold([entry]);
    return isAccepted;
  }

  accepts(_actor: string, event: UnitEvent & Stamped): boolean {
    return event.type === SPAWNED || this.#life.accepts(event);
  }

  apply(_actor: string, event: UnitEvent & Stamped): void {
    if (event.type === SPAWNED) return;
    const snapshot = this.#life.apply(event);
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
