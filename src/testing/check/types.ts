// The input and output of the model checker: the machines, the messages between them, and the properties that
// must hold in every state.

import type {
  AnyEventObject,
  AnyStateMachine,
  EventFromLogic,
  InputFrom,
  SnapshotFrom,
  StateMachine,
} from 'xstate';

/** The machines of a system, by the id of the actor that runs each. */
export type Machines = Record<string, AnyStateMachine>;

/** The id of an actor of the system. */
export type ActorId<M extends Machines> = keyof M & string;

/** The answer of a property: it holds; it does not; or it does not, for this reason. */
export type Verdict = boolean | string;

/** An event that a machine declares, or one of XState's own such as `xstate.done.actor.think`. */
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

/** XState's own effects, as data. An immediate `raise`, an `assign` and a guard are part of the step. */
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

/** An effect of a step: a named action with its params, or one of XState's own. */
export type EffectOf<M extends AnyStateMachine> = NamedAction<M> | BuiltInEffect;

/** An effect of any machine. */
export interface Effect {
  /** The name of the effect. */
  readonly type: string;
  /** The parameters of the effect. @defaultValue none */
  readonly params?: unknown;
}

/** A message on its way from one actor to another. */
export interface Message {
  /** The actor that sent it. */
  readonly from: string;
  /** The actor that receives it. */
  readonly to: string;
  /** The event of the message. */
  readonly event: AnyEventObject;
}

/** A message that `route` returns, and its receiver. */
export interface Delivery {
  /** The actor that receives it. */
  readonly to: string;
  /** The event to deliver. */
  readonly event: AnyEventObject;
}

/** One state of the whole system. */
export interface World<M extends Machines, G = undefined> {
  /** The snapshots of the actors, by id. */
  readonly actors: { readonly [Id in keyof M]: SnapshotFrom<M[Id]> };
  /**
   * The messages that were sent and not yet delivered, in the order of each channel. Empty between steps of a `sync`
   * system.
   */
  readonly inFlight: readonly Message[];
  /** The history variables (`ghost`). */
  readonly ghost: G;
}

/**
 * The cause of a step. `start`: the first step of an actor; `environment`: an event of `events` or `external`; `timer`:
 * an `after` or another delayed event of the machine; `message`: a delivery; `repeat`: a first delivery of a message
 * that will be delivered again.
 */
export type StepKind = 'start' | 'environment' | 'timer' | 'message' | 'repeat';

/**
 * The machine's reaction to the event. `taken`: it made a transition; `ignored`: it names the event in this state and
 * does nothing (a forbidden transition); `unhandled`: it has no transition for the event in this state; `ended`: the
 * actor had ended before; `threw`: the machine threw an error.
 */
export type Outcome = 'taken' | 'ignored' | 'unhandled' | 'ended' | 'threw';

/** An event that an actor takes, and its effects. */
export interface Step<M extends Machines = Machines> {
  /** The actor that took the step. */
  readonly actor: ActorId<M>;
  /** The event that the step took. */
  readonly event: AnyEventObject;
  /** The cause of the step. */
  readonly kind: StepKind;
  /** The sender of a message. */
  readonly from?: string;
  readonly outcome: Outcome;
  /** The effects that the step requested. */
  readonly effects: readonly EffectOf<M[keyof M]>[];
  /** The messages that `route` returned for the effects. */
  readonly sent: readonly Message[];
}

/**
 * History variables: plain data that no machine holds, such as the order in which questions were asked. They are part
 * of the state, so keep them small: each value multiplies the states.
 */
export interface Ghost<M extends Machines, G> {
  readonly initial: G;
  /**
   * Called after each step, including `start` steps. Returns a new value, or the old one, without changing it in place.
   */
  next(ghost: G, step: Step<M>, before: World<M, G>, after: World<M, G>): G;
}

