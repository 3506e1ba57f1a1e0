// The demo's subagents: the rules, their real tools, and a user who answers.

import { generateText, isStepCount, tool, zodSchema, type ToolSet } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { refundClerk } from '../../../../examples/voice-demo/agents/refund-clerk.ts';
import { reportGenerator } from '../../../../examples/voice-demo/agents/report-generator.ts';
import { rideBooker } from '../../../../examples/voice-demo/agents/ride-booker.ts';
import { tableBooker } from '../../../../examples/voice-demo/agents/table-booker.ts';
import { createWorkshop } from '../../../../examples/voice-demo/agents/workshop.ts';
import { createWorld } from '../../../../examples/voice-demo/agents/world.ts';
import { ruleModel } from '../../../../examples/voice-demo/rules/rule-model.ts';
import {
  buildContextSnapshot,
  openingMessages,
  systemPrompt,
} from '../../../../src/actors/context/context-snapshot.ts';
import { ConversationLog } from '../../../../src/actors/conversation/conversation.ts';
import { NoteMarks } from '../../../../src/actors/notes/note-marks.ts';
import type { SubagentConfig } from '../../../../src/index.ts';
import { hastyEnvironment } from '../support.ts';

const environment = hastyEnvironment();
const workshop = () => createWorkshop(environment, createWorld());

interface Asked {
  readonly question: string;
  readonly options?: readonly { readonly id: string; readonly label: string }[];
}

async function run(
  config: Pick<SubagentConfig, 'instructions' | 'toolApproval'> & {
    readonly tools: ToolSet;
    readonly maxSteps: number;
  },
  task: string,
  args: Readonly<Record<string, unknown>>,
  answers: readonly Readonly<Record<string, unknown>>[] = [],
) {
  const asked: Asked[] = [];
  const left = [...answers];
  const ask_user = tool({
    description: 'Asks the user.',
    inputSchema: zodSchema(
      z.object({
        question: z.string(),
        options: z
          .array(
            z.object({ id: z.string(), label: z.string(), description: z.string().optional() }),
          )
          .optional(),
      }),
    ),
    execute: (question) => {
      asked.push(question);
      return left.shift() ?? { error: 'The user did not respond in time.' };
    },
  });
  const snapshot = buildContextSnapshot({
    task: { toolName: task, args },
    instructions: config.instructions,
    conversation: ConversationLog.empty(),
  });
  const notes = new NoteMarks('a secret');
  const result = await generateText({
    model: ruleModel({ environment }),
    instructions: systemPrompt(snapshot, { asksUser: true, asksApproval: false }, notes),
    messages: openingMessages(snapshot, notes),
    ...(config.toolApproval && { toolApproval: config.toolApproval }),
    tools: { ...config.tools, ask_user },
    stopWhen: isStepCount(config.maxSteps),
  });
  const calls = result.steps.flatMap(({ toolCalls }) =>
    toolCalls.map(({ toolName, input }) => ({ toolName, input })),
  );
  return { text: result.text, asked, calls, names: calls.map(({ toolName }) => toolName) };
}

