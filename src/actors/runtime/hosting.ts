// The machines of a unit. Each machine is a snapshot, and a step (chart-steps.ts) returns the next snapshot. A machine
// posts its named effects, and the starts and stops of its activities, to the unit. The router releases them after the
// commit of the entry that caused them.
//
// Owns:     the machines' snapshots, their plain JSON form, and the activities of each state.
// Does not: show a machine to apps and inspectors (actor-tree.ts), or decide when it takes a step (its unit does).
//
// Invariants
//   HOST-1. Only a unit changes its machines, and only with events that are in the journal; an event from outside goes
//       to the unit first. Machines that are not in a journal are in `transient-machine.ts`.
//   HOST-2. A step posts its effects in the order in which the machine names them, and executes none of them.
//   HOST-3. Restoring a snapshot posts nothing; `underWay` returns the activities of the restored states.
//   HOST-4. A waiting member is only a small record, so that ten thousand questions can wait.

import type {
  AnyEventObject,
  AnyMachineSnapshot,
  AnyStateMachine,
  EventObject,
  InputFrom,
  Snapshot,
  SnapshotFrom,
} from 'xstate';
import type { Activity } from '../../machines/effect.ts';
import { OffstageError } from '../../values/errors.ts';
import { accepts, begun, moved, restored, type Effect, type Step } from './chart-steps.ts';
import { Table, type Draft } from './draft.ts';

export type { Effect } from './chart-steps.ts';

/** A machine, as exposed through its actor. */
export interface Shown {
  /** The actor's path in the tree. */
  readonly id: string;
  readonly machine: AnyStateMachine;
  readonly snapshot: AnyMachineSnapshot;
}

/** The unit that machines belong to. */
export interface HostUnit {
  readonly id: string;
  readonly draft: Draft;
  /** Adds an effect to the step of the current event. */
  post(actor: string, effect: Effect): void;
}

/** The part of the actor tree that machines notify. */
export interface Observers {
  /** Whether any machine is observed. */
  readonly isWatched: boolean;
  began(shown: Shown): void;
  moved(id: string, event: AnyEventObject): void;
  ended(id: string): void;
}

/** One member, as plain JSON. */
export interface MemberSnapshot {
  readonly id: string;
  readonly state: Snapshot<unknown>;
}

/** The id of a single: a machine that is the only one of its kind. */
const ONLY = '';

/** Machines of one kind within one unit, by id: any number, or a single. */
export class Population<M extends AnyStateMachine = AnyStateMachine> {
  readonly machine: M;
  readonly #prefix: string;
  readonly #unit: HostUnit;
  readonly #actors: Observers;
  /** The path of the single machine's actor. */
  readonly #own: string;
  /** The machines. Members are stored as plain JSON; the single machine is stored as a snapshot. */
  readonly #members: Table<Snapshot<unknown>>;

  /**
   * @param prefix The address of a member is `<prefix>:<id>`, that of the single machine `<prefix>`.
   * @param path The path of the single machine's actor. @defaultValue its address under the unit
   */
  constructor(
    machine: M,
    prefix: string,
    unit: HostUnit,
    { actors }: { readonly actors: Observers },
    path = `${unit.id}/${prefix}`,
  ) {
    this.machine = machine;
    this.#prefix = prefix;
    this.#unit = unit;
    this.#actors = actors;
    this.#own = path;
    this.#members = new Table(unit.draft);
  }

