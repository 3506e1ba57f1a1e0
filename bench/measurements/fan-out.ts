// A program spawns n subagents at once and gathers their outcomes: wall time for each.

import { createRuntime } from '../../src/index.ts';
import { runSubagent } from '../../src/actors/subagents/run-subagent.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';
import { collectGarbage } from '../lib/process.ts';
import { bareRun, INSTRUCTIONS, rawTools, TASK, tripModel } from '../lib/workload.ts';

const WARM_UP_RUNS = 2500;
const LEAST_RUNS = 2000;

async function wallPerChild(n: number, run: () => Promise<string>): Promise<Numbers> {
  const gather = (count: number) => Promise.all(Array.from({ length: count }, run));
  for (let done = 0; done < WARM_UP_RUNS; done += Math.min(n, 100)) await gather(Math.min(n, 100));
  await collectGarbage();
  const rounds = Math.ceil(LEAST_RUNS / n);
  const begin = performance.now();
  for (let round = 0; round < rounds; round += 1) await gather(n);
  return { wall: ((performance.now() - begin) * 1000) / (rounds * n) };
}

function offstage(n: number): Promise<Numbers> {
  const runtime = createRuntime({ maxTotalActive: 10_000 });
  const config = { name: 'planner', instructions: INSTRUCTIONS, tools: rawTools };
  return wallPerChild(n, async () => {
    const { result } = runSubagent(config, TASK, { runtime, model: tripModel });
    return (await result).text;
  });
}

export const fanOut: Measurement = {
  contenders: { offstage, floor: (n) => wallPerChild(n, () => bareRun(rawTools)) },
  sizes: [1, 10, 100, 1000, 10_000],
  repetitions: 5,
  lines: [
    {
      figure: 'fan_out',
      unit: 'us/child',
      number: 'wall',
      floor: 'floor',
      goal: { ratio: 1.5 },
    },
  ],
};
