// Makes a machine post its effects instead of carrying them out. Its effects (named actions) and activities
// (invoked actors) are provided once for all its instances; each instance finds the postbox of its own unit.
// So no effect of a machine happens by itself: the router releases it after the entry that caused it is
// committed.
//
// Invariants
//   HOST-1. Only its host moves a hosted actor: `send` and `stop` of the actor itself throw for every caller
//           (`session.actor`, an inspector, a snapshot). An event that is not in the journal would be lost at
//           the next start, and components that wait for the machine would wait forever.

import { ConfigurationError } from '../../values/errors.ts';
import {
  Actor,
  createActor,
  fromCallback,
  type AnyActorRef,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject,
  type InputFrom,
  type InspectionEvent,
  type Observer,
  type Snapshot,
} from 'xstate';
import { isEffect } from '../../machines/effect.ts';
import { activitiesOf, unfoldActivities, type Activity } from './unfold-activities.ts';

/** An effect of a machine, as data. */
export type Effect =
  /** A named action. */
  | { readonly kind: 'do'; readonly name: string; readonly params: unknown }
  /** The start of an activity; it lasts until it is stopped. */
  | {
      readonly kind: 'start';
      readonly name: string;
      readonly id: string;
      readonly input: unknown;
    }
  | { readonly kind: 'stop'; readonly name: string; readonly id: string };

/** Receives the effects of an actor. */
export interface Postbox {
  post(effect: Effect): void;
}

export interface HostOptions {
  /** The name of the actor in the inspector. */
  readonly id: string;
  readonly inspect?: ((event: InspectionEvent) => void) | undefined;
  /** The snapshot to continue from instead of the start. */
  readonly snapshot?: Snapshot<unknown>;
}

/**
 * The system of an actor is the only object that the actor, its actions and its activities share: it carries
 * the postbox. (A weak map would keep an entry for each actor that ever woke, until the garbage collector has
 * visited all of them.)
 */
/**
 * An actor that only its host moves, and that all others may observe: `useSelector`, `waitFor`, `toPromise`
 * and the inspector work as with any other actor.
 */
export type HostedActor<M extends AnyStateMachine> = Omit<Actor<M>, 'send' | 'stop'> & {
  /** @deprecated Throws {ConfigurationError} `READ_ONLY_ACTOR`: use the methods of the session. */
  readonly send: (event: unknown) => never;
  /** @deprecated Throws {ConfigurationError} `READ_ONLY_ACTOR`: use `close()` or `suspend()`. */
  readonly stop: () => never;
};

function refuse(what: string): never {
  throw new ConfigurationError(
    'READ_ONLY_ACTOR',
    `${what}: this actor is read-only, since its events go through the journal. Use the methods of the session instead (sendText, answer, dismiss, subagents.cancel, close, suspend), or those of the subagent's service`,
  );
}

/** HOST-1. Shared by all actors, so that ten thousand do not each hold their own functions. */
export const readOnly = {
  send: (): never => refuse('actor.send(event)'),
  stop: (): never => refuse('actor.stop()'),
};

const postboxKey = Symbol('postbox');

interface System {
  [postboxKey]?: Postbox | undefined;
}

const post = (system: System, effect: Effect): void => system[postboxKey]?.post(effect);

/** The machines with activities as actors, which an inspector shows. */
const inspected = new WeakMap<AnyStateMachine, AnyStateMachine>();
/** The machines with activities as actions. */
const lean = new WeakMap<AnyStateMachine, AnyStateMachine>();

// XState throws the error of a root without an error observer globally; the unit checks the snapshot after
// each event instead. One observer serves all actors.
const observer: Observer<unknown> = { error() {} };

/** Starts a machine whose effects go to `postbox`. */
export function startHosted<M extends AnyStateMachine>(
  machine: M,
  input: InputFrom<M> | undefined,
  postbox: Postbox,
  { id, inspect, snapshot }: HostOptions,
): HostedActor<M> {
  const activities = snapshot ? activitiesOf(machine, snapshot) : [];
  const actor = createActor(inspect ? inspectedForm(machine) : leanForm(machine), {
    id,
    ...(input === undefined ? {} : { input }),
    ...(inspect ? { inspect } : {}),
    ...(snapshot
      ? { snapshot: inspect ? { ...atRest, ...snapshot, children: actors(activities) } : snapshot }
      : {}),
  } as never) as unknown as HostedActor<M>;
  ((actor as AnyActorRef).system as System)[postboxKey] = postbox;
  (actor as AnyActorRef).subscribe(observer as never);
  // HOST-1. XState itself never calls these methods: it relays events through the system.
  Object.assign(actor, readOnly);
  actor.start();
  if (!inspect) for (const activity of activities) postbox.post({ kind: 'start', ...activity });
  return actor;
}

