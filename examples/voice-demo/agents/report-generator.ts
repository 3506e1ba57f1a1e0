// A task subagent: it works for a while without asking anything, and returns a report.

import { tool } from 'ai';
import { defineSubagent } from 'offstage';
import { z } from 'zod';
import { parseDateRange, periodBefore } from './date-range.ts';
import type { Workshop } from './workshop.ts';

const QUERY_MS = 15_000;
const SLICES = 5;
const day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, 'expected a day as YYYY-MM-DD');

export function reportGenerator({ world, work, environment }: Workshop) {
  return defineSubagent({
    name: 'report_generator',
    title: ({ dateRange }) => `A sales report for ${String(dateRange)}`,
    instructions: [
      'You are a data analyst. Steps:',
      '1. Call resolve_dates with the date range as the user said it.',
      '2. Call query_analytics for that period and for the one before it, both in one step.',
      '3. Answer with a short report to the user in two to four sentences: revenue, orders, the change',
      '   against the period before, the best day and the best product. Use only numbers from the tools.',
      'A message may add a period, or name another one instead: do the same for it.',
    ].join('\n'),
    // These tools only read, so a stop never leaves their effect in doubt.
    tools: {
      resolve_dates: {
        ...tool({
          description: 'Turns words such as "last 7 days" or "Q4 2024" into days.',
          inputSchema: z.object({ dateRange: z.string() }),
          execute: async ({ dateRange }, { abortSignal }) => {
            await work(900, abortSignal);
            const period = parseDateRange(dateRange, environment.clock.now());
            if (!period) {
              throw new Error(
                `I do not know the period "${dateRange}". Try last week, a month, or a quarter.`,
              );
            }
            return { ...period, before: periodBefore(period) };
          },
        }),
        idempotent: true,
      },
      query_analytics: {
        ...tool({
          description: 'Sales of the days from `from` to `to`, both included.',
          inputSchema: z.object({ from: day, to: day }),
          async *execute({ from, to }, { abortSignal }) {
            // The days are read in slices, as a real query over many days would read them.
            for (let slice = 0; slice < SLICES; slice++) {
              yield { progress: `Reading sales, ${Math.round((slice / SLICES) * 100)}%` };
              await work(QUERY_MS / SLICES, abortSignal);
            }
            yield world.sales(from, to);
          },
        }),
        idempotent: true,
      },
    },
    maxSteps: 10,
    // If a report gets too expensive, the subagent returns the results so far.
    budget: { tokens: 50_000 },
    timeout: 120_000,
  });
}
