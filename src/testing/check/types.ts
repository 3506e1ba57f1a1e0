// The model checker's input and output: the machines, their messages, and the properties that must hold in every state.

import type {
  AnyEventObject,
  AnyStateMachine,
  EventFromLogic,
  InputFrom,
  SnapshotFrom,
  StateMachine,
} from 'xstate';

/** A system's machines, by actor id. */
export type Machines = Record<string, AnyStateMachine>;

/** An actor id in the system. */
export type ActorId<M extends Machines> = keyof M & string;

/** A property's verdict: it holds, it does not, or it does not for this reason. */
export type Verdict = boolean | string;

/** An event that a machine declares, or one of XState's own events such as `xstate.done.actor.think`. */
export type EventOf<M extends AnyStateMachine> =
  | EventFromLogic<M>
  | { readonly type: `xstate.${string}`; readonly [detail: string]: unknown };

type NamedAction<M extends AnyStateMachine> =
  M extends StateMachine<
    infer _Context,
    infer _Event,
    infer _Children,
    infer _Actor,
    infer Action,
    infer _Guard,
    infer _Delay,
    infer _Value,
    infer _Tag,
    infer _Input,
    infer _Output,
    infer _Emitted,
    infer _Meta,
    infer _Schema,
    infer _TransitionMeta
  >
    ? Action
    : never;

/** XState's own effects as data. An immediate `raise`, an `assign` and a guard are part of the step. */
export type BuiltInEffect =
  | {
      readonly type: 'xstate.spawnChild';
      readonly params: { readonly id: string; readonly src: string; readonly input: unknown };
    }
  | { readonly type: 'xstate.stopChild'; readonly params: { readonly id: string } }
  | {
      /** `to` is an actor of the system, an invoked actor, or `#_parent`. */
      readonly type: 'xstate.sendTo';
      readonly params: {
        readonly to: string;
        readonly event: AnyEventObject;
        readonly delayMs?: number;
      };
    }
  | { readonly type: 'xstate.emit'; readonly params: { readonly event: AnyEventObject } }
  | {
      readonly type: 'xstate.raise';
      readonly params: {
        readonly id: string | undefined;
        readonly event: AnyEventObject;
        readonly delayMs: number;
      };
    }
  | { readonly type: 'xstate.cancel'; readonly params: { readonly id: string } }
  | { readonly type: 'xstate.log'; readonly params: { readonly value: unknown } };

/** A step's effect: a named action with its params, or one of XState's own effects. */
export type EffectOf<M extends AnyStateMachine> = NamedAction<M> | BuiltInEffect;

/** An effect of any machine. */
export interface Effect {
  /** The effect's name. */
  readonly type: string;
  /** The effect's parameters. @defaultValue none */
  readonly params?: unknown;
}

/** A message in transit between two actors. */
export interface Message {
  /** The actor that sent it. */
  readonly from: string;
  /** The receiving actor. */
  readonly to: string;
  /** The message's event. */
  readonly event: AnyEventObject;
}

/** A message that `route` returns, with its receiver. */
export interface Delivery {
  /** The receiving actor. */
  readonly to: string;
  /** The event to deliver. */
  readonly event: AnyEventObject;
}

/** One state of the whole system. */
export interface World<M extends Machines, G = undefined> {
  /** The actors' snapshots, by id. */
  readonly actors: { readonly [Id in keyof M]: SnapshotFrom<M[Id]> };
  /** The messages that were sent but not delivered yet, in channel order. Empty between the steps of a `sync` system. */
  readonly inFlight: readonly Message[];
  /** The history variables (`ghost`). */
  readonly ghost: G;
}

/**
 * The cause of a step. `start`: an actor's first step; `environment`: an event of `events` or `external`; `timer`: an
 * `after` or other delayed event of the machine; `message`: a delivery; `repeat`: the first delivery of a message that
 * will be delivered again.
 */
export type StepKind = 'start' | 'environment' | 'timer' | 'message' | 'repeat';

/**
 * The machine's reaction to the event. `taken`: it made a transition; `ignored`: it names the event in this state and
 * does nothing (a forbidden transition); `unhandled`: it has no transition for the event in this state; `ended`: the
 * actor had already ended; `threw`: the machine threw an error.
 */
export type Outcome = 'taken' | 'ignored' | 'unhandled' | 'ended' | 'threw';

/** An event that an actor handles, and its effects. */
export interface Step<M extends Machines = Machines> {
  /** The actor that made the step. */
  readonly actor: ActorId<M>;
  /** The event that the step handled. */
  readonly event: AnyEventObject;
  /** The cause of the step. */
  readonly kind: StepKind;
  /** The sender, if the event is a message. */
  readonly from?: string;
  readonly outcome: Outcome;
  /** The effects that the step requested. */
  readonly effects: readonly EffectOf<M[keyof M]>[];
  /** The messages that `route` returned for the effects. */
  readonly sent: readonly Message[];
}

