// Computes a statechart's steps: takes the state and an event, and returns the next state and the effects. XState
// computes the steps; this file lists their actions instead of executing them.
//
// Owns:     the scope in which all machines of the process take their steps.
// Does not: execute effects.
//
// Invariants
//   CHART-1. A chart neither invokes nor spawns actors, and has no delays or emitted events, because its effects are
//       named actions (machines/effect.ts).
//   CHART-2. A restored snapshot takes the same steps, with the same effects, as the original.

import {
  createActor,
  fromTransition,
  type AnyActorScope,
  type AnyEventObject,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject,
  type InputFrom,
  type Snapshot,
  type SnapshotFrom,
} from 'xstate';
import { isEffect, type Activity, type ActivityStop } from '../../machines/effect.ts';

/** A machine's effect, as data. */
export type Effect =
  /** A named action. */
  | { readonly kind: 'do'; readonly name: string; readonly params: unknown }
  /** Starts an activity, which runs until it is stopped. */
  | ({ readonly kind: 'start' } & Activity)
  | ({ readonly kind: 'stop' } & ActivityStop);

/** The state after a step, and its effects in the order in which the machine names them. */
export type Step<S> = readonly [snapshot: S, effects: readonly Effect[]];

/** The effects of the current step. */
let listed: Effect[] = [];

const inert = createActor(fromTransition(() => null, null));

/**
 * The scope of all steps (CHART-1). XState's own `transition` would create an actor for each step, which takes ten
 * times as long.
 */
const scope = {
  self: inert,
  system: inert.system,
  id: '',
  sessionId: '',
  logger: () => {},
  defer: () => {},
  emit: () => {},
  stopChild: () => {},
  actionExecutor: ({ type, params, info, exec }) => {
    if (!isEffect(exec)) exec?.(info, params);
    else if (type === 'startActivity') listed.push({ kind: 'start', ...(params as Activity) });
    else if (type === 'stopActivity') listed.push({ kind: 'stop', ...(params as ActivityStop) });
    else listed.push({ kind: 'do', name: type, params });
  },
} satisfies AnyActorScope as AnyActorScope;

function listing<S>(step: () => S): Step<S> {
  listed = [];
  const snapshot = step();
  // Some versions of XState return an error in the initial context instead of throwing it.
  const { status, error } = snapshot as AnyMachineSnapshot;
  if (status === 'error') throw error;
  return [snapshot, listed];
}

/** Returns the first step of a machine. */
export function begun<M extends AnyStateMachine>(
  machine: M,
  input: InputFrom<M> | undefined,
): Step<SnapshotFrom<M>> {
  return listing(() => machine.getInitialSnapshot(scope, input) as SnapshotFrom<M>);
}

/** Returns the step that an event causes. Throws any error from an action or a guard. */
export function moved<M extends AnyStateMachine>(
  machine: M,
  snapshot: SnapshotFrom<M>,
  event: AnyEventObject,
): Step<SnapshotFrom<M>> {
  if ((snapshot as AnyMachineSnapshot).status !== 'active') return [snapshot, []];
  // XState's types lose the link between a snapshot and its machine.
  return listing(() => machine.transition(snapshot as never, event, scope) as SnapshotFrom<M>);
}

/** Returns whether the event would change anything. */
export function accepts(snapshot: AnyMachineSnapshot, event: EventObject): boolean {
  return snapshot.status === 'active' && snapshot.can(event);
}

/**
 * Each machine's snapshots by state value. Cached, because a machine has few state values and resolving one searches
 * its nodes.
 */
const resolved = new WeakMap<AnyStateMachine, Map<string, AnyMachineSnapshot>>();

/** Restores a snapshot from the JSON that `plain` returned. */
export function restored<M extends AnyStateMachine>(
  machine: M,
  from: Snapshot<unknown>,
): SnapshotFrom<M> {
  const { value, context, status, output, error } = from as AnyMachineSnapshot;
  const key = JSON.stringify(value);
  let known = resolved.get(machine);
  if (!known) resolved.set(machine, (known = new Map()));
  let state = known.get(key);
  if (!state) known.set(key, (state = machine.resolveState({ value, context: {} })));
  // A final state value means that the machine is done, even if the stored status differs.
  const end = { output, error, status: state.status === 'done' ? 'done' : (status ?? 'active') };
  return { ...state, ...end, context: context ?? {} } as SnapshotFrom<M>;
}
