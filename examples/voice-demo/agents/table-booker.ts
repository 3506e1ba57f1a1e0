// A second interactive subagent, so that two subagents can have a question for the user at the same time.

import { tool } from 'ai';
import { defineSubagent } from 'offstage';
import { z } from 'zod';
import type { Workshop } from './workshop.ts';

export function tableBooker({ world, work }: Workshop) {
  return defineSubagent({
    name: 'table_booker',
    title: ({ partySize }) => `A table for ${String(partySize)}`,
    instructions: [
      'You reserve tables in restaurants for tonight. Steps:',
      '1. Call find_tables with the number of guests.',
      '2. Call ask_user once to let the user pick. Give one option for each restaurant, with its time',
      '   in the description. The question says for how many, in one sentence.',
      '3. Call reserve_table with the number of guests and the id of the chosen table.',
      '4. Answer with one sentence to the user: restaurant, time and number of guests.',
      'If the user did not respond, ask once more. If the user wants none of them, reserve nothing and say so.',
    ].join('\n'),
    tools: {
      find_tables: {
        ...tool({
          description: 'Looks for free tables tonight.',
          inputSchema: z.object({ partySize: z.number().int().describe('Number of guests') }),
          async *execute({ partySize }, { abortSignal }) {
            yield { progress: 'Calling restaurants' };
            await work(2000, abortSignal);
            yield { partySize, tables: world.findTables(partySize) };
          },
        }),
        idempotent: true,
      },
      reserve_table: tool({
        description: 'Reserves one of the tables that find_tables gave.',
        inputSchema: z.object({
          partySize: z.number().int(),
          tableId: z.string().describe('The id of the table'),
        }),
        async *execute({ partySize, tableId }, { abortSignal }) {
          yield { progress: 'Reserving the table' };
          await work(1200, abortSignal);
          yield world.bookTable(partySize, tableId);
        },
      }),
    },
    interactive: true,
    maxSteps: 10,
    timeout: 300_000,
  });
}
