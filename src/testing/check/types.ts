// The input and output of the model checker: the machines, their messages, and the properties that must hold in every
// state.

import type {
  AnyEventObject,
  AnyStateMachine,
  EventFromLogic,
  InputFrom,
  SnapshotFrom,
  StateMachine,
} from 'xstate';

/** The machines of a system, by actor id. */
export type Machines = Record<string, AnyStateMachine>;

/** The id of an actor in the system. */
export type ActorId<M extends Machines> = keyof M & string;

/** The verdict of a property: it holds, it does not hold, or it does not hold for this reason. */
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

/** XState's own effects, as data. An immediate `raise`, an `assign` and a guard belong to the step itself. */
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

/** An effect of a step: a named action with its params, or one of XState's own effects. */
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
  /** The actor that sent the message. */
  readonly from: string;
  /** The receiving actor. */
  readonly to: string;
  /** The message's event. */
  readonly event: AnyEventObject;
}

/** A message that `route` returns, together with its receiver. */
export interface Delivery {
  /** The receiving actor. */
  readonly to: string;
  /** The event to deliver. */
  readonly event: AnyEventObject;
}

/** One state of the whole system. */
export interface World<M extends Machines, G = undefined> {
  /** The snapshots of the actors, by id. */
  readonly actors: { readonly [Id in keyof M]: SnapshotFrom<M[Id]> };
  /** The messages that were sent but not delivered, in channel order. Empty between the steps of a `sync` system. */
  readonly inFlight: readonly Message[];
  /** The history variables (`ghost`). */
  readonly ghost: G;
}

/**
 * The cause of a step. `start`: an actor's first step; `environment`: an event of `events` or `external`; `timer`: an
 * `after` or another delayed event of the machine; `message`: a delivery; `repeat`: the first delivery of a message
 * that will be delivered again.
 */
export type StepKind = 'start' | 'environment' | 'timer' | 'message' | 'repeat';

/**
 * How the machine reacted to the event. `taken`: it made a transition; `ignored`: its state names the event but does
 * nothing (a forbidden transition); `unhandled`: its state has no transition for the event; `ended`: the actor had
 * already ended; `threw`: the machine threw an error.
 */
export type Outcome = 'taken' | 'ignored' | 'unhandled' | 'ended' | 'threw';

/** An event that an actor handles, with the effects of that step. */
export interface Step<M extends Machines = Machines> {
  /** The actor that made the step. */
  readonly actor: ActorId<M>;
  /** The event that the step handled. */
  readonly event: AnyEventObject;
  /** The cause of the step. */
  readonly kind: StepKind;
  /** The sender, if the event is a message. */
  readonly from?: string;
  /** How the machine reacted to the event. */
  readonly outcome: Outcome;
  /** The effects that the step requested. */
  readonly effects: readonly EffectOf<M[keyof M]>[];
  /** The messages that `route` returned for these effects. */
  readonly sent: readonly Message[];
}

/**
 * History variables: plain data that no machine contains, such as the order in which questions were asked. They are
 * part of the state. Keep them small, because each additional value multiplies the number of states.
 */
export interface Ghost<M extends Machines, G> {
  /** The value before the first step of any actor. */
  readonly initial: G;
  /**
   * Called after each step, including steps of the kind `start`. Returns a new value or the old one. It must not modify
   * the old value.
   */
  next(ghost: G, step: Step<M>, before: World<M, G>, after: World<M, G>): G;
}

/** How an actor of the system starts, and which key its states have. */
export interface ActorDefinition<M extends AnyStateMachine> {
  /** The actor's machine. */
  readonly machine: M;
  /** The machine's input. @defaultValue none */
  readonly input?: InputFrom<M>;
  /**
   * The snapshot to start from. As in a restored actor, no entry actions run and no timers are armed. @defaultValue the
   * machine's initial state
   */
  readonly start?: SnapshotFrom<M>;
  /**
   * Returns the plain data that tells this actor's snapshots apart. Two snapshots with the same key must behave alike,
   * because only the first one is explored. The status, the armed timers and the running actors are always included.
   * @defaultValue everything: value, context, invoked actors, history
   */
  readonly key?: (snapshot: SnapshotFrom<M>) => unknown;
}

