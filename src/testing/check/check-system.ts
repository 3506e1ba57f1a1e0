// `checkSystem`: explores every state of machines that send each other messages, and checks the properties in each
// state.

import type { AnyStateMachine } from 'xstate';
import { z } from 'zod';
import { aFunction, check as isValid, type ChecksOf } from '../../values/checks.ts';
import { CapacityError, ConfigurationError } from '../../values/errors.ts';
import { Checks } from './checks.ts';
import { explore, Graph } from './explore.ts';
import { show } from './plain-data.ts';
import { CheckReport } from './report.ts';
import { SystemModel, type AnySystem } from './system-model.ts';
import type { Machines, SystemCheck } from './types.ts';

/** An XState statechart. */
export const aMachine = z.custom<AnyStateMachine>(
  (value) => {
    const { id, provide, root } = Object(value) as Partial<AnyStateMachine>;
    return typeof id === 'string' && typeof provide === 'function' && typeof root === 'object';
  },
  { error: 'expected a machine of setup().createMachine() or createMachine()' },
);

const functions = z.record(z.string(), aFunction).optional();

/** The options for checks of machines and for checks of systems. */
export const commonChecks = {
  name: z.string().optional(),
  /** `checkSystem` validates this together with the other counts, which may be `Infinity`. */
  limit: z.unknown().optional(),
  timers: z.boolean().optional(),
  deadlock: z.boolean().optional(),
  finality: z.boolean().optional(),
  onViolation: z.enum(['throw', 'collect']).optional(),
  invariants: functions,
  steps: functions,
  reachable: functions,
  end: z.union([z.literal(false), aFunction]).optional(),
  waits: z
    .record(
      z.string(),
      z.strictObject({
        when: z.union([z.string(), aFunction]),
        exits: z.array(z.string()).optional(),
        actors: z.array(z.string()).optional(),
      }),
    )
    .optional(),
  unhandled: aFunction.optional(),
  ghost: z.strictObject({ initial: z.unknown(), next: aFunction }).optional(),
};

/** The options of one actor, besides its machine. */
export const actorChecks = {
  input: z.unknown().optional(),
  start: z.looseObject({}).optional(),
  key: aFunction.optional(),
};

const systemSchema = z.strictObject({
  ...commonChecks,
  actors: z.record(z.string(), z.strictObject({ machine: aMachine, ...actorChecks })),
  route: aFunction.optional(),
  external: aFunction.optional(),
  mode: z.unknown().optional(),
  maxInFlight: z.unknown().optional(),
  maxQueue: z.unknown().optional(),
  duplicates: z.union([z.boolean(), aFunction]).optional(),
  key: aFunction.optional(),
} satisfies ChecksOf<SystemCheck<Machines>>);

/** The default limit suits systems that are small enough for a test to explore. */
const defaultLimit = 100_000;

/**
 * Explores every state that the machines can reach together, in breadth-first order, and checks the properties in each
 * state. The following are always violations: deadlocks, final states that can be left, states from which no end is
 * reachable, and machines that throw.
 *
 * Nothing is executed. Named actions are listed as data, and `route` turns them into messages. Invoked actors are never
 * started; `external` provides their completions as events.
 *
 * @throws {ViolationError} at the first violation, with the shortest trace to it; see `onViolation`.
 * @throws {CapacityError} STATE_LIMIT, NEVER_SETTLES: if the space is larger than `limit`, or infinite If violations
 * are collected, the report contains them and the limit instead.
 * @throws {ConfigurationError} if the check itself is invalid: a state is not plain data, a route leads to an unknown
 * actor, or a property returns no verdict
 */
export function checkSystem<M extends Machines, G = undefined>(
  check: SystemCheck<M, G>,
): CheckReport<M, G> {
  const system = check as unknown as AnySystem;
  isValid('checkSystem(check)', systemSchema, check);
  const { limit = defaultLimit } = system;
  validate(system);
  const name = system.name ?? Object.keys(system.actors).join(' × ');
  const model = new SystemModel(system);
  const graph = new Graph();
  const checks = new Checks(system, model, graph, name);
  let reached: CapacityError | null = null;
  try {
    explore(model, graph, checks, { limit, name });
  } catch (error) {
    // The report contains the violations found before the limit was reached.
    if (!(error instanceof CapacityError) || checks.violations.length === 0) throw error;
    reached = error;
  }
  if (graph.worlds.length > 0 && reached === null) checks.finish();
  return new CheckReport<M, G>(name, system, model, graph, checks, reached);
}

function validate(system: AnySystem): void {
  const expectCount = (option: string, value: number | undefined, least: number): void => {
    if (value === undefined || value === Infinity || (Number.isInteger(value) && value >= least)) {
      return;
    }
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`${option}\` to be a whole number of at least ${least}, got ${show(value)}`,
    );
  };
  expectCount('limit', system.limit, 1);
  expectCount('maxInFlight', system.maxInFlight, 1);
  expectCount('maxQueue', system.maxQueue, 1);
  if (system.mode !== 'sync' && system.mode !== 'async') {
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`mode\` to be 'sync' or 'async', got ${show(system.mode)}`,
    );
  }
  if (Object.keys(system.actors ?? {}).length === 0) {
    throw new ConfigurationError('NO_ACTORS', 'Expected `actors` to name at least one machine');
  }
}
