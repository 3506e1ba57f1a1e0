// Makes a machine post instead of act. Its effects (named actions) and activities
// (invoked actors) are provided once for all its instances; each instance finds the
// postbox of its own unit. So nothing that a machine says happens by itself: the
// router releases it, after the entry that caused it is committed.
//
// Invariants
//   HOST-1. Only its host moves a hosted actor: `send` and `stop` of the actor itself throw, whoever got
//           hold of it (`session.actor`, an inspector, a snapshot). An event that is not in the journal
//           would be lost at the next start, and what waits for the machine would wait for ever.

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

/** What a machine wants to happen, as data. */
export type Effect =
  /** A named action. */
  | { readonly kind: 'do'; readonly name: string; readonly params: unknown }
  /** An activity begins; it lasts until it is stopped. */
  | {
      readonly kind: 'start';
      readonly name: string;
      readonly id: string;
      readonly input: unknown;
    }
  | { readonly kind: 'stop'; readonly name: string; readonly id: string };

/** Where an actor's effects go. */
export interface Postbox {
  post(effect: Effect): void;
}

export interface HostOptions {
  /** Names the actor in the inspector. */
  readonly id: string;
  readonly inspect?: ((event: InspectionEvent) => void) | undefined;
  /** Continues from here instead of from the start. */
  readonly snapshot?: Snapshot<unknown>;
}

/**
 * The system of an actor is the one thing that the actor, its actions and its activities share:
 * it carries the postbox. (A weak map would keep a place for each actor that ever woke, until
 * the garbage collector has been through all of them.)
 */
/**
 * An actor that its host moves, and everybody else may look at: `useSelector`, `waitFor`, `toPromise` and
 * the inspector work as with any other.
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

/** HOST-1. One function each for all actors: ten thousand need not have their own. */
export const readOnly = {
  send: (): never => refuse('actor.send(event)'),
  stop: (): never => refuse('actor.stop()'),
};

const postboxKey = Symbol('postbox');

interface System {
  [postboxKey]?: Postbox | undefined;
}

const post = (system: System, effect: Effect): void => system[postboxKey]?.post(effect);

/** With activities as actors, which an inspector shows. */
const inspected = new WeakMap<AnyStateMachine, AnyStateMachine>();
/** With activities as actions. */
const lean = new WeakMap<AnyStateMachine, AnyStateMachine>();

// A root without an error observer raises its error in the process; the unit looks
// at the snapshot after each event instead. One observer serves all actors.
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
  // HOST-1. XState itself never calls these: it relays events through the system.
  Object.assign(actor, readOnly);
  actor.start();
  if (!inspect) for (const activity of activities) postbox.post({ kind: 'start', ...activity });
  return actor;
}

/** Gives it an event that is in the journal. */
export function sendHosted(actor: AnyActorRef, event: EventObject): void {
  Actor.prototype.send.call(actor, event);
}

/**
 * Nothing comes from it any more. What V8 keeps of its last transition until the next full collection
 * then does not keep its unit, too: XState assigns a function to a property in each, and V8 puts
 * such a function among the old objects at once.
 */
export function stopHosted(actor: AnyActorRef): void {
  Actor.prototype.stop.call(actor);
  (actor.system as System)[postboxKey] = undefined;
}

/** What every actor of ours has in common when it is started again. */
const atRest = { status: 'active', output: undefined, error: undefined, historyValue: {} };

/** What an actor goes on from when it is started again: plain JSON. */
export function restOf(actor: AnyActorRef): Snapshot<unknown> {
  const { value, context, status, output } = actor.getSnapshot() as AnyMachineSnapshot;
  const end = status === 'active' ? {} : { status, output };
  return { value, context, ...end } as unknown as Snapshot<unknown>;
}

/**
 * What `restOf` returned, read back: JSON has no number for "no limit", which such a machine
 * is given with its `input`.
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

/** What goes on at the moment in an actor, as effects that begin it. */
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
 * `restoreSnapshot` of a machine whose snapshots hold no actors. XState would look all through the
 * context for actors to revive, which may be long: a batch names each of its calls, and wakes at each
 * event of each of them. And it would look for the nodes of the machine that the value names: there
 * are a few values, so each is looked for once.
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
    // A value in which the machine has ended says so, whatever was said beside it.
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

/** The invoked actors of a persisted snapshot. */
function actors(activities: readonly Activity[]): Record<string, unknown> {
  return Object.fromEntries(
    activities.map(({ name, id, input }) => [
      id,
      { src: name, snapshot: { status: 'active', output: undefined, error: undefined, input } },
    ]),
  );
}
