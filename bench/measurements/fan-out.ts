// Wall time for each child of a fan-out: a program spawns n subagents at once and gathers their outcomes; or one
// parent calls n subagents as tools, a thousand in a step, and continues when all have answered.

import { generateText, isStepCount, Output, tool, type ToolSet } from 'ai';
import { z } from 'zod';
import { createRuntime, createSubAgentTool } from '../../src/index.ts';
import { subAgentTools } from '../../src/entries/subagents.ts';
import { runSubagent } from '../../src/actors/subagents/run-subagent.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';
import { collectGarbage } from '../lib/process.ts';
import {
  bareRun,
  call,
  INSTRUCTIONS,
  model,
  rawTools,
  stepsDone,
  stepsTo,
  TASK,
  text,
  tripModel,
  wrappedTools,
  type Model,
} from '../lib/workload.ts';

const WARM_UP_RUNS = 2500;
const LEAST_RUNS = 2000;

/** Measures `gather`, which runs this many children and resolves when all have answered. */
async function wallPerChild(
  n: number,
  gather: (count: number) => Promise<unknown>,
): Promise<Numbers> {
  for (let done = 0; done < WARM_UP_RUNS; done += Math.min(n, 100)) await gather(Math.min(n, 100));
  await collectGarbage();
  const rounds = Math.ceil(LEAST_RUNS / n);
  const begin = performance.now();
  for (let round = 0; round < rounds; round += 1) await gather(n);
  return { wall: ((performance.now() - begin) * 1000) / (rounds * n) };
}

const atOnce = (run: () => Promise<unknown>) => (count: number) =>
  Promise.all(Array.from({ length: count }, run));

function offstage(n: number): Promise<Numbers> {
  const runtime = createRuntime({ maxTotalActive: 10_000 });
  const config = { name: 'planner', instructions: INSTRUCTIONS, tools: rawTools };
  const run = () => runSubagent(config, TASK, { runtime, model: tripModel }).result;
  return wallPerChild(n, atOnce(run));
}

export const fanOut: Measurement = {
  contenders: {
    offstage,
    floor: (n) =>
      wallPerChild(
        n,
        atOnce(() => bareRun(rawTools)),
      ),
  },
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

const inputSchema = z.object({ day: z.number() });
const outputSchema = z.object({ plan: z.string() });
const childModel = model(stepsTo('{"plan":"Sunny; take the train at nine."}'));

/** The most children that a parent has at once: a scope allows no more waits. */
const MOST_AT_ONCE = 1000;
const stepsFor = (count: number): number => Math.ceil(count / MOST_AT_ONCE) + 1;

/** A model that calls the tool this many times, a thousand in a step, and then says how many results are plans. */
function parentModel(toolName: string, count: number): Model {
  return model((prompt) => {
    const left = count - stepsDone(prompt) * MOST_AT_ONCE;
    if (left > 0)
      return Array.from({ length: Math.min(left, MOST_AT_ONCE) }, (_, day) =>
        call(toolName, { day }),
      );
    let plans = 0;
    for (const message of prompt)
      if (message.role === 'tool')
        for (const part of message.content) if (JSON.stringify(part).includes('Sunny')) plans += 1;
    return [text(`${plans} plans`)];
  });
}

const PARENT = 'You have a day planned by each of your planners.';

function checkAll(words: string, count: number): void {
  if (words !== `${count} plans`) throw new Error(`Expected ${count} plans, got ${words}`);
}

function offstageChildren(n: number): Promise<Numbers> {
  const runtime = createRuntime({ maxTotalActive: 20_000 });
  const planner = createSubAgentTool(
    {
      name: 'planner',
      instructions: INSTRUCTIONS,
      tools: rawTools,
      outputSchema,
      model: childModel,
    },
    inputSchema,
  );
  const config = {
    name: 'agency',
    instructions: PARENT,
    tools: subAgentTools(planner),
    maxSteps: stepsFor(n),
  };
  return wallPerChild(n, async (count) => {
    const chosen = parentModel('subagent__planner', count);
    const { text: words } = await runSubagent(config, TASK, { runtime, model: chosen }).result;
    checkAll(words, count);
  });
}

/** `generateText` whose tool is `generateText`. */
const bareChildren = (tools: ToolSet) => (n: number) => {
  const planner = tool({
    description: 'Handler a task to the planner',
    inputSchema,
    execute: async ({ day }) => {
      const { output } = await generateText({
        model: childModel,
        instructions: INSTRUCTIONS,
        prompt: `Execute the task: day ${day}`,
        tools,
        output: Output.object({ schema: outputSchema }),
        stopWhen: isStepCount(5),
      });
      return output;
    },
  });
  return wallPerChild(n, async (count) => {
    const { text: words } = await generateText({
      model: parentModel('planner', count),
      instructions: PARENT,
      prompt: TASK,
      tools: { planner },
      stopWhen: isStepCount(stepsFor(count)),
    });
    checkAll(words, count);
  });
};

export const fanOutChildren: Measurement = {
  contenders: {
    offstage: offstageChildren,
    floor: bareChildren(rawTools),
    floor_wrapped: bareChildren(wrappedTools),
  },
  sizes: [1, 10, 100, 1000, 10_000],
  repetitions: 5,
  lines: [
    {
      figure: 'fan_out_children',
      unit: 'us/child',
      number: 'wall',
      floor: 'floor',
      goal: { ratio: 1.5 },
    },
    {
      figure: 'fan_out_children_wrapped',
      unit: 'us/child',
      number: 'wall',
      floor: 'floor_wrapped',
      goal: null,
    },
  ],
};