/** Declares that a state waits, and which events must end the wait. */
export interface WaitRule<S> {
  /** The states that wait: a tag or a predicate. An actor that has ended is not waiting. */
  readonly when: string | ((snapshot: S) => boolean);
  /**
   * Event types: an exact type, or a prefix and `*`. At least one of these events must change this actor's state.
   * @defaultValue any event, to any actor
   */
  readonly exits?: readonly string[];
}

/** The checks that machines and systems have in common. */
export interface CommonChecks {
  /** The report's title. @defaultValue the ids */
  readonly name?: string;
  /** The maximum number of states. If there are more, a CapacityError is thrown. @defaultValue 100_000 */
  readonly limit?: number;
  /** Whether delayed events such as `after` are explored: any armed timer may fire, in any order. @defaultValue true */
  readonly timers?: boolean;
  /** Whether it is a violation if no step changes a state that is not an end. @defaultValue true */
  readonly deadlock?: boolean;
  /**
   * Whether it is a violation if a *final* state would still handle an event of the exploration. XState's own actor
   * stops listening when it ends. The pure `transition`, on which durable engines are built, does not.
   * @defaultValue true
   */
  readonly finality?: boolean;
  /**
   * `throw`: the first violation is thrown as a ViolationError. `collect`: the first violation of each property is
   * added to `report.violations`. @defaultValue 'throw'
   */
  readonly onViolation?: 'throw' | 'collect';
}

