// How a machine names effects without executing them. An effect is a *named* action with params, or an
// invoked actor by name. An app provides the implementation; the runtime posts it to its router; a model
// checker reads it as data. An action without an implementation does nothing.

import { fromCallback, type CallbackActorLogic, type EventObject } from 'xstate';

type EffectAction<P> = (args: unknown, params: P) => void;

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

/**
 * XState limits loops of eventless transitions only on request; without this, such a loop hangs the process.
 */
export const machineOptions = { maxIterations: 1000 } as const;
