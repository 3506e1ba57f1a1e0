// Reads the effects of a step.

import type { AnyMachineSnapshot } from 'xstate';
import { activitiesOf } from '../../../src/actors/runtime/hosting.ts';
import type { Activity } from '../../../src/machines/index.ts';
import type { Effect } from '../../../src/testing/check/index.ts';

type Params<E extends Effect, T extends E['type']> = Extract<E, { readonly type: T }>['params'];

/** The params of each effect of this type, in order. */
export function paramsOf<E extends Effect, T extends E['type']>(
  effects: readonly E[],
  type: T,
): readonly Params<E, T>[] {
  return effects.filter((effect) => effect.type === type).map(({ params }) => params as never);
}

/** The inputs of all activities of the machines. */
interface ActivityInput {
  readonly dueAt: number;
  readonly event: string;
  readonly step: number;
  readonly callIds: readonly string[];
  readonly messageIds: readonly string[];
  readonly final: boolean;
}

/** Returns the inputs of the started activities with this name, in order. */
export function started(effects: readonly Effect[], name: string): readonly ActivityInput[] {
  return effects
    .filter(({ type }) => type === 'startActivity')
    .map(({ params }) => params as Activity)
    .filter((activity) => activity.name === name)
    .map(({ input }) => input as ActivityInput);
}

/** Returns the activities that are running in a snapshot, by id. */
export function running(snapshot: object): readonly string[] {
  const { machine } = snapshot as AnyMachineSnapshot;
  return activitiesOf(machine, snapshot as never)
    .map(({ id }) => id)
    .toSorted();
}

/** Returns whether the two values are equal as data. */
export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
