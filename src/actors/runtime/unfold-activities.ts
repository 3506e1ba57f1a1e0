// Replaces the activities of a machine by actions: one that starts the activity on entry of its state, one
// that stops it on exit. XState makes an actor for each invocation, which costs as much as the rest of the
// transition; without an inspector these actors serve no purpose.
//
// Invariants
//   UNFOLD-ACTIVITIES-1. The unfolded machine starts and stops the same activities, with the same inputs, in
//       the same states.
//   UNFOLD-ACTIVITIES-2. Everything else equals the original machine: states, transitions, ids, output.

import { createMachine, type AnyStateMachine, type Snapshot } from 'xstate';

/** Work that lasts as long as a state. */
export interface Activity {
  /** The name of its logic among the machine's actors. */
  readonly name: string;
  readonly id: string;
  readonly input: unknown;
}

/** The actions that replace the invocations. */
export interface ActivityActions {
  start(args: { system: object }, activity: Activity): void;
  stop(args: { system: object }, activity: Pick<Activity, 'name' | 'id'>): void;
}

interface StateConfig {
  readonly invoke?: Invocation | readonly Invocation[];
  readonly entry?: unknown;
  readonly exit?: unknown;
  readonly states?: Readonly<Record<string, StateConfig>>;
}

/** A state value: the state, or the value of each of its regions. */
type Value = string | { readonly [state: string]: Value | undefined };

/** An invocation with its id; the input is a value, or a function of the context and the event. */
interface Invocation {
  readonly id: string;
  readonly src: string;
  readonly input?: unknown;
}

interface Args {
  readonly context: unknown;
  readonly event: unknown;
}

const START = 'offstage.startActivity';
const STOP = 'offstage.stopActivity';

/** Returns the same machine with these actions in place of its invoked actors. */
export function unfoldActivities(
  machine: AnyStateMachine,
  { start, stop }: ActivityActions,
): AnyStateMachine {
  const { config, implementations } = machine;
  const actions = { ...implementations.actions, [START]: start, [STOP]: stop };
  return createMachine(
    unfolded(config as unknown as StateConfig) as never,
    { ...implementations, actions } as never,
  );
}

/** Returns the activities that run in the states of a snapshot, with inputs from its context. */
export function activitiesOf(machine: AnyStateMachine, snapshot: Snapshot<unknown>): Activity[] {
  const { value, context } = snapshot as unknown as { value: Value; context: unknown };
  const found: Activity[] = [];
  collect(planOf(machine), value, { context, event: { type: '' } }, found);
  return found;
}

/** The states of a machine that invoke an activity themselves or in a substate. */
interface Plan {
  readonly invocations: readonly Invocation[];
  readonly states: readonly (readonly [name: string, plan: Plan])[];
}

// Cached because it is needed at each wake: XState would search the nodes of the whole machine.
const plans = new WeakMap<AnyStateMachine, Plan>();

function planOf(machine: AnyStateMachine): Plan {
  const known = plans.get(machine);
  if (known) return known;
  const plan = planned(machine.config as unknown as StateConfig);
  plans.set(machine, plan);
  return plan;
}

function planned({ invoke, states = {} }: StateConfig): Plan {
  return {
    invocations: listOf(invoke),
    states: Object.entries(states)
      .map(([name, state]) => [name, planned(state)] as const)
      .filter(([, plan]) => plan.invocations.length + plan.states.length > 0),
  };
}

/** Collects the activities from the outer states to the inner ones. */
function collect(plan: Plan, value: Value | undefined, args: Args, found: Activity[]): void {
  for (const invocation of plan.invocations) found.push(activity(invocation, args));
  for (const [name, state] of plan.states) {
    if (value === name) collect(state, undefined, args, found);
    else if (typeof value === 'object' && name in value) collect(state, value[name], args, found);
  }
}

function unfolded({ invoke, states, ...state }: StateConfig): object {
  const invocations = listOf(invoke);
  return {
    ...state,
    entry: [
      ...listOf(state.entry),
      ...invocations.map((invocation) => ({
        type: START,
        params: (args: Args) => activity(invocation, args),
      })),
    ],
    exit: [
      ...listOf(state.exit),
      ...invocations.map(({ src: name, id }) => ({ type: STOP, params: { name, id } })),
    ],
    ...(states && {
      states: Object.fromEntries(
        Object.entries(states).map(([name, inner]) => [name, unfolded(inner)]),
      ),
    }),
  };
}

function activity({ id, src, input }: Invocation, args: Args): Activity {
  return { name: src, id, input: typeof input === 'function' ? (input(args) as unknown) : input };
}

function listOf<T>(value: T | readonly T[] | undefined): readonly T[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? (value as readonly T[]) : [value as T];
}
