// `checkMachine`: checks a system that consists of one machine.

import type { AnyStateMachine, SnapshotFrom } from 'xstate';
import { z } from 'zod';
import { aFunction, check as isValid, type ChecksOf } from '../../values/checks.ts';
import { aMachine, actorChecks, checkSystem, commonChecks } from './check-system.ts';
import type { CheckReport } from './report.ts';
import type { EventOf, MachineCheck, SystemCheck, Verdict, World } from './types.ts';

const machineSchema = z.strictObject({
  ...commonChecks,
  ...actorChecks,
  events: z.custom<() => unknown>((value) => typeof value === 'function', {
    error: 'expected a function from a snapshot to the events that may come',
  }),
  unhandled: aFunction.optional(),
} satisfies Omit<ChecksOf<MachineCheck<AnyStateMachine>>, 'machine'>);

/**
 * Explores every state that a machine can reach with the possible events, and checks the properties in each state. It
 * is `checkSystem` with a single actor, whose name is the machine's id.
 *
 * ```ts
 * const report = checkMachine(doorMachine, {
 *   events: () => [{ type: 'door.open' }, { type: 'door.close' }],
 *   invariants: { 'never open while locked': ({ context, value }) => !(context.locked && value === 'open') },
 * });
 * console.log(report.toString());
 * ```
 *
 * @throws {ViolationError} at the first violation, with the shortest trace to it (see `onViolation`).
 * @throws {CapacityError} STATE_LIMIT: if there are more states than `limit`. If violations are collected, nothing is
 * thrown and the report names the limit.
 * @throws {ConfigurationError} if the check itself is invalid
 */
export function checkMachine<M extends AnyStateMachine, G = undefined>(
  machine: M,
  check: MachineCheck<M, G>,
): CheckReport<Record<string, M>, G> {
  isValid('checkMachine(machine)', aMachine, machine, 'NOT_A_MACHINE');
  isValid('checkMachine(machine, check)', machineSchema, check);
  const { id } = machine;
  type One = Record<string, M>;
  const only = (world: World<One, G>): SnapshotFrom<M> => world.actors[id] as SnapshotFrom<M>;
  const {
    input,
    start,
    key,
    events,
    invariants,
    steps,
    end,
    reachable,
    unhandled,
    ghost,
    ...rest
  } = check;
  const system: SystemCheck<One, G> = {
    ...rest,
    name: check.name ?? id,
    mode: 'sync',
    actors: { [id]: { machine, input, start, key } },
    external: (world) => events(only(world)),
    invariants: mapped(
      invariants,
      (holds) =>
        (world: World<One, G>): Verdict =>
          holds(only(world), world.ghost),
    ),
    steps: mapped(
      steps,
      (holds): NonNullable<SystemCheck<One, G>['steps']>[string] =>
        (before, step, after) =>
          step.kind === 'start' ||
          holds(only(before), step.event as EventOf<M>, only(after), step.effects),
    ),
    reachable: mapped(
      reachable,
      (wanted) =>
        (world: World<One, G>): boolean =>
          wanted(only(world), world.ghost),
    ),
    end: typeof end === 'function' ? (world) => end(only(world)) : end,
    unhandled: unhandled && ((step, world) => unhandled(step.event as EventOf<M>, only(world))),
    ghost: ghost && {
      initial: ghost.initial,
      next: (value, step, before, after) => ghost.next(value, step, only(before), only(after)),
    },
  };
  return checkSystem(system);
}

function mapped<A, B>(
  properties: Readonly<Record<string, A>> | undefined,
  change: (property: A) => B,
): Record<string, B> | undefined {
  if (properties === undefined) return undefined;
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [name, change(property)]),
  );
}
