// The actor and the log of a subagent, as long as something goes on; while it only waits,
// one string instead. Ten thousand that wait are ten thousand strings.
//
// Owns:     the actor, the log, what an event does to both, and which of the two forms they have
//           at the moment.
// Does not: know when it may be put away, or carry anything out (the subagent does).
//
// Invariants
//   SUBAGENT-LIFE-1. What is put away comes back as it was: the same state, the same log.
//   SUBAGENT-LIFE-2. What it is follows from its input and its events alone.

import type { Snapshot } from 'xstate';
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
  sendHosted,
  startHosted,
  stopHosted,
  type Effect,
  type HostedActor,
  type HostOptions,
  type Postbox,
} from '../runtime/hosting.ts';
import type { SubagentState } from '../contracts/session-views.ts';
import { callsUnderWay, foldEvent } from './fold-event.ts';
import type { Usage } from '../contracts/outcome.ts';
import { SubagentLog, type LogRecord } from './subagent-log.ts';

interface Live {
  readonly actor: HostedActor<typeof subagentMachine>;
  readonly log: SubagentLog;
}

/** As JSON; what a log holds is plain JSON, and so is what the machine holds. */
interface Parked {
  readonly snapshot: Snapshot<unknown>;
  readonly log: LogRecord;
}

/** What it is, as plain JSON. */
export interface LifeRest extends Parked {
  /** It only waited. @defaultValue false */
  readonly isParked?: true;
}

/** The state of its machine, without what it does in it. */
export function stateOf({ value }: Pick<SubagentSnapshot, 'value'>): SubagentState {
  return (typeof value === 'string' ? value : Object.keys(value)[0]) as SubagentState;
}

/** In the middle of calls: some of them may have been made. */
export function isActing(snapshot: SubagentSnapshot): boolean {
  return snapshot.matches({ running: 'acting' }) || snapshot.matches('waiting_for_children');
}

export class SubagentLife implements Postbox {
  readonly #id: string;
  readonly #postbox: Postbox;
  readonly #isInspected: boolean;
  #form!: Live | string;

  /** It begins with an input, or goes on from what `rest` was. */
  constructor(
    from: SubagentInput | (LifeRest & { readonly id: string }),
    postbox: Postbox,
    hosting: Omit<HostOptions, 'snapshot'>,
  ) {
    this.#id = from.id;
    this.#postbox = postbox;
    this.#isInspected = hosting.inspect !== undefined;
    if (!('log' in from)) {
      const actor = startHosted(subagentMachine, from, this, hosting);
      this.#form = { actor, log: new SubagentLog() };
      return;
    }
    const { snapshot, log, isParked } = from;
    if (isParked && !this.#isInspected) this.#form = JSON.stringify({ snapshot, log });
    else this.#form = this.#woken({ snapshot, log }, hosting);
  }

  /** What it is, for another one to go on from. */
  get rest(): LifeRest {
    if (typeof this.#form === 'string')
      return { ...(JSON.parse(this.#form) as Parked), isParked: true };
    const { actor, log } = this.#form;
    return { snapshot: restOf(actor), log: log.record };
  }

  /** Nothing but the string is left of it. */
  get isParked(): boolean {
    return typeof this.#form === 'string';
  }

  get actor(): Live['actor'] {
    return this.#awake.actor;
  }

  get log(): SubagentLog {
    return this.#awake.log;
  }

  /** What its models used. A parked one is not woken for it. */
  get usage(): Usage {
    const form = this.#form;
    return typeof form === 'string' ? (JSON.parse(form) as Parked).log.usage : form.log.usage;
  }

  /** It was told this, and has not read it. A parked one is not woken for it. */
  hasUnread(messageId: string): boolean {
    const form = this.#form;
    const snapshot =
      typeof form === 'string' ? (JSON.parse(form) as Parked).snapshot : form.actor.getSnapshot();
    const { unread } = (snapshot as SubagentSnapshot).context;
    return unread.some((one) => one.messageId === messageId);
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
    sendHosted(actor, event);
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
    stopHosted(actor);
  }

  /** What its machine wants: the postbox of the subagent has it next. */
  post(effect: Effect): void {
    // Here, not when it is carried out: what the model reads follows from the entries (SUBAGENT-LIFE-2).
    if (effect.kind === 'start' && effect.name === 'modelStep' && typeof this.#form === 'object')
      this.#form.log.beginStep(effect.input as ModelStepInput);
    this.#postbox.post(effect);
  }

  /** It is over here: nothing comes from its actor any more. A parked one has none. */
  stop(): void {
    if (typeof this.#form !== 'string') stopHosted(this.#form.actor);
  }

  get #awake(): Live {
    if (typeof this.#form !== 'string') return this.#form;
    // Its name in the inspector is not kept: an inspected one is never put away.
    this.#form = this.#woken(JSON.parse(this.#form) as Parked, { id: this.#id });
    return this.#form;
  }

  #woken({ snapshot, log }: Parked, hosting: HostOptions): Live {
    const options = { ...hosting, snapshot };
    const actor = startHosted(subagentMachine, undefined, this, options);
    return { actor, log: new SubagentLog(log) };
  }
}