/**
 * History variables: plain data that no machine contains, such as the order in which questions were asked. They are
 * part of the state, so keep them small: each additional value multiplies the number of states.
 */
export interface Ghost<M extends Machines, G> {
  readonly initial: G;
  /**
   * Called after each step, including `start` steps. Returns a new value or the old one; it must not modify the old value.
   */
  next(ghost: G, step: Step<M>, before: World<M, G>, after: World<M, G>): G;
}

/** How an actor of the system starts, and the key of its states. */
export interface ActorDefinition<M extends AnyStateMachine> {
  /** The actor's machine. */
  readonly machine: M;
  /** The machine's input. @defaultValue none */
  readonly input?: InputFrom<M>;
  /**
   * The snapshot to start from, like a restored actor: no entry actions run, and no timers are armed. @defaultValue the
   * machine's initial state
   */
  readonly start?: SnapshotFrom<M>;
  /**
   * Returns the plain data that distinguishes two snapshots of this actor. Two snapshots with the same key must behave
   * alike; only the first of them is explored. Status, armed timers and running actors are always included.
   * @defaultValue everything: value, context, invoked actors, history
   */
  readonly key?: (snapshot: SnapshotFrom<M>) => unknown;
}

/** Declares that a state waits, and which events must lead out of it. */
export interface WaitRule<S> {
  /** A tag, or a predicate. An actor that has ended does not wait. */
  readonly when: string | ((snapshot: S) => boolean);
  /**
   * Event types, exact or a prefix and `*`. At least one of these events must change this actor's state.
   * @defaultValue any event, to any actor
   */
  readonly exits?: readonly string[];
}

/** The checks that machines and systems share. */
export interface CommonChecks {
  /** The report's title. @defaultValue the ids */
  readonly name?: string;
  /** The maximum number of states; more cause a CapacityError. @defaultValue 100_000 */
  readonly limit?: number;
  /** Whether `after` and other delayed events are explored: any armed timer may fire, in any order. @defaultValue true */
  readonly timers?: boolean;
  /** Whether a state that is not an end, and that no step changes, is a violation. @defaultValue true */
  readonly deadlock?: boolean;
  /**
   * Whether it is a violation if a *final* state would still handle an event that occurred during the exploration. XState's
   * own actor stops listening when it ends; the pure `transition`, on which durable engines are built, does not.
   * @defaultValue true
   */
  readonly finality?: boolean;
  /**
   * `throw`: throws the first violation as a ViolationError. `collect`: keeps the first violation of each property in
   * `report.violations`. @defaultValue 'throw'
   */
  readonly onViolation?: 'throw' | 'collect';
}

/** The checks for one machine. */
export interface MachineCheck<M extends AnyStateMachine, G = undefined>
  extends CommonChecks, Omit<ActorDefinition<M>, 'machine'> {
  /**
   * The external events that are possible in this state: commands, deadlines, and completions of invoked actors
   * (`xstate.done.actor.<id>` with `output` and `xstate.error.actor.<id>` with `error`), which apply only while that
   * actor runs. An event that the machine cannot handle is not a step. Armed `after` timers are included automatically.
   */
  events(snapshot: SnapshotFrom<M>): readonly EventOf<M>[];
  /** Must be true in each reachable state. */
  readonly invariants?: Readonly<Record<string, (snapshot: SnapshotFrom<M>, ghost: G) => Verdict>>;
  /** Must be true for each possible step, whatever its outcome. */
  readonly steps?: Readonly<
    Record<
      string,
      (
        before: SnapshotFrom<M>,
        event: EventOf<M>,
        after: SnapshotFrom<M>,
        effects: readonly EffectOf<M>[],
      ) => Verdict
    >
  >;
  /**
   * The states in which the machine may rest permanently; every state must be able to reach one (AG EF end). `false`
   * disables the check. @defaultValue status 'done'
   */
  readonly end?: false | ((snapshot: SnapshotFrom<M>) => boolean);
  readonly waits?: Readonly<Record<string, WaitRule<SnapshotFrom<M>>>>;
  /** At least one state must satisfy it, to detect a model that does nothing. */
  readonly reachable?: Readonly<Record<string, (snapshot: SnapshotFrom<M>, ghost: G) => boolean>>;
  /** Called for each event that the machine does not handle (`unhandled`, `ended`); `true` accepts it. */
  readonly unhandled?: (event: EventOf<M>, snapshot: SnapshotFrom<M>) => Verdict;
  readonly ghost?: {
    readonly initial: G;
    /** Like `Ghost.next`, with the one machine's snapshots. */
    next(
      ghost: G,
      step: Step<Record<string, M>>,
      before: SnapshotFrom<M>,
      after: SnapshotFrom<M>,
    ): G;
  };
}

