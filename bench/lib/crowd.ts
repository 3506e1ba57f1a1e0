// Two hundred concurrent runs: each starts again when it has ended.

import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { createRuntime } from '../../src/index.ts';
import { runSubagent } from '../../src/actors/subagents/run-subagent.ts';
import {
  bareRun,
  INSTRUCTIONS,
  model,
  rawTools,
  TASK,
  threeSteps,
  type Model,
} from './workload.ts';

/** Gives the same answers as the other models, after 150 to 350 ms. */
export const pacedModel: Model = model(async (prompt) => {
  await sleep(150 + 200 * Math.random());
  return threeSteps(prompt);
});

export interface Crowd {
  /** Runs that have ended so far. */
  readonly ended: () => number;
}

function crowd(size: number, run: () => Promise<unknown>): Crowd {
  let ended = 0;
  const work = async (): Promise<void> => {
    for (;;) {
      await run();
      ended += 1;
      // Without this, bare runs on a model that takes no time would block the event loop.
      await turn();
    }
  };
  for (let number = 0; number < size; number += 1) void work();
  return { ended: () => ended };
}

export function subagentCrowd(size: number, chosen: Model): Crowd {
  const runtime = createRuntime({ maxTotalActive: 1000 });
  const config = { name: 'planner', instructions: INSTRUCTIONS, tools: rawTools };
  return crowd(size, () => runSubagent(config, TASK, { runtime, model: chosen }).result);
}

export const bareCrowd = (size: number, chosen: Model): Crowd =>
  crowd(size, () => bareRun(rawTools, chosen));
