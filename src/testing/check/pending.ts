// The pending work of an actor that its snapshot does not contain: armed delayed events, and running invoked or spawned
// actors. It is read from the effects of the actor's steps.

import type { AnyEventObject } from 'xstate';
import type { Effect } from './types.ts';

/** An event that the machine sends to itself with a delay, and that has not fired yet. */
export interface Timer {
  /** The id that the machine uses to cancel it. */
  readonly id: string | undefined;
  readonly event: AnyEventObject;
}

export interface Pending {
  readonly timers: readonly Timer[];
  /** The ids of the invoked and spawned actors that have not completed and have not been stopped. */
  readonly running: readonly string[];
}

export const nothingPending: Pending = { timers: [], running: [] };

/** The params of the relevant effects. Which of them are present depends on the type of the effect. */
interface EffectParams {
  readonly id?: string;
  readonly to?: string;
  readonly event: AnyEventObject;
}

/** Returns the pending work of the actor `self` after a step that handled an event of this type. */
export function pendingAfter(
  before: Pending,
  eventType: string,
  effects: readonly Effect[],
  self: string,
): Pending {
  const completed = completedBy(eventType);
  let { timers, running } = before;
  if (completed !== undefined) running = without(running, completed);
  for (const { type, params } of effects) {
    const { id, to, event } = (params ?? {}) as EffectParams;
    if (type === 'xstate.cancel') {
      timers = timers.filter((timer) => timer.id !== id);
    } else if (type === 'xstate.raise' || (type === 'xstate.sendTo' && to === self)) {
      const others = id === undefined ? timers : timers.filter((timer) => timer.id !== id);
      timers = [...others, { id, event }];
    } else if (type === 'xstate.spawnChild' && id !== undefined) {
      running = [...without(running, id), id];
    } else if (type === 'xstate.stopChild' && id !== undefined) {
      running = without(running, id);
    }
  }
  return { timers, running };
}

/** Returns the id of the actor that completes with an event of this type. */
export function completedBy(type: string): string | undefined {
  return /^xstate\.(?:done|error)\.actor\.(.+)$/.exec(type)?.[1];
}

function without(ids: readonly string[], id: string): readonly string[] {
  return ids.filter((other) => other !== id);
}
