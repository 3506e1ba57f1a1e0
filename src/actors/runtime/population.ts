// Many small machines of one kind (questions, tool calls) within one unit, each kept as a small record: ten
// thousand waiting questions are ten thousand records.
//
// Owns:     the records of its members.
// Does not: route their effects (the unit does) or hold their subjects.

import type { AnyMachineSnapshot, AnyStateMachine, EventObject, Snapshot } from 'xstate';
import type { AnyUnit, Posted } from './commit-unit.ts';
import type { Shown } from './hosting.ts';
import type { Host } from './host.ts';
import { accepts, begun, moved, restored } from './chart-steps.ts';
import { plain, posted, underWay, type Postbox } from './hosting.ts';

/** One member, as plain JSON. */
export interface MemberSnapshot {
  readonly id: string;
  readonly state: Snapshot<unknown>;
}

export class Population {
  readonly #machine: AnyStateMachine;
  readonly #prefix: string;
  readonly #unit: AnyUnit;
  readonly #host: Host;
  readonly #members = new Map<string, Snapshot<unknown>>();

  /** @param prefix Members are addressed as `<prefix>:<id>`. */
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
    return [...this.#members].map(([id, state]) => ({ id, state }));
  }

  /** Restores the members without starting any activity; `underWay` lists the running ones. */
  restore(members: readonly MemberSnapshot[]): void {
    for (const { id, state } of members) {
      this.#members.set(id, state);
      this.#show(id);
    }
  }

  create(id: string, input: object): void {
    this.#members.set(id, plain(posted(begun(this.#machine, input), this.#postbox(id))));
    this.#show(id);
  }

  accepts(id: string, event: EventObject): boolean {
    const snapshot = this.#snapshot(id);
    return snapshot !== null && accepts(snapshot, event);
  }

  apply(id: string, event: EventObject): void {
    const snapshot = this.#snapshot(id);
    if (!snapshot) return;
    this.#members.set(id, plain(posted(moved(this.#machine, snapshot, event), this.#postbox(id))));
    const { actors } = this.#host;
    if (actors.isWatched) actors.moved(this.#path(id), event);
  }

  /** Returns the state of a member; null if there is none. */
  stateOf(id: string): { value: unknown; context: unknown; done: boolean } | null {
    const member = this.#members.get(id);
    if (!member) return null;
    const { value, context, status } = member as AnyMachineSnapshot;
    return { value, context, done: status === 'done' };
  }

  /** The running activities of all members. */
  get underWay(): readonly Posted[] {
    return [...this.#members].flatMap(([id, snapshot]) =>
      underWay(`${this.#prefix}:${id}`, this.#machine, snapshot),
    );
  }

  forget(id: string): void {
    this.#members.delete(id);
    const { actors } = this.#host;
    if (actors.isWatched) actors.ended(this.#path(id));
  }

  stop(): void {
    for (const id of this.#members.keys()) this.forget(id);
  }

  #snapshot(id: string): AnyMachineSnapshot | null {
    const member = this.#members.get(id);
    return member ? restored(this.#machine, member) : null;
  }

  #path(id: string): string {
    return `${this.#unit.id}/${this.#prefix}:${id}`;
  }

  #postbox(id: string): Postbox {
    return (effect) => this.#unit.post(`${this.#prefix}:${id}`, effect);
  }

  /** The members as their actors show them. */
  *machines(): Iterable<Shown> {
    for (const id of this.#members.keys()) yield this.#shown(id);
  }

  #show(id: string): void {
    const { actors } = this.#host;
    if (actors.isWatched) actors.began(this.#shown(id));
  }

  #shown(id: string): Shown {
    // The last snapshot stays readable after the member is forgotten.
    let last = this.#snapshot(id) as AnyMachineSnapshot;
    const read = (): AnyMachineSnapshot => (last = this.#snapshot(id) ?? last);
    return {
      id: this.#path(id),
      machine: this.#machine,
      get snapshot() {
        return read();
      },
    };
  }
}