/** Sends an event that is in the journal. */
export function sendHosted(actor: AnyActorRef, event: EventObject): void {
  Actor.prototype.send.call(actor, event);
}

/**
 * Detaches the actor from its postbox. V8 retains the actor's last transition until the next full collection,
 * because XState assigns a function to a property in each transition, and V8 promotes such a function to the
 * old generation at once; a detached actor does not retain its unit through it.
 */
export function stopHosted(actor: AnyActorRef): void {
  Actor.prototype.stop.call(actor);
  (actor.system as System)[postboxKey] = undefined;
}

/** The common part of every snapshot that an actor is restarted from. */
const atRest = { status: 'active', output: undefined, error: undefined, historyValue: {} };

/** Returns the snapshot from which an actor can be restarted, as plain JSON. */
export function snapshotOf(actor: AnyActorRef): Snapshot<unknown> {
  const { value, context, status, output } = actor.getSnapshot() as AnyMachineSnapshot;
  const end = status === 'active' ? {} : { status, output };
  return { value, context, ...end } as unknown as Snapshot<unknown>;
}

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

/** Returns the running activities of an actor, as effects that start them. */
export function underWay(
  actor: string,
  machine: AnyStateMachine,
  snapshot: Snapshot<unknown>,
): readonly { readonly actor: string; readonly effect: Effect }[] {
  if (snapshot.status !== undefined && snapshot.status !== 'active') return [];
  return activitiesOf(machine, snapshot).map((activity) => ({
    actor,
    effect: { kind: 'start', ...activity },
  }));
}

function inspectedForm(machine: AnyStateMachine): AnyStateMachine {
  const known = inspected.get(machine);
  if (known) return known;
  const logic: Record<string, unknown> = {};
  for (const name of Object.keys(machine.implementations.actors))
    logic[name] = fromCallback<EventObject, unknown>(({ input, self, system }) => {
      const { id } = self;
      post(system as System, { kind: 'start', name, id, input });
      return () => post(system as System, { kind: 'stop', name, id });
    });
  const posting = machine.provide({ actions: postingActions(machine), actors: logic } as never);
  inspected.set(machine, posting);
  return posting;
}

function leanForm(machine: AnyStateMachine): AnyStateMachine {
  const known = lean.get(machine);
  if (known) return known;
  const posting = unfoldActivities(machine.provide({ actions: postingActions(machine) } as never), {
    start: ({ system }, { name, id, input }) => post(system, { kind: 'start', name, id, input }),
    stop: ({ system }, { name, id }) => post(system, { kind: 'stop', name, id }),
  });
  posting.restoreSnapshot = restoringIn(posting) as typeof posting.restoreSnapshot;
  lean.set(machine, posting);
  return posting;
}

/**
 * Returns the `restoreSnapshot` function of a machine whose snapshots hold no actors. XState would search the
 * whole context for actors to restore, which may be large: a batch names each of its calls, and wakes at each
 * event of each of them. XState would also search for the nodes that the value names: there are few distinct
 * values, so each is searched for once.
 */
function restoringIn(machine: AnyStateMachine): (from: Snapshot<unknown>) => AnyMachineSnapshot {
  const resolved = new Map<string, AnyMachineSnapshot>();
  return (from) => {
    const { value, context, status, output, error } = from as AnyMachineSnapshot;
    const key = JSON.stringify(value);
    let known = resolved.get(key);
    if (!known) {
      known = machine.resolveState({ value, context: {} });
      resolved.set(key, known);
    }
    // A value in which the machine is done determines the status, whatever the snapshot states.
    const end = { output, error, status: known.status === 'done' ? 'done' : (status ?? 'active') };
    return { ...known, ...end, context: context ?? {}, children: {} } as AnyMachineSnapshot;
  };
}

function postingActions(machine: AnyStateMachine): Record<string, unknown> {
  const actions: Record<string, unknown> = {};
  for (const [name, action] of Object.entries(machine.implementations.actions))
    if (isEffect(action))
      actions[name] = ({ system }: { system: System }, params: unknown) =>
        post(system, { kind: 'do', name, params });
  return actions;
}

/** Returns the invoked actors of a persisted snapshot. */
function actors(activities: readonly Activity[]): Record<string, unknown> {
  return Object.fromEntries(
    activities.map(({ name, id, input }) => [
      id,
      { src: name, snapshot: { status: 'active', output: undefined, error: undefined, input } },
    ]),
  );
}
