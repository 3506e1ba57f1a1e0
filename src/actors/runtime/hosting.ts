// Makes a machine post its effects instead of carrying them out. Its effects (named actions) and activities
// (invoked actors) are provided once for all its instances; each instance finds the postbox of its own unit.
// So no effect of a machine happens by itself: the router releases it after the entry that caused it is
// committed.
//
// An activity of an inspected machine is an actor. Otherwise two actions replace it, one on entry and one on exit
// of its state: XState makes an actor for each invocation, which costs as much as the rest of the transition.
//
// Owns:     the two forms of each machine, and the observers of an actor that an app holds (`ActorView`).
// Does not: decide when an actor is moved or replaced (its unit does).
//
// Invariants
//   HOST-1. Only its host moves a hosted actor: `send` and `stop` of the actor itself throw for every caller
//           (`session.actor`, an inspector, a snapshot). An event that is not in the journal would be lost at
//           the next start, and components that wait for the machine would wait forever.
//   UNFOLD-ACTIVITIES-1. The unfolded machine starts and stops the same activities, with the same inputs, in
//       the same states.
//   UNFOLD-ACTIVITIES-2. Everything else equals the original machine: states, transitions, ids, output.
//   VIEW-1. Observers follow the unit instead of one actor: they see the states before and after a
//           replacement, and none of those that the new actor passes through while it catches up.
//   VIEW-2. Observers complete once: when the unit ends.
//
// Casts: XState types configuration, implementations, snapshots and observers by the generics of one machine.
// This file treats all machines alike, as `AnyStateMachine`, whose generics accept none of these values.

import {
  Actor,
  createActor,
  createMachine,
  fromCallback,
  type AnyActorRef,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject,
  type InputFrom,
  type InspectionEvent,
  type Observer,
  type Snapshot,
  type SnapshotFrom,
  type Subscription,
} from 'xstate';
import { isEffect } from '../../machines/effect.ts';
import { ConfigurationError, quietly } from '../../values/errors.ts';

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

/**
 * The system of an actor is the only object that the actor, its actions and its activities share: it carries
 * the postbox. (A weak map would keep an entry for each actor that ever woke, until the garbage collector has
 * visited all of them.)
 */
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
const silentObserver: Observer<unknown> = { error() {} };

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
  (actor as AnyActorRef).subscribe(silentObserver as never);
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

/** Work that lasts as long as a state. */
export interface Activity {
  /** The name of its logic among the machine's actors. */
  readonly name: string;
  readonly id: string;
  readonly input: unknown;
}

