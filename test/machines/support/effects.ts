// Reading what a step asked for.

import type { BuiltInEffect, Effect } from '../../../src/testing/check/index.ts';

type Params<E extends Effect, T extends E['type']> = Extract<E, { readonly type: T }>['params'];
type Spawn = Extract<BuiltInEffect, { readonly type: 'xstate.spawnChild' }>['params'];

/** The params of each effect of this type, in order. */
export function paramsOf<E extends Effect, T extends E['type']>(
  effects: readonly E[],
  type: T,
): readonly Params<E, T>[] {
  return effects.filter((effect) => effect.type === type).map(({ params }) => params as never);
}

/** What the activities of the machines are given, together. */
interface ActivityInput {
  readonly dueAt: number;
  readonly event: string;
  readonly step: number;
  readonly callIds: readonly string[];
  readonly messageIds: readonly string[];
  readonly final: boolean;
}

/** The inputs of the actors of this name that were invoked, in order. */
export function spawned(effects: readonly Effect[], src: string): readonly ActivityInput[] {
  return effects
    .filter(({ type }) => type === 'xstate.spawnChild')
    .map(({ params }) => params as Spawn)
    .filter((spawn) => spawn.src === src)
    .map(({ input }) => input as ActivityInput);
}

/** The invoked actors that run in a snapshot, by id. */
export function running(snapshot: { readonly children: object }): readonly string[] {
  return Object.keys(snapshot.children).toSorted();
}

/** True if the two say the same, as data. */
export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