describe('ride_booker', () => {
  const ride = (...answers: Readonly<Record<string, unknown>>[]) =>
    run(rideBooker(workshop()), 'book_ride', { destination: 'the airport' }, answers);

  test("searches for rides, asks the user, books the choice and reports the tool's result", async () => {
    const { text, asked, calls } = await ride({ userResponse: 'Economy', optionId: 'economy' });
    expect(calls.map(({ toolName }) => toolName)).toEqual([
      'get_ride_options',
      'ask_user',
      'confirm_ride',
    ]);
    expect(asked[0]?.options?.map(({ label }) => label)).toEqual(['Economy', 'Premium']);
    expect(calls[2]?.input).toEqual({ destination: 'the airport', rideId: 'economy' });
    expect(text).toBe(
      'Your Economy ride to the airport is booked. Anna comes in 5 minutes in a blue Toyota, for $12.',
    );
  });

  test('uses the price that the tool returns, and does not make one up', async () => {
    const { text } = await run(
      rideBooker(workshop()),
      'book_ride',
      { destination: 'the station' },
      [{ userResponse: 'premium please' }],
    );
    expect(text).toContain('Premium ride to the station');
    expect(text).toContain('$10');
  });

  test('asks again if the user does not respond', async () => {
    const { asked, text } = await ride(
      { error: 'The user did not respond in time.' },
      { userResponse: 'the premium one' },
    );
    expect(asked.map(({ question }) => question)).toEqual([
      'Which ride to the airport would you like?',
      'Are you still there? Which ride to the airport would you like?',
    ]);
    expect(text).toContain('Premium');
  });

  test('asks again if the answer matches no option', async () => {
    const { asked } = await ride({ userResponse: 'purple' }, { optionId: 'economy' });
    expect(asked[1]?.question).toContain('"purple"');
  });

  test('makes no booking if the user declines', async () => {
    const { names, text } = await ride({ userResponse: 'no, neither of them' });
    expect(names).not.toContain('confirm_ride');
    expect(text).toBe('All right, no ride to the airport then.');
  });
});

describe('table_booker', () => {
  test('asks for the table and reserves it', async () => {
    const { names, text } = await run(tableBooker(workshop()), 'book_table', { partySize: 2 }, [
      { userResponse: 'French, please' },
    ]);
    expect(names).toEqual(['find_tables', 'ask_user', 'reserve_table']);
    expect(text).toBe('Your table for 2 at the French is reserved for 8:30 PM, in the garden.');
  });

  test('explains why no table is available', async () => {
    const { text, asked } = await run(tableBooker(workshop()), 'book_table', { partySize: 30 });
    expect(asked).toEqual([]);
    expect(text).toBe('There is no table: The largest table seats 8, and you are 30.');
  });
});

describe('report_generator', () => {
  test('queries both periods in one step and reports their figures', async () => {
    const { text, calls } = await run(reportGenerator(workshop()), 'generate_report', {
      dateRange: 'last week',
    });
    expect(calls).toEqual([
      { toolName: 'resolve_dates', input: { dateRange: 'last week' } },
      { toolName: 'query_analytics', input: { from: '2026-11-09', to: '2026-11-15' } },
      { toolName: 'query_analytics', input: { from: '2026-11-02', to: '2026-11-08' } },
    ]);
    const sales = createWorld().sales('2026-11-09', '2026-11-15');
    const before = createWorld().sales('2026-11-02', '2026-11-08');
    const percent = Math.round(Math.abs(sales.revenueUsd / before.revenueUsd - 1) * 100);
    expect(text).toContain(`$${sales.revenueUsd.toLocaleString('en-US')}`);
    expect(text).toContain(`${sales.orders} orders`);
    expect(text).toContain(`${percent}% ${sales.revenueUsd > before.revenueUsd ? 'more' : 'less'}`);
  });

  test('reports an unknown period', async () => {
    const { text, names } = await run(reportGenerator(workshop()), 'generate_report', {
      dateRange: 'someday',
    });
    expect(names).toEqual(['resolve_dates']);
    expect(text).toContain('I do not know the period "someday"');
  });
});

describe('refund_clerk', () => {
  test('looks up the order first and then asks for approval of exactly that refund', async () => {
    const { calls, text } = await run(refundClerk(workshop()), 'refund_order', {});
    expect(calls).toEqual([
      { toolName: 'find_order', input: {} },
      { toolName: 'refund', input: { order: '1042', dollars: 640 } },
    ]);
    expect(text).toBe('');
  });

  test('makes no refund without an order', async () => {
    const { names, text } = await run(refundClerk(workshop()), 'refund_order', { orderId: '9' });
    expect(names).toEqual(['find_order']);
    expect(text).toBe("I can't find that order, so there is nothing to refund.");
  });
});

test('refuses an unknown task and says so', async () => {
  const { text } = await run({ instructions: '', tools: {}, maxSteps: 2 }, 'fly_to_mars', {});
  expect(text).toBe('I don\'t know how to do "fly_to_mars".');
});
