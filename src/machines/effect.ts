// How a machine names effects without executing them. An effect is a *named* action with params, or an
// invoked actor by name. An app provides the implementation; the runtime posts it to its router; a model
// checker reads it as data. An action without an implementation does nothing.

import { fromCallback, type CallbackActorLogic, type EventObject } from 'xstate';

/** A declared effect; `P` is what it carries. */
type EffectAction<P> = (args: unknown, params: P) => void;

/** The effects of a machine by their names, with what each carries: `EffectsOf<typeof effects>`. */
export type EffectsOf<Declared> = {
  readonly [Name in keyof Declared]: Declared[Name] extends EffectAction<infer P> ? P : never;
};

/** The same under the names that they have outside of the machine: `question.present`. */
export type Prefixed<Kind extends string, Effects> = {
  readonly [Name in keyof Effects & string as `${Kind}.${Name}`]: Effects[Name];
};

const declared = new WeakSet<object>();

/** Declares a named action that is an effect: `actions: { grant: effect<{ id: string }>() }`. */
export function effect<P>(): EffectAction<P> {
  const declaration: EffectAction<P> = () => {};
  declared.add(declaration);
  return declaration;
}

/** Distinguishes an effect from an action that the machine itself carries out. */
export function isEffect(action: unknown): boolean {
  return typeof action === 'function' && declared.has(action);
}

/**
 * Declares an invoked actor that the host provides: work that lasts as long as the state that owns it. It
 * reports back with ordinary events.
 */
export function activity<I>(name: string): CallbackActorLogic<EventObject, I & object> {
  return fromCallback<EventObject, I & object>(() => {
    throw new Error(`The actor "${name}" was not provided: use machine.provide({ actors })`);
  });
}

/** The input of a deadline: an invoked actor that sends `{ type: event, dueAt }` at `dueAt`. */
export interface DeadlineInput {
  /** Milliseconds since 1970, as `at` of every event. */
  readonly dueAt: number;
  /** The type of the event that it sends to the machine that invoked it. */
  readonly event: string;
}

/** The time at which an event was accepted: a machine reads no clock. */
export interface Stamped {
  /** Milliseconds since 1970, stamped by the host of the machine. */
  readonly at: number;
}

/** The events of a machine as they are sent: the unit that takes one in stamps it. */
export type Unstamped<E> = E extends unknown ? Omit<E, 'at'> : never;

/** Events that carry fields which their machine does not read: `Fields` maps the type of an event to them. */
export type Carrying<E, Fields> = E extends { readonly type: infer Type }
  ? Type extends keyof Fields
    ? E & Fields[Type]
    : E
  : never;

/** A message for one of the actors of a protocol, which maps each address to the events that go there. */
export type MessageIn<Protocol> = {
  readonly [Address in keyof Protocol & string]: {
    readonly actor: Address;
    readonly event: Protocol[Address];
  };
}[keyof Protocol & string];

/**
 * XState limits loops of eventless transitions only on request; without this, such a loop hangs the process.
 */
export const machineOptions = { maxIterations: 1000 } as const;
