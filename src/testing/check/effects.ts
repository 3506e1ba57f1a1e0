// The effects of a step on its environment, read from XState's list of executable actions and normalised to one shape:
// `{ type, params }`, with plain ids instead of actors.

import type { AnyActorRef, AnyEventObject, AnyMachineSnapshot } from 'xstate';
import { propertiesOf } from '../../values/json.ts';
import { ConfigurationError } from '../../values/errors.ts';
import type { Effect } from './types.ts';

/** An action in XState's list. The `params` of XState's own actions are internal. Tests check their form. */
export interface ListedAction {
  readonly type: string;
  readonly params: unknown;
}

interface SpawnParams {
  readonly actorRef?: AnyActorRef;
  readonly src: unknown;
  readonly input: unknown;
}

interface SendParams {
  readonly to: AnyActorRef | string;
  readonly targetId?: string;
  readonly event: AnyEventObject;
  readonly delay?: number;
  readonly id?: string;
}

/**
 * Returns the effects of a step, in order.
 * @param before the snapshot before the step, if any
 * @param self the actor that made the step.
 */
export function effectsOf(
  listed: readonly ListedAction[],
  after: AnyMachineSnapshot,
  before: AnyMachineSnapshot | undefined,
  self: AnyActorRef,
): readonly Effect[] {
  const effects: Effect[] = [];
  const announced = new Set<string>();
  for (const { type, params } of listed) {
    const effect = normalised(type, params, self);
    if (effect === undefined) continue;
    effects.push(effect);
    if (type === 'xstate.spawnChild') announced.add((effect.params as { id: string }).id);
  }
  // `assign(({ spawn }) => …)` creates an actor but lists no action for it.
  if (after.children !== before?.children) {
    for (const [id, child] of Object.entries(after.children as Record<string, AnyActorRef>)) {
      const isNew = child !== undefined && child !== before?.children[id];
      if (isNew && !announced.has(id))
        effects.push(spawnOf(child, child.src, inputOf(child), self));
    }
  }
  return effects;
}

function normalised(type: string, params: unknown, self: AnyActorRef): Effect | undefined {
  switch (type) {
    case 'xstate.spawnChild': {
      const { actorRef, src, input } = params as SpawnParams;
      return actorRef && spawnOf(actorRef, src, input, self);
    }
    case 'xstate.stopChild': {
      const child = params as AnyActorRef | undefined;
      return child && { type, params: { id: child.id } };
    }
    case 'xstate.raise': {
      const { event, delay, id } = params as SendParams;
      // An event without a delay is processed within the step.
      return delay === undefined ? undefined : { type, params: { id, event, delayMs: delay } };
    }
    case 'xstate.cancel': {
      const { sendId } = params as { readonly sendId: string };
      return { type, params: { id: sendId } };
    }
    case 'xstate.sendTo': {
      const { to, targetId, event, delay, id } = params as SendParams;
      const target = targetId ?? (typeof to === 'string' ? to : to.id);
      return {
        type,
        params: {
          to: target === '#_internal' ? self.id : target,
          event,
          ...(delay === undefined ? {} : { delayMs: delay, id }),
        },
      };
    }
    case 'xstate.emit': {
      const { event } = params as SendParams;
      return { type, params: { event } };
    }
    case 'xstate.log': {
      const { value } = propertiesOf(params);
      return { type, params: { value } };
    }
    default:
      return { type, params };
  }
}

function spawnOf(child: AnyActorRef, src: unknown, input: unknown, self: AnyActorRef): Effect {
  if (child.id === child.sessionId) {
    throw new ConfigurationError(
      'SPAWN_WITHOUT_ID',
      `"${self.id}" spawns ${typeof src === 'string' ? `"${src}"` : 'an actor'} without an id. ` +
        'Expected an `id`: without one each spawn has a new name, and the number of states is unbounded.',
    );
  }
  return {
    type: 'xstate.spawnChild',
    params: { id: child.id, src: typeof src === 'string' ? src : '(inline)', input },
  };
}

function inputOf(child: AnyActorRef): unknown {
  return (child as unknown as { readonly options?: { readonly input?: unknown } }).options?.input;
}
