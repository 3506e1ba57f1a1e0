// The workload of `workload.ts` on the runner of OpenAI Agents: the same three steps, tools and answers.

import {
  Agent,
  run,
  setTracingDisabled,
  tool,
  Usage,
  type Model,
  type ModelRequest,
  type ModelResponse,
} from '@openai/agents-core';
import { INSTRUCTIONS, TASK, THE_PLAN, toolCalls, work } from './workload.ts';

// The runner would send its traces to a server.
setTracingDisabled(true);

type Item = ModelResponse['output'][number];

let calls = 0;

function call(name: string, input: object): Item {
  calls += 1;
  return {
    type: 'function_call',
    callId: `call_${calls}`,
    name,
    arguments: JSON.stringify(input),
    status: 'completed',
  };
}

/** Returns the number of steps that the prompt contains. */
function stepsDone(input: ModelRequest['input']): number {
  if (typeof input === 'string') return 0;
  let steps = 0;
  for (const { type } of input) if (type === 'function_call_result') steps += 1;
  return steps;
}

function respond(input: ModelRequest['input']): Item {
  const next = toolCalls[stepsDone(input)];
  if (next) return call(next.toolName, next.input);
  return {
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: THE_PLAN }],
  };
}

/** Like the other models of the bench, it takes no time and keeps no state. */
const model: Model = {
  getResponse: ({ input }) =>
    Promise.resolve({
      usage: new Usage({ inputTokens: 100, outputTokens: 20, totalTokens: 120, requests: 1 }),
      output: [respond(input)],
    }),
  getStreamedResponse() {
    throw new Error('This model does not stream');
  },
};

const { get_weather, find_trains, reserve_table } = work;

const planner = new Agent({
  name: 'planner',
  instructions: INSTRUCTIONS,
  model,
  tools: [
    tool({ name: 'get_weather', parameters: get_weather.schema, ...get_weather }),
    tool({ name: 'find_trains', parameters: find_trains.schema, ...find_trains }),
    tool({ name: 'reserve_table', parameters: reserve_table.schema, ...reserve_table }),
  ],
});

export async function agentsRun(): Promise<string> {
  const { finalOutput = '' } = await run(planner, TASK, { maxTurns: 5 });
  return finalOutput;
}