/** The actions that replace the invocations. */
interface ActivityActions {
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
function unfoldActivities(
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
function activitiesOf(machine: AnyStateMachine, snapshot: Snapshot<unknown>): Activity[] {
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
  for (const invocation of plan.invocations) found.push(activityOf(invocation, args));
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
        params: (args: Args) => activityOf(invocation, args),
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

function activityOf({ id, src, input }: Invocation, args: Args): Activity {
  return { name: src, id, input: typeof input === 'function' ? (input(args) as unknown) : input };
}

function listOf<T>(value: T | readonly T[] | undefined): readonly T[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? (value as readonly T[]) : [value as T];
}

/** The property by which RxJS and XState recognise an observable. */
const observable = ((Symbol as { readonly observable?: symbol }).observable ??
  '@@observable') as '@@observable';

/** The actor of a unit as an app sees it: observers follow the unit (VIEW-1, VIEW-2). */
export class ActorView<M extends AnyStateMachine> {
  readonly #report: (error: unknown, where: string) => void;
  readonly #observers = new Set<Observer<SnapshotFrom<M>>>();
  #actor: HostedActor<M>;
  /** The snapshot before the replacement, while another actor catches up; null otherwise. */
  #before: SnapshotFrom<M> | null = null;
  #following: Subscription | null = null;
  #isOver = false;

  readonly send = readOnly.send;
  readonly stop = readOnly.stop;

  constructor(actor: HostedActor<M>, host: { report(error: unknown, where: string): void }) {
    this.#report = quietly((error, where) => host.report(error, where));
    this.#actor = actor;
    this.#follow();
  }

  /** Prepares for a replacement or a rollback: observers see no states until `goesOnAs`. */
  release(): void {
    if (this.#isOver || this.#before) return;
    this.#before = this.#actor.getSnapshot();
    this.#following?.unsubscribe();
    this.#following = null;
  }

  /** Shows this actor, which has caught up. */
  goesOnAs(actor: HostedActor<M>): void {
    if (this.#isOver || !this.#before) return;
    const isSame = this.#before === actor.getSnapshot();
    this.#before = null;
    this.#actor = actor;
    this.#follow();
    if (!isSame) this.#each((observer) => observer.next?.(this.getSnapshot()));
  }

  /** Completes the observers when the unit has ended. */
  complete(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#following?.unsubscribe();
    this.#each((observer) => observer.complete?.());
    this.#observers.clear();
  }

  getSnapshot(): SnapshotFrom<M> {
    return this.#before ?? this.#actor.getSnapshot();
  }

  subscribe(
    next?: Observer<SnapshotFrom<M>> | ((snapshot: SnapshotFrom<M>) => void),
    error?: (error: unknown) => void,
    complete?: () => void,
  ): Subscription {
    const observer: Observer<SnapshotFrom<M>> =
      typeof next === 'object'
        ? // Methods of an observer object keep their `this`.
          {
            next: (snapshot) => next.next?.(snapshot),
            error: (thrown) => next.error?.(thrown),
            complete: () => next.complete?.(),
          }
        : { ...(next && { next }), ...(error && { error }), ...(complete && { complete }) };
    if (this.#isOver) this.#safely(() => observer.complete?.());
    else this.#observers.add(observer);
    return { unsubscribe: () => void this.#observers.delete(observer) };
  }

  get id() {
    return this.#actor.id;
  }
  get sessionId() {
    return this.#actor.sessionId;
  }
  get systemId() {
    return this.#actor.systemId;
  }
  get system(): HostedActor<M>['system'] {
    return this.#actor.system;
  }
  get src() {
    return this.#actor.src;
  }
  get logic() {
    return this.#actor.logic;
  }
  get options() {
    return this.#actor.options;
  }
  get clock(): HostedActor<M>['clock'] {
    return this.#actor.clock;
  }
  get ref() {
    return this;
  }

  /** Does nothing: the actor runs already. */
  start(): this {
    return this;
  }

  select<T>(selector: (snapshot: SnapshotFrom<M>) => T, isSame?: (a: T, b: T) => boolean): unknown {
    // XState's `select` calls only `getSnapshot` and `subscribe`.
    return Actor.prototype.select.call(this, selector, isSame as never);
  }

  /** The machines of sessions emit nothing. */
  on(type: string, handler: (emitted: never) => void): Subscription {
    return this.#actor.on(type as never, handler);
  }

  [observable](): this {
    return this;
  }

  getPersistedSnapshot() {
    return this.#actor.getPersistedSnapshot();
  }

  toJSON() {
    return this.#actor.toJSON();
  }

  #follow(): void {
    const actor = this.#actor;
    this.#following = actor.subscribe({
      next: (snapshot: SnapshotFrom<M>) => this.#each((observer) => observer.next?.(snapshot)),
      // The unit is rolled back, or ends.
      error: () => {},
      complete: () => this.complete(),
    } as never);
  }

  #each(tell: (observer: Observer<SnapshotFrom<M>>) => void): void {
    for (const observer of this.#observers) this.#safely(() => tell(observer));
  }

  /** Calls an observer of the app: its errors affect neither the other observers nor the unit. */
  #safely(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      this.#report(error, 'observer of the actor');
    }
  }
}