/** The checks for machines that send each other messages. */
export interface SystemCheck<M extends Machines, G = undefined> extends CommonChecks {
  /** The actors of the system, by id. */
  readonly actors: { readonly [Id in keyof M]: ActorDefinition<M[Id]> };
  /**
   * Returns the messages that an effect represents. A `sendTo` to an actor of the system is delivered without `route`.
   * @defaultValue nothing
   */
  route?(
    from: ActorId<M>,
    effect: EffectOf<M[keyof M]>,
    world: World<M, G>,
  ): Delivery | readonly Delivery[] | undefined;
  /** Like a machine's `events`, for each actor that has not ended. @defaultValue none */
  external?(world: World<M, G>, id: ActorId<M>): readonly EventOf<M[keyof M]>[];
  /**
   * `sync`: the messages that a step causes are delivered, in sending order, before the next step (one process).
   * `async`: each pair of actors has an ordered channel; channels and the environment interleave in any way (workers,
   * hosts, networks).
   */
  readonly mode: 'sync' | 'async';
  /** `async`: the environment and timers wait while this many messages are in flight. @defaultValue 2 */
  readonly maxInFlight?: number;
  /** `async`: more messages than this in one channel are a violation. @defaultValue 16 */
  readonly maxQueue?: number;
  /**
   * `async`: every message (or those for which the function returns true) may be delivered twice, as with at-least-once
   * delivery.
   * @defaultValue false
   */
  readonly duplicates?: boolean | ((message: Message) => boolean);
  /** Must be true in each reachable world (`sync`: once all messages are delivered). */
  readonly invariants?: Readonly<Record<string, (world: World<M, G>) => Verdict>>;
  /** Must be true for each step, including deliveries, whatever its outcome. */
  readonly steps?: Readonly<
    Record<string, (before: World<M, G>, step: Step<M>, after: World<M, G>) => Verdict>
  >;
  /**
   * The worlds in which the system may rest permanently; every world must be able to reach one. `false` disables the check.
   * @defaultValue nothing is in flight, and every actor whose machine has a final state has ended
   */
  readonly end?: false | ((world: World<M, G>) => boolean);
  /** Checked for each actor in `actors` (all, if absent) whenever the environment may act. */
  readonly waits?: Readonly<
    Record<string, WaitRule<SnapshotFrom<M[keyof M]>> & { readonly actors?: readonly ActorId<M>[] }>
  >;
  /** At least one world must satisfy it, to detect a model that does nothing. */
  readonly reachable?: Readonly<Record<string, (world: World<M, G>) => boolean>>;
  /** Called for each event that an actor does not handle (`unhandled`, `ended`); `true` accepts it. */
  readonly unhandled?: (step: Step<M>, world: World<M, G>) => Verdict;
  readonly ghost?: Ghost<M, G>;
  /**
   * The data that distinguishes two worlds, instead of the actors' keys, the messages and the ghost. Use it for
   * counters that only matter relative to each other, and for symmetry. Two worlds with the same key must behave alike.
   * Status, armed timers and running actors are always included.
   */
  readonly key?: (world: World<M, G>) => unknown;
}

/** The members that `replay` reads from a snapshot, live or persisted. */
export interface SnapshotLike {
  readonly status: string;
  readonly value: unknown;
  readonly context: unknown;
  readonly error?: unknown;
  readonly children?: Readonly<Record<string, unknown>>;
  readonly historyValue?: Readonly<Record<string, readonly { readonly id: string }[]>>;
}

/** Creates the real system. */
export interface ReplayHarness {
  /** Starts a new run, which is idle in its initial state. */
  start(): ReplayRun | Promise<ReplayRun>;
}

/** A run of the real system. */
export interface ReplayRun {
  /**
   * Executes the step and returns when the system is idle. `sync`: called for environment events and timers; the run
   * itself delivers the messages that they cause. `async`: called for each delivery too. `impossible`: real time
   * forbids the step, for example because another timer is due first; the rest of the path is then skipped and counted.
   */
  take(step: Step): void | 'impossible' | Promise<void | 'impossible'>;
  /** Returns an actor's current state, as an immutable object. */
  snapshot(id: string): SnapshotLike;
  /** Ends the run. */
  stop(): void | Promise<void>;
}
