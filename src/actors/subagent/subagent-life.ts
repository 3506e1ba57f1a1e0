// The machine and the log of a subagent while something is under way; while it only waits, one string replaces
// both. Ten thousand waiting subagents are ten thousand strings.
//
// Owns:     the machine, the log, the effect of an event on both, and the form that they have at the moment.
// Does not: decide when it may be parked, or carry anything out (the subagent does).
//
// Invariants
//   SUBAGENT-LIFE-1. A parked life comes back unchanged: the same state, the same log.
//   SUBAGENT-LIFE-2. Its content follows from its input and its events alone.

import type { Snapshot } from 'xstate';
import {
  subagentMachine,
  type Stamped,
  type SubagentInput,
  type SubagentSnapshot,
} from '../../machines/index.ts';
import type { ModelStepInput } from '../../machines/subagent-setup.ts';
import type { UnitEvent } from '../runtime/commit-unit.ts';
import type { ActorTree } from '../runtime/actor-tree.ts';
import { restored } from '../runtime/chart-steps.ts';
import { Hosted, plain, type Effect, type Postbox } from '../runtime/hosting.ts';
import type { SubagentState } from '../contracts/session-views.ts';
import type { Usage } from '../contracts/usage.ts';
import { SubagentLog, type LogRecord } from './subagent-log.ts';
import type { SubagentUnitEvent } from './subagent-events.ts';

interface Live {
  readonly machine: Hosted<typeof subagentMachine>;
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

/** The subagent, or the replay, that a life belongs to. */
export interface LifeOwner extends Postbox {
  /** The path of the actor in the tree. */
  readonly path: string;
  /** The actors that are observed. Absent: none can be. */
  readonly actors?: ActorTree;
}

export class SubagentLife implements Postbox {
  readonly #owner: LifeOwner;
  #form!: Live | string;

  /** Begins with an input, or continues from a snapshot. */
  constructor(from: SubagentInput | (LifeSnapshot & { readonly id: string }), owner: LifeOwner) {
    this.#owner = owner;
    if (!('log' in from)) {
      const machine = new Hosted(subagentMachine, { input: from }, this, null);
      this.#form = { machine, log: new SubagentLog() };
    } else {
      const { snapshot, log, isParked } = from;
      this.#form = isParked ? JSON.stringify({ snapshot, log }) : this.#woken({ snapshot, log });
    }
    if (owner.actors?.isWatched) owner.actors.began(this);
  }

  /** The life as plain JSON, from which another one continues. */
  toSnapshot(): LifeSnapshot {
    if (typeof this.#form === 'string')
      return { ...(JSON.parse(this.#form) as Parked), isParked: true };
    const { machine, log } = this.#form;
    return { snapshot: plain(machine.snapshot), log: log.record };
  }

  /** True while only the string is left. */
  get isParked(): boolean {
    return typeof this.#form === 'string';
  }

  /** The path of its actor. */
  get id(): string {
    return this.#owner.path;
  }

  get machine(): typeof subagentMachine {
    return subagentMachine;
  }

  /** The snapshot of the machine. Reading it wakes no parked life. */
  get snapshot(): SubagentSnapshot {
    const form = this.#form;
    if (typeof form !== 'string') return form.machine.snapshot;
    return restored(subagentMachine, (JSON.parse(form) as Parked).snapshot);
  }

  get log(): SubagentLog {
    return this.#awake.log;
  }

  /** Ends the parking: it has more to do than to wait. */
  wake(): this {
    void this.#awake;
    return this;
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
      typeof form === 'string' ? (JSON.parse(form) as Parked).snapshot : form.machine.snapshot;
    const { unread } = (snapshot as SubagentSnapshot).context;
    return unread.some((one) => one.messageId === messageId);
  }

  /** Tells whether this event would change anything. */
  accepts(event: UnitEvent & Stamped): boolean {
    const wasParked = this.isParked;
    const isAccepted = this.#awake.machine.accepts(event);
    if (wasParked && !isAccepted) this.park();
    return isAccepted;
  }

  /** Applies an event: first to the log, then to the machine. Returns the new snapshot of the machine. */
  apply(event: SubagentUnitEvent & Stamped): SubagentSnapshot {
    const { machine, log } = this.#awake;
    const before = machine.snapshot;
    log.fold(event, before);
    machine.send(event);
    const { snapshot } = machine;
    if (snapshot.status === 'done') log.endIn(before);
    const { actors } = this.#owner;
    if (actors?.isWatched) actors.moved(this.id, event);
    return snapshot;
  }

  /** Parks it until an event or its log wakes it. */
  park(): void {
    if (typeof this.#form === 'string') return;
    const { machine, log } = this.#form;
    const parked: Parked = { snapshot: plain(machine.snapshot), log: log.record };
    this.#form = JSON.stringify(parked);
  }

  /** Passes an effect of the machine on to the subagent. */
  post(effect: Effect): void {
    // Here, not when the effect is carried out: the messages of the model call follow from the entries
    // (SUBAGENT-LIFE-2).
    if (effect.kind === 'start' && effect.name === 'modelStep' && typeof this.#form === 'object')
      this.#form.log.beginStep(effect.input as ModelStepInput);
    this.#owner.post(effect);
  }

  /** Completes the observers of its actor. */
  stop(): void {
    const { actors } = this.#owner;
    if (actors?.isWatched) actors.ended(this.id);
  }

  get #awake(): Live {
    if (typeof this.#form === 'string') this.#form = this.#woken(JSON.parse(this.#form) as Parked);
    return this.#form;
  }

  #woken({ snapshot, log }: Parked): Live {
    const machine = new Hosted(subagentMachine, { snapshot }, this, null);
    return { machine, log: new SubagentLog(log) };
  }
}