/** The start of an actor of the system, and the key of its states. */
export interface ActorDefinition<M extends AnyStateMachine> {
  /** The machine of the actor. */
  readonly machine: M;
  /** The input of the machine. @defaultValue none */
  readonly input?: InputFrom<M>;
  /**
   * The snapshot to start from, as after a restore: no entry actions run, no timers are armed. @defaultValue the
   * beginning
   */
  readonly start?: SnapshotFrom<M>;
  /**
   * The plain data that distinguishes two snapshots of this actor. Two snapshots with the same key must
   * behave alike; only the first one found is explored. Status, armed timers and running actors always count.
   * @defaultValue everything: value, context, invoked actors, history
   */
  readonly key?: (snapshot: SnapshotFrom<M>) => unknown;
}

/** Declares that a state is a wait, and the events that must lead out of it. */
export interface WaitRule<S> {
  /** A tag, or a predicate. Only an actor that has not ended can wait. */
  readonly when: string | ((snapshot: S) => boolean);
  /**
   * Types of events, exact or a beginning and `*`. At least one of these events must change the state of this actor.
   * @defaultValue any event, to any actor
   */
  readonly exits?: readonly string[];
}

/** The checks that a machine and a system have in common. */
export interface CommonChecks {
  /** The title of the report. @defaultValue the ids */
  readonly name?: string;
  /** The most states; more are a CapacityError. @defaultValue 100_000 */
  readonly limit?: number;
  /** Explores `after` and other delayed events: any armed timer may fire, in any order. @defaultValue true */
  readonly timers?: boolean;
  /** Reports a state that is no end and that no step changes as a violation. @defaultValue true */
  readonly deadlock?: boolean;
  /**
   * Reports an event as a violation if the exploration saw it and a *final* state would still take it. XState's own
   * actor stops listening when it ends; the pure `transition`, on which durable engines are built, does not.
   * @defaultValue true
   */
  readonly finality?: boolean;
  /**
   * `throw`: the first violation is thrown as a ViolationError. `collect`: the first of each
   * property is kept in `report.violations`. @defaultValue 'throw'
   */
  readonly onViolation?: 'throw' | 'collect';
}

/** The checks of one machine. */
export interface MachineCheck<M extends AnyStateMachine, G = undefined>
  extends CommonChecks, Omit<ActorDefinition<M>, 'machine'> {
  /**
   * The events that may come from outside in this state: commands, deadlines, and the completions of invoked actors,
   * `xstate.done.actor.<id>` with `output` and `xstate.error.actor.<id>` with `error`, which count only while that
   * actor runs. An event that the machine cannot take is no step. Armed `after` timers are added automatically.
   */
  events(snapshot: SnapshotFrom<M>): readonly EventOf<M>[];
  /** True in each state that can be reached. */
  readonly invariants?: Readonly<Record<string, (snapshot: SnapshotFrom<M>, ghost: G) => Verdict>>;
  /** True of each step that can be made, whatever its outcome. */
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
   * The states in which the machine may rest for good; every state must be able to reach one (AG EF end). `false`: not
   * checked. @defaultValue status 'done'
   */
  readonly end?: false | ((snapshot: SnapshotFrom<M>) => boolean);
  readonly waits?: Readonly<Record<string, WaitRule<SnapshotFrom<M>>>>;
  /** At least one state must satisfy it: a guard against a model in which nothing happens. */
  readonly reachable?: Readonly<Record<string, (snapshot: SnapshotFrom<M>, ghost: G) => boolean>>;
  /** Called for each event that the machine does not take (`unhandled`, `ended`); `true` accepts it. */
  readonly unhandled?: (event: EventOf<M>, snapshot: SnapshotFrom<M>) => Verdict;
  readonly ghost?: {
    readonly initial: G;
    /** Like `Ghost.next`, with the snapshots of the one machine. */
    next(
      ghost: G,
      step: Step<Record<string, M>>,
      before: SnapshotFrom<M>,
      after: SnapshotFrom<M>,
    ): G;
  };
}

