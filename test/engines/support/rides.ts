// A subagent that asks a question, looks something up and charges a card. It reports every model call and tool call
// to the world, which counts them and can make them wait.

import { tool } from 'ai';
import { z } from 'zod';
import { defineSubagent } from '../../../src/index.ts';
import { scriptedModel } from '../../../src/testing/index.ts';

async function ask(world: string, what: string): Promise<unknown> {
  const response = await fetch(`${world}/${what}`, { method: 'POST', body: what });
  return response.json();
}

export const rides = (world: string) =>
  defineSubagent({
    name: 'rides',
    instructions: 'You book rides.',
    runs: 'jobs',
    interactive: true,
    inputTimeout: 600_000,
    tools: {
      look_up: {
        ...tool({
          description: 'Looks something up',
          inputSchema: z.object({}),
          execute: () => ask(world, 'look_up'),
        }),
        idempotent: true,
      },
      charge: tool({
        description: 'Charges the card',
        inputSchema: z.object({ dollars: z.number() }),
        execute: () => ask(world, 'charge'),
      }),
    },
  });

/** The model needs no memory, because the answers in its prompt show which step is next. */
export const ridesModel = (world: string) =>
  scriptedModel({
    otherwise: async ({ prompt, results }) => {
      const turn = prompt.filter(({ role }) => role === 'assistant').length + 1;
      await ask(world, `model-${turn}`);
      if (turn === 1) return { calls: [{ name: 'look_up', input: {}, id: 'call_1' }] };
      if (turn === 2)
        return { calls: [{ name: 'ask_user', input: { question: 'Which?' }, id: 'call_2' }] };
      if (turn === 3) return { calls: [{ name: 'charge', input: { dollars: 7 }, id: 'call_3' }] };
      return { text: `Done: ${JSON.stringify(results[0])}` };
    },
  });
