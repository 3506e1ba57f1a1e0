// Crashes one conversation at every possible place: before and after each entry that is appended to the
// journal. For short scenarios.

import type { FaultPlan } from './log/fault-points.ts';
import {
  simulate,
  simulateOnce,
  type SimulationOptions,
  type SimulationReport,
} from './simulate.ts';

export interface CrashEverywhereOptions extends SimulationOptions {
  /** @defaultValue 1 */
  readonly seed?: number;
  /** The faults beside the crash. @defaultValue nothing */
  readonly faults?: FaultPlan;
}

/**
 * Plays the scenario once, counts its appends, and plays it again twice for each of them: with a
 * crash just before the entry is kept, and with one just after.
 * @throws {SimulationError} for the first place at which a promise is broken.
 */
export async function crashEverywhere({
  seed = 1,
  faults = {},
  ...options
}: CrashEverywhereOptions): Promise<SimulationReport & { readonly appends: number }> {
  const scenario = { ...options, generate: { disasters: false, ...options.generate } };
  const { record } = await simulateOnce(seed, { ...scenario, faults });
  let runs = 0;
  let report: SimulationReport | null = null;
  for (let nth = 1; nth <= record.appends; nth += 1)
    for (const point of ['crash.beforeAppend', 'crash.afterAppend'] as const) {
      const plan = { ...faults, [point]: { at: [nth] } };
      report = await simulate({ ...scenario, seed, faults: plan });
      runs += report.runs;
    }
  const { work } = report ?? (await simulate({ ...scenario, seed, faults }));
  return { runs, work, appends: record.appends };
}