/** The checks for one machine. */
export interface MachineCheck<M extends AnyStateMachine, G = undefined>
  extends CommonChecks, Omit<ActorDefinition<M>, 'machine'> {
  /**
   * The external events that are possible in this state: commands, deadlines and completions of invoked actors
   * (`xstate.done.actor.<id>` with `output` and `xstate.error.actor.<id>` with `error`). A completion is possible only
   * while its actor is running. An event that the machine cannot handle does not cause a step. Armed `after` timers are
   * included automatically.
   */
  events(snapshot: SnapshotFrom<M>): readonly EventOf<M>[];
  /** Must be true in every reachable state. */
  readonly invariants?: Readonly<Record<string, (snapshot: SnapshotFrom<M>, ghost: G) => Verdict>>;
  /** Must be true for every possible step, whatever its outcome. */
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
   * The states in which the machine may stay permanently. Every state must be able to reach one of them (AG EF end).
   * `false` disables the check. @defaultValue status 'done'
   */
  readonly end?: false | ((snapshot: SnapshotFrom<M>) => boolean);
  /** The states that wait, by the name of the rule, and the events that must end each wait. @defaultValue none */
  readonly waits?: Readonly<Record<string, WaitRule<SnapshotFrom<M>>>>;
  /** Must be true in at least one state. This detects a model that does nothing. */
  readonly reachable?: Readonly<Record<string, (snapshot: SnapshotFrom<M>, ghost: G) => boolean>>;
  /** Called for each event that the machine does not handle (`unhandled`, `ended`); returning `true` accepts it. */
  readonly unhandled?: (event: EventOf<M>, snapshot: SnapshotFrom<M>) => Verdict;
  /** History variables, like those of `SystemCheck`. @defaultValue none */
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

/** The checks for machines that send each other messages. */
export interface SystemCheck<M extends Machines, G = undefined> extends CommonChecks {
  /** The actors in the system, by id. */
  readonly actors: { readonly [Id in keyof M]: ActorDefinition<M[Id]> };
  /**
   * Returns the messages that an effect represents. A `sendTo` to an actor in the system does not need `route`.
   * @defaultValue nothing
   */
  route?(
    from: ActorId<M>,
    effect: EffectOf<M[keyof M]>,
    world: World<M, G>,
  ): Delivery | readonly Delivery[] | undefined;
  /** Like the `events` of a machine, for each actor that has not ended. @defaultValue none */
  external?(world: World<M, G>, id: ActorId<M>): readonly EventOf<M[keyof M]>[];
  /**
   * `sync`: the messages that a step causes are delivered before the next step, in sending order (one process).
   * `async`: each pair of actors has an ordered channel, and channels and the environment interleave in any way
   * (workers, hosts, networks).
   */
  readonly mode: 'sync' | 'async';
  /** `async`: the environment and timers wait while this many messages are in flight. @defaultValue 2 */
  readonly maxInFlight?: number;
  /** `async`: it is a violation if a channel has more messages than this. @defaultValue 16 */
  readonly maxQueue?: number;
  /**
   * `async`: every message may be delivered twice, as with at-least-once delivery. A function returns true for the
   * messages to which this applies.
   * @defaultValue false
   */
  readonly duplicates?: boolean | ((message: Message) => boolean);
  /** Must be true in every reachable world (`sync`: after all messages have been delivered). */
  readonly invariants?: Readonly<Record<string, (world: World<M, G>) => Verdict>>;
  /** Must be true for every step, including deliveries, whatever its outcome. */
  readonly steps?: Readonly<
    Record<string, (before: World<M, G>, step: Step<M>, after: World<M, G>) => Verdict>
  >;
  /**
   * The worlds in which the system may stay permanently. Every world must be able to reach one of them. `false`
   * disables the check.
   * @defaultValue nothing is in flight, and every actor whose machine has a final state has ended
   */
  readonly end?: false | ((world: World<M, G>) => boolean);
  /** Checked for each actor in `actors` (by default, all actors) whenever the environment may act. */
  readonly waits?: Readonly<
    Record<string, WaitRule<SnapshotFrom<M[keyof M]>> & { readonly actors?: readonly ActorId<M>[] }>
  >;
  /** Must be true in at least one world. This detects a model that does nothing. */
  readonly reachable?: Readonly<Record<string, (world: World<M, G>) => boolean>>;
  /** Called for each event that an actor does not handle (`unhandled`, `ended`); returning `true` accepts it. */
  readonly unhandled?: (step: Step<M>, world: World<M, G>) => Verdict;
  /** History variables of the whole system. @defaultValue none */
  readonly ghost?: Ghost<M, G>;
  /**
   * The data that tells two worlds apart. It replaces the actors' keys, the messages and the ghost. Use it for
   * symmetry, and for counters of which only the difference matters. Two worlds with the same key must behave alike.
   * The status, the armed timers and the running actors are always included.
   */
  readonly key?: (world: World<M, G>) => unknown;
}

/** The members of a live or persisted snapshot that `replay` reads. */
export interface SnapshotLike {
  /** `active`, `done`, `error` or `stopped`; it must be the same in the model and in the implementation. */
  readonly status: string;
  /** The current state of the machine. */
  readonly value: unknown;
  /** The machine's context, which is compared unless the actor's `key` leaves it out. */
  readonly context: unknown;
  /** The error of a snapshot with status `error`. @defaultValue none */
  readonly error?: unknown;
  /** The invoked actors that are running, by id. @defaultValue none */
  readonly children?: Readonly<Record<string, unknown>>;
  /** The states that the history states remember, by the id of the history state. @defaultValue none */
  readonly historyValue?: Readonly<Record<string, readonly { readonly id: string }[]>>;
}

/** Creates the real system. */
export interface ReplayHarness {
  /** Starts a new run. The run is idle in its initial state. */
  start(): ReplayRun | Promise<ReplayRun>;
}

/** A run of the real system. */
export interface ReplayRun {
  /**
   * Executes the step. Returns when the system is idle. `sync`: called for environment events and timers. The run
   * itself delivers the messages that they cause. `async`: also called for each delivery. `impossible`: the step cannot
   * happen in real time, for example because another timer is due first. The rest of the path is then skipped, and the
   * path is counted.
   */
  take(step: Step): void | 'impossible' | Promise<void | 'impossible'>;
  /** Returns the current state of an actor as an immutable object. */
  snapshot(id: string): SnapshotLike;
  /** Ends the run. */
  stop(): void | Promise<void>;
}
