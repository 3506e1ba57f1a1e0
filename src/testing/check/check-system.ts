// checkSystem: explores every state of machines that send each other messages, and checks the properties in
// each.

import { ConfigurationError } from '../../values/errors.ts';
import { Checks } from './checks.ts';
import { explore, Graph } from './explore.ts';
import { show } from './plain-data.ts';
import { CheckReport } from './report.ts';
import { SystemModel, type AnySystem } from './system-model.ts';
import type { Machines, SystemCheck } from './types.ts';

/** Enough for the systems that a test has time to explore. */
const defaultLimit = 100_000;

/**
 * Explores every state that the machines can reach together, nearest first, and checks the properties in
 * each. Deadlocks, final states that can be left, states from which no end can be reached and machines that
 * throw are always violations.
 *
 * Nothing runs: named actions are listed as data and become messages by `route`; invoked actors are never
 * started, their completions are events that `external` offers.
 *
 * @throws {ViolationError} at the first violation, with the shortest trace to it; see `onViolation`.
 * @throws {CapacityError} STATE_LIMIT, NEVER_SETTLES: the space is larger than `limit`, or endless.
 * @throws {ConfigurationError} the check itself is wrong: a state that is not plain data, a route to an
 * unknown actor, a property that answers neither yes nor no.
 */
export function checkSystem<M extends Machines, G = undefined>(
  check: SystemCheck<M, G>,
): CheckReport<M, G> {
  const system = check as unknown as AnySystem;
  const { limit = defaultLimit } = system;
  validate(system);
  const name = system.name ?? Object.keys(system.actors).join(' × ');
  const model = new SystemModel(system);
  const graph = new Graph();
  const checks = new Checks(system, model, graph, name);
  explore(model, graph, checks, { limit, name });
  if (graph.worlds.length > 0) checks.finish();
  return new CheckReport<M, G>(name, system, model, graph, checks);
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
