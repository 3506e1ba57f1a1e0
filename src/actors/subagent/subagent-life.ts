// The actor and the log of a subagent, as long as something goes on; while it only waits,
// one string instead. Ten thousand that wait are ten thousand strings.
//
// Owns:     the actor, the log, what an event does to both, and which of the two forms they have
//           at the moment.
// Does not: know when it may be put away, or carry anything out (the subagent does).
//
// Invariants
//   F1. What is put away comes back as it was: the same state, the same log.
//   F2. What it is follows from its input and its events alone.

import type { Actor, Snapshot } from 'xstate';
import {
  subagentMachine,
  type Stamped,
  type SubagentEvent,
  type SubagentInput,
  type SubagentSnapshot,
} from '../../machines/index.ts';
import type { ModelStepInput } from '../../machines/subagent-setup.ts';
import type { UnitEvent } from '../runtime/commit-unit.ts';
import {
  restOf,
  startHosted,
  type Effect,
  type HostOptions,
  type Postbox,
} from '../runtime/hosting.ts';
import type { SubagentState } from '../session-views.ts';
import { callsUnderWay, foldEvent } from './fold-event.ts';
import { SubagentLog, type LogRecord } from './subagent-log.ts';

interface Live {
  readonly actor: Actor<typeof subagentMachine>;
  readonly log: SubagentLog;
}

/** As JSON; what a log holds is plain JSON, and so is what the machine holds. */
interface Parked {
  readonly snapshot: Snapshot<unknown>;
  readonly log: LogRecord;
}

/** The state of its machine, without what it does in it. */
export function stateOf({ value }: SubagentSnapshot): SubagentState {
  return (typeof value === 'string' ? value : Object.keys(value)[0]) as SubagentState;
}

export class SubagentLife {
  readonly #id: string;
  readonly #postbox: Postbox;
  readonly #isInspected: boolean;
  #form!: Live | string;

  constructor(input: SubagentInput, postbox: Postbox, hosting: Omit<HostOptions, 'snapshot'>) {
    this.#id = input.id;
    this.#postbox = { post: (effect) => this.#post(effect, postbox) };
    this.#isInspected = hosting.inspect !== undefined;
    const actor = startHosted(subagentMachine, input, this.#postbox, hosting);
    this.#form = { actor, log: new SubagentLog() };
  }

  get actor(): Live['actor'] {
    return this.#awake.actor;
  }

  get log(): SubagentLog {
    return this.#awake.log;
  }

  /** Would this event change anything? */
  accepts(event: UnitEvent & Stamped): boolean {
    const wasParked = typeof this.#form === 'string';
    const snapshot = this.actor.getSnapshot();
    const isAccepted = snapshot.status === 'active' && snapshot.can(event as SubagentEvent);
    if (wasParked && !isAccepted) this.park();
    return isAccepted;
  }

  /** Takes an event in: its words first, then what happens next. Returns what its machine has become. */
  apply(event: UnitEvent & Stamped): SubagentSnapshot {
    const { actor, log } = this.#awake;
    const before = actor.getSnapshot();
    foldEvent(event as never, log, before);
    actor.send(event as SubagentEvent);
    const snapshot = actor.getSnapshot();
    if (snapshot.status === 'error') throw snapshot.error;
    if (snapshot.status === 'done') log.underWay(callsUnderWay(before));
    return snapshot;
  }

  /** Puts it away until somebody asks for its actor or log. An inspected one stays as it is. */
  park(): void {
    if (typeof this.#form === 'string' || this.#isInspected) return;
    const { actor, log } = this.#form;
    const parked: Parked = { snapshot: restOf(actor), log: log.record };
    this.#form = JSON.stringify(parked);
    actor.stop();
  }

  #post(effect: Effect, postbox: Postbox): void {
    // Here, not when it is carried out: what the model reads follows from the entries (F2).
    if (effect.kind === 'start' && effect.name === 'modelStep' && typeof this.#form === 'object')
      this.#form.log.beginStep(effect.input as ModelStepInput);
    postbox.post(effect);
  }

  get #awake(): Live {
    if (typeof this.#form !== 'string') return this.#form;
    const { snapshot, log } = JSON.parse(this.#form) as Parked;
    // Its name in the inspector is not kept: an inspected one is never put away.
    const hosting = { id: this.#id, snapshot };
    const actor = startHosted(subagentMachine, undefined, this.#postbox, hosting);
    this.#form = { actor, log: new SubagentLog(log) };
    return this.#form;
  }
}
