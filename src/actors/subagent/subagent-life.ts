// The actor and the log of a subagent while something is under way; while it only waits, one string replaces
// both. Ten thousand waiting subagents are ten thousand strings.
//
// Owns:     the actor, the log, the effect of an event on both, and the form that they have at the moment.
// Does not: decide when it may be parked, or carry anything out (the subagent does).
//
// Invariants
//   SUBAGENT-LIFE-1. A parked life comes back unchanged: the same state, the same log.
//   SUBAGENT-LIFE-2. Its content follows from its input and its events alone.

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
  snapshotOf,
  sendHosted,
  startHosted,
  stopHosted,
  type Effect,
  type HostedActor,
  type HostOptions,
  type Postbox,
} from '../runtime/hosting.ts';
import type { SubagentState } from '../contracts/session-views.ts';
import type { Usage } from '../contracts/outcome.ts';
import { SubagentLog, type LogRecord } from './subagent-log.ts';
import type { SubagentUnitEvent } from './subagent-events.ts';

interface Live {
  readonly actor: HostedActor<typeof subagentMachine>;
  readonly log: SubagentLog;
}

/** The machine and the log as JSON; both hold plain JSON. */
interface Parked {
  readonly snapshot: Snapshot<unknown>;
  readonly log: LogRecord;
}

/** The life as plain JSON. */
export interface LifeSnapshot extends Parked {
  /** True if it only waited. @defaultValue false */
  readonly isParked?: true;
}

/** Returns the state of the machine, without its substates. */
export function stateOf({ value }: Pick<SubagentSnapshot, 'value'>): SubagentState {
  return (typeof value === 'string' ? value : Object.keys(value)[0]) as SubagentState;
}

/** Tells whether calls are under way: some of them may have been made. */
export function isActing(snapshot: SubagentSnapshot): boolean {
  return snapshot.matches({ running: 'acting' }) || snapshot.matches('waiting_for_children');
}

export class SubagentLife implements Postbox {
  readonly #id: string;
  readonly #postbox: Postbox;
  readonly #isInspected: boolean;
  #form!: Live | string;

  /** Begins with an input, or continues from `rest`. */
  constructor(
    from: SubagentInput | (LifeSnapshot & { readonly id: string }),
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

  /** The life as plain JSON, from which another one continues. */
  toSnapshot(): LifeSnapshot {
    if (typeof this.#form === 'string')
      return { ...(JSON.parse(this.#form) as Parked), isParked: true };
    const { actor, log } = this.#form;
    return { snapshot: snapshotOf(actor), log: log.record };
  }

  /** True while only the string is left. */
  get isParked(): boolean {
    return typeof this.#form === 'string';
  }

  get actor(): Live['actor'] {
    return this.#awake.actor;
  }

  get log(): SubagentLog {
    return this.#awake.log;
  }

  /** The usage of its models. Reading it does not wake a parked life. */
  get usage(): Usage {
    const form = this.#form;
    return typeof form === 'string' ? (JSON.parse(form) as Parked).log.usage : form.log.usage;
  }

  /** The secret of its marks. Reading it wakes no parked subagent. */
  get marks(): string | undefined {
    const form = this.#form;
    return typeof form === 'string' ? (JSON.parse(form) as Parked).log.marks : form.log.marks;
  }

  /** Tells whether this message was received and not read yet. Does not wake a parked life. */
  hasUnread(messageId: string): boolean {
    const form = this.#form;
    const snapshot =
      typeof form === 'string' ? (JSON.parse(form) as Parked).snapshot : form.actor.getSnapshot();
    const { unread } = (snapshot as SubagentSnapshot).context;
    return unread.some((one) => one.messageId === messageId);
  }

  /** Tells whether this event would change anything. */
  accepts(event: UnitEvent & Stamped): boolean {
    const wasParked = typeof this.#form === 'string';
    const snapshot = this.actor.getSnapshot();
    const isAccepted = snapshot.status === 'active' && snapshot.can(event as SubagentEvent);
    if (wasParked && !isAccepted) this.park();
    return isAccepted;
  }

  /** Applies an event: first to the log, then to the machine. Returns the new snapshot of the machine. */
  apply(event: SubagentUnitEvent & Stamped): SubagentSnapshot {
    const { actor, log } = this.#awake;
    const before = actor.getSnapshot();
    log.fold(event, before);
    sendHosted(actor, event);
    const snapshot = actor.getSnapshot();
    if (snapshot.status === 'error') throw snapshot.error;
    if (snapshot.status === 'done') log.endIn(before);
    return snapshot;
  }

  /** Parks it until its actor or log is read. An inspected one stays as it is. */
  park(): void {
    if (typeof this.#form === 'string' || this.#isInspected) return;
    const { actor, log } = this.#form;
    const parked: Parked = { snapshot: snapshotOf(actor), log: log.record };
    this.#form = JSON.stringify(parked);
    stopHosted(actor);
  }

  /** Passes an effect of the machine on to the postbox of the subagent. */
  post(effect: Effect): void {
    // Here, not when the effect is carried out: the messages of the model call follow from the entries
    // (SUBAGENT-LIFE-2).
    if (effect.kind === 'start' && effect.name === 'modelStep' && typeof this.#form === 'object')
      this.#form.log.beginStep(effect.input as ModelStepInput);
    this.#postbox.post(effect);
  }

  /** Stops the actor: nothing comes from it any more. A parked life has none. */
  stop(): void {
    if (typeof this.#form !== 'string') stopHosted(this.#form.actor);
  }

  get #awake(): Live {
    if (typeof this.#form !== 'string') return this.#form;
    // The string does not keep the name in the inspector: an inspected life is never parked.
    this.#form = this.#woken(JSON.parse(this.#form) as Parked, { id: this.#id });
    return this.#form;
  }

  #woken({ snapshot, log }: Parked, hosting: HostOptions): Live {
    const options = { ...hosting, snapshot };
    const actor = startHosted(subagentMachine, undefined, this, options);
    return { actor, log: new SubagentLog(log) };
  }
}
