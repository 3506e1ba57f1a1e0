// Programs with subagents and without a session, on scripted models, for tests of the tools that let agents work with
// other agents.

import { generateText, isStepCount, type ToolSet } from 'ai';
import { z } from 'zod';
import {
  createSubagentService,
  type SubagentServiceOptions,
} from '../../src/actors/subagents/subagent-service.ts';
import { createRuntime, type SubagentConfig } from '../../src/index.ts';
import {
  scriptedModel,
  simulatedEnvironment,
  type ScriptedModelOptions,
  type ScriptedStep,
} from '../../src/testing/index.ts';

export interface ProgramOptions extends Partial<SubagentServiceOptions> {
  readonly maxTotalActive?: number;
}

/** The number of event loop turns that one step of an AI SDK agent may need. */
const BUSY_TURNS = 10;

/** Creates a service and a model on which each agent follows the script with its name. */
export function program(
  agents: NonNullable<ScriptedModelOptions['agents']>,
  { maxTotalActive, ...options }: ProgramOptions = {},
) {
  const environment = simulatedEnvironment();
  const runtime = createRuntime({
    environment,
    ...(maxTotalActive === undefined ? {} : { maxTotalActive }),
  });
  const model = scriptedModel({ agents, environment });
  const errors: unknown[] = [];
  const service = createSubagentService({
    runtime,
    model,
    onError: (error) => errors.push(error),
    ...options,
  });
  return {
    environment,
    runtime,
    model,
    service,
    errors,
    /** Runs an AI SDK agent called `planner` outside any session and returns the outputs of its tools. */
    async plan(tools: object, abortSignal?: AbortSignal) {
      const running = generateText({
        model,
        instructions: 'You are the planner.',
        prompt: 'Go',
        tools: tools as ToolSet,
        stopWhen: isStepCount(10),
        maxRetries: 0,
        ...(abortSignal ? { abortSignal } : {}),
      });
      let isOver = false;
      const over = (): void => {
        isOver = true;
      };
      running.then(over, over);
      for (let seconds = 0; seconds < 1000 && !isOver; seconds += 1) {
        // The planner is not part of the runtime, which therefore does not know how long the planner is busy.
        for (let turns = 0; turns < BUSY_TURNS && !isOver; turns += 1) await environment.settle();
        if (!isOver) await environment.advance(1000);
      }
      const { text, steps } = await running;
      const outputs = steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => output));
      return { text, outputs: outputs as unknown[] };
    },
  };
}

/** Returns a step that calls one tool. */
export const call = (name: string, input: object = {}, id?: string): ScriptedStep => ({
  calls: [{ name, input, ...(id === undefined ? {} : { id }) }],
});

/** A subagent whose result has the form `{ summary }`. */
export const summarizer = {
  name: 'summarizer',
  instructions: 'You are the summarizer.',
  outputSchema: z.object({ summary: z.string() }),
} satisfies SubagentConfig;

export const texts = z.object({ texts: z.array(z.string()) });

export const summaryOf = (summary: string): ScriptedStep => ({
  type: 'structured_output',
  output: { summary },
});
