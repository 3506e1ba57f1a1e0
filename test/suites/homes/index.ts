// The conformance suite for homes. A home is a place where sessions live, with its journal, its clock and its clients.
// Examples of homes are a process with a journal in a file, several processes on one database, and a Durable Object.

import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../../src/values/checks.ts';
import {
  skippedFor,
  type ConformanceCase,
} from '../../../src/testing/conformance/transport-conformance.ts';
import { HomeBench, type HomeConformanceSetup } from './bench.ts';
import { homeScenes, killsWhileAway, randomKills } from './cases.ts';

export type { HomeConformanceSetup, HomeStage } from './bench.ts';
export { homeConformanceAgents } from './errands.ts';

const setupSchema = z.strictObject({
  name: z.string(),
  shows: z.array(z.enum(['nodes', 'stops', 'drains', 'evicts'])),
  seeds: z.number().int().min(0).optional(),
  patience: z.number().int().min(1).optional(),
  moment: aFunction,
  open: aFunction,
} satisfies ChecksOf<HomeConformanceSetup>);

/**
 * The cases that every home of sessions must pass, as seen from clients of `offstage/client`. The suite kills processes
 * without warning, at fixed moments and at random moments that depend on seeds.
 *
 * ```ts
 * for (const { name, run, skipped } of homeConformance(setup)) test.skipIf(skipped !== null)(name, run);
 * ```
 * @throws {ConfigurationError} `INVALID_OPTION` if the setup is invalid.
 */
export function homeConformance(setup: HomeConformanceSetup): readonly ConformanceCase[] {
  check('homeConformance(setup)', setupSchema, setup);
  const { seeds = 5 } = setup;
  const random = [randomKills, killsWhileAway].flatMap((scene) =>
    Array.from({ length: seeds }, (_, at) => scene(at + 1)),
  );
  return [...homeScenes, ...random].map(({ name, needs = [], play }) => ({
    name,
    skipped: skippedFor(setup.name, setup.shows, needs),
    async run() {
      const bench = new HomeBench(setup);
      await bench.open();
      try {
        await play(bench);
      } finally {
        await bench.close();
      }
    },
  }));
}
