// The conformance suite for jobs: what a session relies on, whatever engine runs its steps.

import { z } from 'zod';
import { aFunction, check, type ChecksOf } from '../../../src/values/checks.ts';
import {
  skippedFor,
  type ConformanceCase,
} from '../../../src/testing/conformance/transport-conformance.ts';
import { JobsBench, type JobsScene } from './bench.ts';
import { jobsScenes } from './cases.ts';
import type { JobsConformanceSetup, JobsFault } from './stage.ts';

export type { JobsConformanceSetup, JobsFault, JobsStage } from './stage.ts';

const FAULTS = ['worker_dies', 'engine_dies', 'job_hangs', 'worker_refuses'] as const;

const setupSchema = z.strictObject({
  name: z.string(),
  shows: z.array(z.enum(FAULTS)),
  patience: z.number().int().min(1).optional(),
  moment: aFunction.optional(),
  open: aFunction,
} satisfies ChecksOf<JobsConformanceSetup>);

/**
 * The cases that an implementation of `Jobs` must pass. Each case has its own stage.
 *
 * ```ts
 * for (const { name, run, skipped } of jobsConformance(setup)) test.skipIf(skipped !== null)(name, run);
 * ```
 * @throws {ConfigurationError} `INVALID_OPTION` if the setup is invalid.
 */
export function jobsConformance(setup: JobsConformanceSetup): readonly ConformanceCase[] {
  check('jobsConformance(setup)', setupSchema, setup);
  return jobsScenes.map((scene) => ({
    name: scene.name,
    skipped: skippedFor(setup.name, setup.shows, (scene.needs ?? []).filter(isFault)),
    run: () => play(setup, scene),
  }));
}

function isFault(need: string): need is JobsFault {
  return (FAULTS as readonly string[]).includes(need);
}

/** Passes a case at once if the engine lacks an ability that the case requires. */
async function play(setup: JobsConformanceSetup, { needs = [], play: plot }: JobsScene) {
  const bench = new JobsBench(setup);
  await bench.open();
  try {
    const { keepsResults, forget } = bench.stage.jobs();
    if (needs.includes('keepsResults') && !keepsResults) return;
    if (needs.includes('forgets') && !forget) return;
    await plot(bench);
  } finally {
    await bench.stage.close?.();
  }
}
