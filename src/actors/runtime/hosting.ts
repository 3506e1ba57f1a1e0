// The machines of a unit: a machine is its snapshot, and a step (chart-steps.ts) returns the next one. Named
// effects of a machine (and the activities that its states start and stop) are posted instead of carried out, so
// no effect of a machine happens by itself: the router releases it after the entry that caused it is committed.
//
// Owns:     the snapshot of a machine, its form as plain JSON, and the activities that belong to a state.
// Does not: show a machine to apps and inspectors (actor-tree.ts), or decide when it moves (its unit does).
//
// Invariants
//   HOST-1. Only a unit moves its machines, and only by events that are in the journal: what outsiders send to an actor
//           of theirs goes to the unit first.
//   HOST-2. A step posts its effects in the order in which the machine names them, and carries out none.
//   HOST-3. Restoring a snapshot posts nothing: `underWay` returns the activities of its states.

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
import { accepts, begun, moved, restored, type Effect, type Step } from './chart-steps.ts';

export type { Effect } from './chart-steps.ts';

/** Receives the effects of a machine. */
export type Postbox = (effect: Effect) => void;

/** The machine as the start of its life: its input, or the snapshot that it continues from. */
export type Origin<M extends AnyStateMachine> =
  | { readonly input?: InputFrom<M> | undefined }
  | { readonly snapshot: Snapshot<unknown> };

/** A machine as its actor shows it. */
export interface Shown {
  /** The path of the actor in the tree. */
  readonly id: string;
  readonly machine: AnyStateMachine;
  readonly snapshot: AnyMachineSnapshot;
}

/** The place of a machine in the tree of actors. */
export interface Seat {
  /** Its path. */
  readonly id: string;
  readonly actors: {
    /** False if nobody observes any machine. */
    readonly isWatched: boolean;
    began(shown: Shown): void;
    moved(id: string, event: AnyEventObject): void;
    ended(id: string): void;
  };
}

/** A machine with its state. */
export class Hosted<M extends AnyStateMachine> {
  readonly machine: M;
  readonly #postbox: Postbox;
  readonly #seat: Seat | null;
  #snapshot: SnapshotFrom<M>;

  /**
   * Begins with an input, whose effects are posted, or continues from a snapshot (HOST-3).
   * @param seat Null: its owner shows the machine, or nobody does.
   */
  constructor(machine: M, from: Origin<M>, postbox: Postbox, seat: Seat | null) {
    this.machine = machine;
    this.#postbox = postbox;
    this.#seat = seat;
    this.#snapshot =
      'snapshot' in from
        ? restored(machine, from.snapshot)
        : posted(begun(machine, from.input), postbox);
    seat?.actors.began(this);
  }

  /** The path of its actor. */
  get id(): string {
    return this.#seat?.id ?? '';
  }

  get snapshot(): SnapshotFrom<M> {
    return this.#snapshot;
  }

  /** Tells whether this event would change anything. */
  accepts(event: EventObject): boolean {
    return accepts(this.#snapshot as AnyMachineSnapshot, event);
  }

  /** Applies an event that is in the journal. Throws the error of the machine; its state is then unchanged. */
  send(event: EventObject): void {
    this.#snapshot = posted(moved(this.machine, this.#snapshot, event), this.#postbox);
    if (this.#seat?.actors.isWatched) this.#seat.actors.moved(this.#seat.id, event);
  }

  /** Completes the observers of its actor. */
  end(): void {
    if (this.#seat?.actors.isWatched) this.#seat.actors.ended(this.#seat.id);
  }
}

/** Posts the effects of a step, and returns its snapshot. */
export function posted<S>([snapshot, effects]: Step<S>, postbox: Postbox): S {
  effects.forEach(postbox);
  return snapshot;
}

/** Returns a snapshot as plain JSON, for `restored`. */
export function plain<S extends AnyMachineSnapshot>(snapshot: S): Plain<S> {
  const { value, context, status, output } = snapshot;
  const end = status === 'active' ? {} : { status, output };
  // XState declares an `error` in each snapshot; a machine of ours throws instead.
  return { value, context, ...end } as unknown as Plain<S>;
}

/** A snapshot as plain JSON. */
export type Plain<S extends AnyMachineSnapshot> = Snapshot<unknown> & Pick<S, 'value' | 'context'>;

/**
 * Restores the numbers of a snapshot that was read back from JSON: JSON has no number for "no limit", so such
 * values come from the machine's `input`.
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

/** Returns the running activities of a machine, as effects that start them. */
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

/** Returns the activities that run in the states of a snapshot, with inputs from its context. */
export function activitiesOf(machine: AnyStateMachine, snapshot: Snapshot<unknown>): Activity[] {
  if (snapshot.status !== undefined && snapshot.status !== 'active') return [];
  const { value, context } = snapshot as unknown as { value: Value; context: unknown };
  const found: Activity[] = [];
  collect(planOf(machine), value, { context, event: { type: '' } }, found);
  return found;
}

/** A state value: the state, or the value of each of its regions. */
type Value = string | { readonly [state: string]: Value | undefined };

interface Args {
  readonly context: unknown;
  readonly event: unknown;
}

/** Returns the params of a `startActivity` action. */
type Starts = (args: Args) => Activity;

/** The states of a machine that start an activity themselves or in a substate. */
interface Plan {
  readonly starts: readonly Starts[];
  readonly states: readonly (readonly [name: string, plan: Plan])[];
}

// Cached because it is needed at each wake: XState would search the nodes of the whole machine.
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

/** Collects the activities from the outer states to the inner ones. */
function collect(plan: Plan, value: Value | undefined, args: Args, found: Activity[]): void {
  for (const start of plan.starts) found.push(start(args));
  for (const [name, state] of plan.states) {
    if (value === name) collect(state, undefined, args, found);
    else if (typeof value === 'object' && name in value) collect(state, value[name], args, found);
  }
}
