// The work of every contender: three steps and two tool calls, on a model that takes no time (or a chosen time).

import { generateText, isStepCount, tool, zodSchema, type LanguageModel, type ToolSet } from 'ai';
import { z } from 'zod';

export type Model = Extract<LanguageModel, { specificationVersion: 'v4' }>;
type Prompt = Parameters<Model['doGenerate']>[0]['prompt'];
type Answer = Awaited<ReturnType<Model['doGenerate']>>;
type Content = Answer['content'];

export const INSTRUCTIONS = 'You plan trips. Look up the weather first, then the trains.';
export const TASK = 'Plan a day in Lausanne for two people.';

const usage: Answer['usage'] = {
  inputTokens: { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 20, text: 20, reasoning: 0 },
};

/** A model that answers by a rule and keeps no state. */
export function model(
  respond: (prompt: Prompt) => Content | Promise<Content>,
  doStream: Model['doStream'] = () => Promise.reject(new Error('This model does not stream')),
): Model {
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'bench',
    supportedUrls: {},
    async doGenerate({ prompt }) {
      const content = await respond(prompt);
      const unified = content.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop';
      return { content, finishReason: { unified, raw: unified }, usage, warnings: [] };
    },
    doStream,
  };
}

let calls = 0;

export function call(toolName: string, input: object): Content[number] {
  calls += 1;
  return {
    type: 'tool-call',
    toolCallId: `call_${calls}`,
    toolName,
    input: JSON.stringify(input),
  };
}

export const text = (words: string): Content[number] => ({ type: 'text', text: words });

/** Returns the number of steps that the prompt contains. */
export function stepsDone(prompt: Prompt): number {
  let steps = 0;
  for (const { role } of prompt) if (role === 'tool') steps += 1;
  return steps;
}

/** The calls of the first steps, one in each. */
export const toolCalls: readonly { readonly toolName: string; readonly input: object }[] = [
  { toolName: 'get_weather', input: { city: 'Lausanne', unit: 'celsius' } },
  { toolName: 'find_trains', input: { from: 'Geneva', to: 'Lausanne' } },
];

/** The answer of the last step. */
export const THE_PLAN = 'Sunny; take the train at nine.';

/** Answers with two calls, then with these words. */
export const stepsTo =
  (words: string) =>
  (prompt: Prompt): Content => {
    const next = toolCalls[stepsDone(prompt)];
    return [next ? call(next.toolName, next.input) : text(words)];
  };

export const threeSteps = stepsTo(THE_PLAN);

export const tripModel: Model = model(threeSteps);

const weather = z.object({
  city: z.string().describe('The name of the city'),
  unit: z.enum(['celsius', 'fahrenheit']),
});
const trains = z.object({ from: z.string(), to: z.string() });
const table = z.object({ restaurant: z.string(), people: z.number() });

/** The tools, independent of any library. */
export const work = {
  get_weather: {
    description: 'The weather of a day',
    schema: weather,
    execute: ({ city, unit }: z.infer<typeof weather>) => ({
      city,
      unit,
      degrees: 21,
      sky: 'clear',
    }),
  },
  find_trains: {
    description: 'Trains between two cities',
    schema: trains,
    execute: ({ from, to }: z.infer<typeof trains>) => [
      { from, to, departs: '09:00', arrives: '09:42' },
    ],
  },
  reserve_table: {
    description: 'Reserves a table in a restaurant',
    schema: table,
    execute: ({ restaurant }: z.infer<typeof table>) => `A table at ${restaurant}`,
  },
};

const { get_weather, find_trains, reserve_table } = work;

/** The tools with zod schemas, as users write them. */
export const rawTools = {
  get_weather: tool({ ...get_weather, inputSchema: weather }),
  find_trains: tool({ ...find_trains, inputSchema: trains }),
  reserve_table: tool({ ...reserve_table, inputSchema: table }),
};

/** The same tools with a JSON Schema that was made once. */
export const wrappedTools = {
  get_weather: { ...rawTools.get_weather, inputSchema: zodSchema(weather) },
  find_trains: { ...rawTools.find_trains, inputSchema: zodSchema(trains) },
  reserve_table: { ...rawTools.reserve_table, inputSchema: zodSchema(table) },
};

/** The floor: the AI SDK's loop. */
export async function bareRun(tools: ToolSet, chosen: Model = tripModel): Promise<string> {
  const { text: words } = await generateText({
    model: chosen,
    instructions: INSTRUCTIONS,
    prompt: TASK,
    tools,
    stopWhen: isStepCount(5),
  });
  return words;
}
