// The conformance suite for runs that outlive their process, either in process with a journal or on an engine.

import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../../src/values/checks.ts';
import {
  skippedFor,
  type ConformanceCase,
} from '../../../src/testing/conformance/transport-conformance.ts';
import { RunsBench, type RunsConformanceSetup } from './bench.ts';
import { runsScenes } from './cases.ts';
import { messageScenes } from './message-cases.ts';
import { deployScenes } from './deploy-cases.ts';
import { interruptionScenes } from './interruption-cases.ts';

export type { RunsConformanceSetup, RunsFault, RunsStage } from './bench.ts';
export { runsConformanceAgents, type AgentsVersion, type Tell } from './travel-agent.ts';

const setupSchema = z.strictObject({
  name: z.string(),
  shows: z.array(z.enum(['program_dies', 'worker_dies', 'engine_dies'])),
  isEngine: z.boolean(),
  deletes: z.boolean().optional(),
  deploys: z.boolean().optional(),
  sharesWork: z.boolean().optional(),
  passesTime: z.boolean().optional(),
  patience: z.number().int().min(1).optional(),
  moment: aFunction.optional(),
  pass: aFunction.optional(),
  open: aFunction,
} satisfies ChecksOf<RunsConformanceSetup>);

/**
 * The cases that runs with an id must pass, both in process and on an engine. Each case has its own stage.
 *
 * ```ts
 * for (const { name, run, skipped } of runsConformance(setup)) test.skipIf(skipped !== null)(name, run);
 * ```
 * @throws {ConfigurationError} `INVALID_OPTION` if the setup is invalid.
 */
export function runsConformance(setup: RunsConformanceSetup): readonly ConformanceCase[] {
  check('runsConformance(setup)', setupSchema, setup);
  const can = [
    ...setup.shows,
    ...(setup.isEngine ? ['engine'] : []),
    ...(setup.deletes === true ? ['deletes'] : []),
    ...(setup.deploys === true ? ['deploys'] : []),
    ...(setup.sharesWork === false ? [] : ['sharesWork']),
    ...(setup.passesTime === false ? [] : ['passesTime']),
  ];
  return [...runsScenes, ...interruptionScenes, ...messageScenes, ...deployScenes].map(
    ({ name, needs = [], play }) => ({
      name,
      skipped: skippedFor(setup.name, can, needs),
      async run() {
        const bench = new RunsBench(setup);
        await bench.open();
        try {
          await play(bench);
        } finally {
          await bench.close();
        }
      },
    }),
  );
}
