// Machines declare effects but do not execute them. An effect is a *named* action with params. An app provides its
// implementation, the runtime posts the effect to its router, and a model checker reads the effect as data. An action
// without an implementation does nothing.

import { enqueueActions, type AnyStateMachine } from 'xstate';

/** A declared effect; `P` is the type of its params. */
type EffectAction<P> = (args: unknown, params: P) => void;

/** A machine's effects by name, each with its params: `EffectsOf<typeof effects>`. */
export type EffectsOf<Declared> = {
  readonly [Name in keyof Declared]: Declared[Name] extends EffectAction<infer P> ? P : never;
};

/** The same effects, under the names they have outside the machine: `question.present`. */
export type Prefixed<Kind extends string, Effects> = {
  readonly [Name in keyof Effects & string as `${Kind}.${Name}`]: Effects[Name];
};

const declared = new WeakSet<object>();

/** Declares a named action as an effect: `actions: { grant: effect<{ id: string }>() }`. */
export function effect<P>(): EffectAction<P> {
  const declaration: EffectAction<P> = () => {};
  declared.add(declaration);
  return declaration;
}

/** Distinguishes an effect from an action that the machine executes itself. */
export function isEffect(action: unknown): boolean {
  return typeof action === 'function' && declared.has(action);
}

/**
 * Work that runs as long as the machine is in a state, and reports back through ordinary events. The state starts the
 * work on entry and stops it on exit, both as effects. For a restored state, the runtime's `activitiesOf` finds the
 * activities.
 */
export interface Activity<Name extends string = string, Input = unknown> {
  /** The kind of work, which determines the function that the runtime calls. */
  readonly name: Name;
  /** Unique among the machine's activities that run at the same time. */
  readonly id: string;
  /** The argument of that function. */
  readonly input: Input;
}

/** The activity that `stopActivity` stops. */
export interface ActivityStop<Name extends string = string> {
  /** The `name` of the activity to stop. */
  readonly name: Name;
  /** The `id` of the activity to stop. */
  readonly id: string;
}

/**
 * Declares a machine's activities: `actions: { ...activities<Activity<'fetch', { url: string }>>() }`. The machine's
 * states start each activity with `startActivity` on entry and stop it with `stopActivity` on exit.
 */
export function activities<A extends Activity>(): {
  readonly startActivity: EffectAction<A>;
  readonly stopActivity: EffectAction<ActivityStop<A['name']>>;
} {
  return { startActivity: effect<A>(), stopActivity: effect<ActivityStop<A['name']>>() };
}

/** Returns the params of `startActivity` for an activity whose id is the same as its name. */
export function activity<const Name extends string, Input>(
  name: Name,
  input: Input,
): Activity<Name, Input> {
  return { name, id: name, input };
}

/** Returns the action that stops an activity. @param id @defaultValue `name` */
export function stopActivity<const Name extends string>(
  name: Name,
  id: string = name,
): { readonly type: 'stopActivity'; readonly params: ActivityStop<Name> } {
  return { type: 'stopActivity', params: { name, id } };
}

/** The input of a deadline, which is an activity that sends `{ type: event, dueAt }` at `dueAt`. */
export interface DeadlineInput {
  /** Milliseconds since 1970, like every event's `at`. */
  readonly dueAt: number;
  /** The type of the event that the deadline sends to the machine that started the deadline. */
  readonly event: string;
  /**
   * Whether the deadline is adjusted when the clock changes. @defaultValue false: the deadline waits for the remaining
   * time
   */
  readonly byClock?: true;
}

/** The activity that sends an event at a given time. */
export type Deadline = Activity<'deadline', DeadlineInput>;

/** Returns the params of `startActivity` for a deadline. @param id @defaultValue 'deadline' */
export function deadline(event: string, dueAt: number, id = 'deadline'): Deadline {
  return { name: 'deadline', id, input: { dueAt, event } };
}

/**
 * Returns the machine with its deadlines as XState's delayed events, for an actor that you create yourself. The clock
 * of the actor's system sends each event, stamped with the time at which it was due. The other activities are still
 * passed to the machine's `startActivity` and `stopActivity`. XState does not store delayed events in a snapshot. A
 * restored actor starts the deadlines of the states that it enters, but not of the state in which it was restored.
 * @param now Returns the current time of the actor system's clock, in milliseconds since 1970: `Date.now`.
 */
export function withDeadlines<M extends AnyStateMachine>(machine: M, now: () => number): M {
  return machine.provide({
    actions: {
      startActivity: enqueueActions(({ enqueue }, params: Activity<string, DeadlineInput>) => {
        const { name, id, input } = params;
        if (name !== 'deadline') return enqueue({ type: 'startOther', params });
        const { event: type, dueAt } = input;
        enqueue.raise({ type, dueAt, at: dueAt }, { id, delay: Math.max(0, dueAt - now()) });
      }),
      stopActivity: enqueueActions(({ enqueue }, params: ActivityStop) => {
        if (params.name === 'deadline') enqueue.cancel(params.id);
        else enqueue({ type: 'stopOther', params });
      }),
      startOther: machine.implementations.actions['startActivity'],
      stopOther: machine.implementations.actions['stopActivity'],
    },
  }) as M;
}

/** The time at which an event was accepted, because machines do not read a clock. */
export interface Stamped {
  /** Milliseconds since 1970, set by the machine's host. */
  readonly at: number;
}

/** A machine's events without the time `at`, which the unit adds. */
export type Unstamped<E> = E extends unknown ? Omit<E, 'at'> : never;

/** Events with additional fields that the machine does not read: `Fields` maps an event's type to these fields. */
export type Carrying<E, Fields> = E extends { readonly type: infer Type }
  ? Type extends keyof Fields
    ? E & Fields[Type]
    : E
  : never;

/** A message for one actor of a protocol. The protocol maps each address to the events that its actor accepts. */
export type MessageIn<Protocol> = {
  readonly [Address in keyof Protocol & string]: {
    readonly actor: Address;
    readonly event: Protocol[Address];
  };
}[keyof Protocol & string];

/** XState limits loops of eventless transitions only on request; without the limit, such a loop hangs the process. */
export const machineOptions = { maxIterations: 1000 } as const;