  get ids(): readonly string[] {
    return [...this.#members.keys()];
  }

  has(id: string): boolean {
    return this.#members.has(id);
  }

  /** The snapshot of the single machine. */
  get snapshot(): SnapshotFrom<M> {
    return this.#members.get(ONLY) as SnapshotFrom<M>;
  }

  /** Returns a member's snapshot; null if there is none. */
  of(id: string): SnapshotFrom<M> | null {
    const member = this.#members.get(id);
    if (!member) return null;
    return id === ONLY ? this.snapshot : restored(this.machine, member);
  }

  /** The snapshots of all members, for `restore`. */
  get snapshots(): readonly MemberSnapshot[] {
    return [...this.#members].map(([id, state]) => ({ id, state }));
  }

  /** Restores the members without starting any activity; `underWay` lists the activities to start. */
  restore(members: readonly MemberSnapshot[]): void {
    for (const { id, state } of members) {
      this.#members.set(id, id === ONLY ? restored(this.machine, state) : state);
      this.#show(id);
    }
  }

  /** Begins a member. */
  create(id: string, input?: InputFrom<M>): void {
    this.#keep(id, begun(this.machine, input));
    this.#show(id);
  }

  /** Returns whether the event would change anything. */
  accepts(id: string, event: EventObject): boolean {
    const snapshot = this.of(id);
    return snapshot !== null && accepts(snapshot, event);
  }

  /** Throws if no state of the machine handles this event. */
  check({ type }: EventObject): void {
    if (!this.machine.events.includes(type))
      throw new OffstageError('INTERNAL', `${this.machine.id} has no event \`${type}\``);
  }

  /** Takes the step of an event. If `check` or the machine throws, throws the error and leaves the state unchanged. */
  apply(id: string, event: EventObject): void {
    this.check(event);
    const snapshot = this.of(id);
    if (!snapshot) return;
    this.#keep(id, moved(this.machine, snapshot, event));
    if (this.#actors.isWatched)
      this.#unit.draft.later(() => this.#actors.moved(this.#path(id), event));
  }

  /** Returns a member's state; null if there is none. */
  stateOf(id: string): { value: unknown; context: unknown; done: boolean } | null {
    const member = this.#members.get(id);
    if (!member) return null;
    const { value, context, status } = member as AnyMachineSnapshot;
    return { value, context, done: status === 'done' };
  }

  /** The running activities of all members, in the form of the effects that start them. */
  get underWay(): readonly { readonly actor: string; readonly effect: Effect }[] {
    return [...this.#members].flatMap(([id, snapshot]) =>
      underWay(this.#address(id), this.machine, snapshot),
    );
  }

  forget(id: string): void {
    this.#members.delete(id);
    if (this.#actors.isWatched) this.#actors.ended(this.#path(id));
  }

  /** Removes all members; the single machine stays readable. */
  stop(): void {
    for (const id of this.ids)
      if (id !== ONLY) this.forget(id);
      else if (this.#actors.isWatched) this.#actors.ended(this.#path(id));
  }

  /** The members, as exposed through their actors. */
  *machines(): Iterable<Shown> {
    for (const id of this.#members.keys()) yield this.shown(id);
  }

  /** A member, as exposed through its actor. */
  shown(id = ONLY): Shown {
    // The last snapshot remains readable after the member is removed.
    let last = this.of(id) as AnyMachineSnapshot;
    const read = (): AnyMachineSnapshot => (last = this.of(id) ?? last);
    return {
      id: this.#path(id),
      machine: this.machine,
      get snapshot() {
        return read();
      },
    };
  }

  #keep(id: string, [snapshot, effects]: Step<SnapshotFrom<M>>): void {
    for (const effect of effects) this.#unit.post(this.#address(id), effect);
    this.#members.set(id, id === ONLY ? snapshot : plain(snapshot));
  }

  #address(id: string): string {
    return id === ONLY ? this.#prefix : `${this.#prefix}:${id}`;
  }

  #path(id: string): string {
    return id === ONLY ? this.#own : `${this.#own}:${id}`;
  }

  #show(id: string): void {
    if (this.#actors.isWatched) this.#unit.draft.later(() => this.#actors.began(this.shown(id)));
  }
}

/** Returns a snapshot as plain JSON, for `restored`. */
export function plain<S extends AnyMachineSnapshot>(snapshot: S): Plain<S> {
  const { value, context, status, output } = snapshot;
  const end = status === 'active' ? {} : { status, output };
  // XState declares an `error` in each snapshot, but the machines here throw errors instead.
  return { value, context, ...end } as unknown as Plain<S>;
}

/** A snapshot as plain JSON. */
export type Plain<S extends AnyMachineSnapshot> = Snapshot<unknown> & Pick<S, 'value' | 'context'>;

/**
 * Restores infinite limits from the machine's `input`: JSON has no number for "no limit", so they are missing from a
 * snapshot that was read from JSON.
 */
export function withNoLimits<M extends AnyStateMachine>(
  rest: Snapshot<unknown>,
  machine: M,
  input: InputFrom<M> | undefined,
): Snapshot<unknown> {
  const { context } = rest as AnyMachineSnapshot;
  const { context: make } = machine.config;
  const first: object = typeof make === 'function' ? make({ input }) : (make ?? {});
  const unlimited = Object.entries(first).filter(([, value]) => value === Infinity);
  const own = { context: { ...context, ...Object.fromEntries(unlimited) } };
  return { ...rest, ...own };
}

/** Returns a machine's running activities, as effects that start them. */
export function underWay(
  actor: string,
  machine: AnyStateMachine,
  snapshot: Snapshot<unknown>,
): readonly { readonly actor: string; readonly effect: Effect }[] {
  return activitiesOf(machine, snapshot).map((activity) => ({
    actor,
    effect: { kind: 'start', ...activity },
  }));
}

/** Returns the activities that run in a snapshot's states, with inputs from its context. */
export function activitiesOf(machine: AnyStateMachine, snapshot: Snapshot<unknown>): Activity[] {
  if (snapshot.status !== undefined && snapshot.status !== 'active') return [];
  const { value, context } = snapshot as unknown as { value: Value; context: unknown };
  const found: Activity[] = [];
  collect(planOf(machine), value, { context, event: { type: '' } }, found);
  return found;
}

/** A state value, which is the name of the state or an object with the value of each region. */
type Value = string | { readonly [state: string]: Value | undefined };

interface Args {
  readonly context: unknown;
  readonly event: unknown;
}

type Starts = (args: Args) => Activity;

/** The machine's states that start an activity, directly or in a substate. */
interface Plan {
  readonly starts: readonly Starts[];
  readonly states: readonly (readonly [name: string, plan: Plan])[];
}

// Cached, because each wake of a unit needs them and XState would search all nodes of the machine.
const plans = new WeakMap<AnyStateMachine, Plan>();

function planOf(machine: AnyStateMachine): Plan {
  const known = plans.get(machine);
  if (known) return known;
  const plan = planned(machine.root);
  plans.set(machine, plan);
  return plan;
}

function planned({ entry, states }: AnyStateMachine['root']): Plan {
  return {
    starts: entry.flatMap((action) =>
      typeof action === 'object' && action.type === 'startActivity'
        ? [startsOf(action.params)]
        : [],
    ),
    states: Object.entries(states)
      .map(([name, state]) => [name, planned(state)] as const)
      .filter(([, plan]) => plan.starts.length + plan.states.length > 0),
  };
}

function startsOf(params: unknown): Starts {
  return typeof params === 'function' ? (params as Starts) : () => params as Activity;
}

/** Collects activities, beginning with the outer states. */
function collect(plan: Plan, value: Value | undefined, args: Args, found: Activity[]): void {
  for (const start of plan.starts) found.push(start(args));
  for (const [name, state] of plan.states) {
    if (value === name) collect(state, undefined, args, found);
    else if (typeof value === 'object' && name in value) collect(state, value[name], args, found);
  }
}
