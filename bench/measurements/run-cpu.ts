// CPU time of one run of three steps and two tool calls: alone, and 100 at once. Compared with the AI SDK's loop, and
// with the runner of OpenAI Agents, which has no journal and no parked runs.

import type { ToolSet } from 'ai';
import { createRuntime } from '../../src/index.ts';
import { runSubagent } from '../../src/actors/subagents/run-subagent.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';
import { agentsRun } from '../lib/openai-agents.ts';
import { collectGarbage, cpuMicroseconds } from '../lib/process.ts';
import { bareRun, INSTRUCTIONS, rawTools, TASK, tripModel, wrappedTools } from '../lib/workload.ts';

/** Enough runs for V8 to compile the code of every contender. */
const WARM_UP_RUNS = 2500;
const MEASURED_RUNS = 2000;

async function cpuPerRun(n: number, run: () => Promise<string>): Promise<Numbers> {
  const round = async (): Promise<void> => {
    const texts = await Promise.all(Array.from({ length: n }, run));
    if (texts.some((words) => !words.startsWith('Sunny'))) throw new Error('A run went wrong');
  };
  for (let done = 0; done < WARM_UP_RUNS; done += n) await round();
  await collectGarbage();
  const before = cpuMicroseconds();
  for (let done = 0; done < MEASURED_RUNS; done += n) await round();
  return { cpu: (cpuMicroseconds() - before) / MEASURED_RUNS };
}

function offstage(n: number): Promise<Numbers> {
  const runtime = createRuntime({ maxTotalActive: 1000 });
  const config = { name: 'planner', instructions: INSTRUCTIONS, tools: rawTools };
  return cpuPerRun(n, async () => {
    const { result } = runSubagent(config, TASK, { runtime, model: tripModel });
    return (await result).text;
  });
}

const bare = (tools: ToolSet) => (n: number) => cpuPerRun(n, () => bareRun(tools));

export const runCpu: Measurement = {
  contenders: {
    offstage,
    floor: bare(rawTools),
    floor_wrapped: bare(wrappedTools),
    openai_agents: (n) => cpuPerRun(n, agentsRun),
  },
  sizes: [1, 100],
  repetitions: 7,
  lines: [
    { figure: 'run_cpu', unit: 'us', number: 'cpu', floor: 'floor', goal: null },
    {
      figure: 'run_cpu_wrapped',
      unit: 'us',
      number: 'cpu',
      floor: 'floor_wrapped',
      goal: { ratio: 1.8 },
    },
    {
      figure: 'run_cpu_openai_agents',
      unit: 'us',
      number: 'cpu',
      floor: 'openai_agents',
      goal: { ratio: 1 },
    },
  ],
};
