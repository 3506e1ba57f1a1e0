// Many small actors of one kind (questions, tool calls) within one unit. An actor that only waits is
// *dormant*: it is stopped and a small record is kept instead; the next event wakes it. So ten thousand
// waiting questions are ten thousand records.
//
// Owns:     the members, and whether each is an actor or a record at the moment.
// Does not: route their effects (the unit does) or hold their subjects.

import type { AnyMachineSnapshot, AnyStateMachine, EventObject, Snapshot } from 'xstate';
import type { AnyUnit, Posted } from './commit-unit.ts';
import type { Host } from './host.ts';
import {
  snapshotOf,
  sendHosted,
  startHosted,
  stopHosted,
  underWay,
  type HostedActor,
} from './hosting.ts';

type Live = HostedActor<AnyStateMachine>;
/** The snapshot of a dormant member. */
type Dormant = Snapshot<unknown>;

/** One member, as plain JSON. */
export interface MemberSnapshot {
  readonly id: string;
  readonly state: Dormant;
  /** True if it had an actor. @defaultValue false */
  readonly isAwake?: true;
}

export class Population {
  readonly #machine: AnyStateMachine;
  readonly #prefix: string;
  readonly #unit: AnyUnit;
  readonly #host: Host;
  readonly #members = new Map<string, Live | Dormant>();

  /**
   * @param prefix Members are addressed as `<prefix>:<id>`. @param machine States tagged `dormant` need no
   *   actor.
   */
  constructor(machine: AnyStateMachine, prefix: string, unit: AnyUnit, host: Host) {
    this.#machine = machine;
    this.#prefix = prefix;
    this.#unit = unit;
    this.#host = host;
  }

  get ids(): readonly string[] {
    return [...this.#members.keys()];
  }

  has(id: string): boolean {
    return this.#members.has(id);
  }

  /** The snapshots of all members, for `restore`. */
  get snapshots(): readonly MemberSnapshot[] {
    return [...this.#members].map(([id, member]) =>
      isLive(member) ? { id, state: snapshotOf(member), isAwake: true } : { id, state: member },
    );
  }

  /** Restores the members from `rest` without starting any activity; `underWay` lists the running ones. */
  restore(members: readonly MemberSnapshot[]): void {
    for (const { id, state, isAwake } of members) {
      this.#members.set(id, state);
      // Wakes the member now: if an event woke it later, it would start its activities again.
      if (isAwake) this.#wake(id);
    }
  }

  create(id: string, input: object): void {
    const actor = startHosted(this.#machine, input as never, this.#postbox(id), {
      id: `${this.#unit.id}/${this.#prefix}:${id}`,
      inspect: this.#host.inspect,
    });
    this.#members.set(id, actor);
    this.#rest(id, actor);
  }

  accepts(id: string, event: EventObject): boolean {
    const actor = this.#wake(id);
    if (!actor) return false;
    const snapshot = actor.getSnapshot() as AnyMachineSnapshot;
    const accepted = snapshot.status === 'active' && snapshot.can(event);
    if (!accepted) this.#rest(id, actor);
    return accepted;
  }

  apply(id: string, event: EventObject): void {
    const actor = this.#wake(id);
    if (!actor) return;
    sendHosted(actor, event);
    const snapshot = actor.getSnapshot() as AnyMachineSnapshot;
    if (snapshot.status === 'error') throw snapshot.error;
    this.#rest(id, actor);
  }

  /** Returns the state of a member; null if there is none. */
  stateOf(id: string): { value: unknown; context: unknown; done: boolean } | null {
    const member = this.#members.get(id);
    if (!member) return null;
    const snapshot = (isLive(member) ? member.getSnapshot() : member) as AnyMachineSnapshot;
    return {
      value: snapshot.value,
      context: snapshot.context,
      done: snapshot.status === 'done',
    };
  }

  /** The running activities of all members, awake or dormant. */
  get underWay(): readonly Posted[] {
    return [...this.#members].flatMap(([id, member]) => {
      const snapshot = isLive(member) ? member.getSnapshot() : member;
      return underWay(`${this.#prefix}:${id}`, this.#machine, snapshot as Snapshot<unknown>);
    });
  }

  forget(id: string): void {
    const member = this.#members.get(id);
    if (member && isLive(member)) stopHosted(member);
    this.#members.delete(id);
  }

  stop(): void {
    for (const id of this.#members.keys()) this.forget(id);
  }

  #postbox(id: string) {
    const name = `${this.#prefix}:${id}`;
    return { post: (effect: Parameters<AnyUnit['post']>[1]) => this.#unit.post(name, effect) };
  }

  #wake(id: string): HostedActor<AnyStateMachine> | null {
    const member = this.#members.get(id);
    if (!member) return null;
    if (isLive(member)) return member;
    const actor = startHosted(this.#machine, undefined, this.#postbox(id), {
      id: `${this.#unit.id}/${this.#prefix}:${id}`,
      inspect: this.#host.inspect,
      snapshot: member,
    });
    this.#members.set(id, actor);
    return actor;
  }

  #rest(id: string, actor: HostedActor<AnyStateMachine>): void {
    const snapshot = actor.getSnapshot() as AnyMachineSnapshot;
    if (snapshot.status !== 'active' || !snapshot.hasTag('dormant')) return;
    this.#members.set(id, snapshotOf(actor));
    stopHosted(actor);
  }
}

function isLive(member: Live | Dormant): member is Live {
  return 'send' in member;
}