/** The checks of machines that send each other messages. */
export interface SystemCheck<M extends Machines, G = undefined> extends CommonChecks {
  /** The actors of the system, by id. */
  readonly actors: { readonly [Id in keyof M]: ActorDefinition<M[Id]> };
  /**
   * Returns the messages that an effect stands for. A `sendTo` to an actor of the system is delivered without `route`.
   * @defaultValue nothing
   */
  route?(
    from: ActorId<M>,
    effect: EffectOf<M[keyof M]>,
    world: World<M, G>,
  ): Delivery | readonly Delivery[] | undefined;
  /** Like `events` of one machine, for each actor that has not ended. @defaultValue none */
  external?(world: World<M, G>, id: ActorId<M>): readonly EventOf<M[keyof M]>[];
  /**
   * `sync`: the messages that a step causes are delivered before the next step, first sent first (one process).
   * `async`: each pair of actors has a channel that keeps its order, and channels and the environment interleave in any
   * way (workers, hosts, networks).
   */
  readonly mode: 'sync' | 'async';
  /** `async`: the environment and timers wait while this many messages are in flight. @defaultValue 2 */
  readonly maxInFlight?: number;
  /** `async`: more messages than this in one channel is a violation. @defaultValue 16 */
  readonly maxQueue?: number;
  /**
   * `async`: any message (or those for which it is true) may be delivered twice, as with at-least-once delivery.
   * @defaultValue false
   */
  readonly duplicates?: boolean | ((message: Message) => boolean);
  /** True in each world that can be reached (`sync`: once all messages are delivered). */
  readonly invariants?: Readonly<Record<string, (world: World<M, G>) => Verdict>>;
  /** True of each step, deliveries included, whatever its outcome. */
  readonly steps?: Readonly<
    Record<string, (before: World<M, G>, step: Step<M>, after: World<M, G>) => Verdict>
  >;
  /**
   * The worlds in which the system may rest for good; every world must be able to reach one. `false`: not checked.
   * @defaultValue nothing is in flight, and every actor whose machine has a final state has ended
   */
  readonly end?: false | ((world: World<M, G>) => boolean);
  /** Checked for each actor in `actors` (all, if absent), where the environment may act. */
  readonly waits?: Readonly<
    Record<string, WaitRule<SnapshotFrom<M[keyof M]>> & { readonly actors?: readonly ActorId<M>[] }>
  >;
  /** At least one world must satisfy it: a guard against a model in which nothing happens. */
  readonly reachable?: Readonly<Record<string, (world: World<M, G>) => boolean>>;
  /** Called for each event that an actor does not take (`unhandled`, `ended`); `true` accepts it. */
  readonly unhandled?: (step: Step<M>, world: World<M, G>) => Verdict;
  readonly ghost?: Ghost<M, G>;
  /**
   * The data that distinguishes two worlds, instead of the keys of the actors, the messages and the ghost. Use it for
   * counters that only matter relative to each other, and for symmetry. Two worlds with the same key must behave alike.
   * Status, armed timers and running actors always count.
   */
  readonly key?: (world: World<M, G>) => unknown;
}

/** The members of a snapshot, live or persisted, that `replay` reads. */
export interface SnapshotLike {
  readonly status: string;
  readonly value: unknown;
  readonly context: unknown;
  readonly error?: unknown;
  readonly children?: Readonly<Record<string, unknown>>;
  readonly historyValue?: Readonly<Record<string, readonly { readonly id: string }[]>>;
}

/** Makes the real system. */
export interface ReplayHarness {
  /** Starts a new run in its initial state, at rest. */
  start(): ReplayRun | Promise<ReplayRun>;
}

/** A run of the real system. */
export interface ReplayRun {
  /**
   * Makes the step happen and returns when the system is idle. `sync`: called for events of the environment and timers;
   * the run itself delivers the messages that they cause. `async`: called for each delivery too. `impossible`: real
   * time forbids the step, as when another timer is due first; the rest of the path is then skipped and counted.
   */
  take(step: Step): void | 'impossible' | Promise<void | 'impossible'>;
  /** Returns the present state of an actor, as an object that no longer changes. */
  snapshot(id: string): SnapshotLike;
  /** Ends the run. */
  stop(): void | Promise<void>;
}
