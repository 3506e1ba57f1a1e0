// The lead agent: it talks to the user, and gives work that takes time to subagents.

import { defineTool, type LeadAgent, type SessionState, type SubagentView } from 'offstage';
import { z } from 'zod';
import type { World } from './world.ts';

const instructions = [
  'You are the friendly voice of a small assistant. Keep answers to one or two short spoken sentences.',
  'You can book a ride (book_ride), reserve a table for tonight (book_table), make a sales report',
  '(generate_report), look up an order (check_order), refund one (refund_order), have the menu read or',
  'changed (change_menu), say how running work is going (check_progress) and stop it (cancel_work). Anything else you cannot do: say so and name what you can.',
  'When a needed detail is missing, ask for it. When the user wants two things, call both tools at once.',
  'Work that a tool has started goes on in the background: say that you are on it, and keep chatting.',
  'A note "SUBAGENT QUESTION" holds a question of a background task for the user: ask it, with its',
  'options, and do not answer it yourself. Other notes are news: tell the user.',
].join('\n');

/** Running work, as a tool describes it to the lead agent. */
export interface RunningWork {
  readonly work: string;
  readonly doing: string;
}

/** The part of a session that the lead agent's tools use. */
export interface LeadSession {
  readonly store: { getSnapshot(): { readonly context: SessionState } };
  readonly subagents: {
    list(): readonly SubagentView[];
    cancel(id: string, reason: string): unknown;
  };
}

export function leadAgent(world: World, session: () => LeadSession): LeadAgent {
  const running = (): readonly SubagentView[] =>
    session()
      .subagents.list()
      .filter(({ endedAt }) => endedAt === null);

  /** The ended subagents whose result the user has not heard to its end. */
  const untold = (): readonly SubagentView[] => {
    const { subagents, deliveries } = session().store.getSnapshot().context;
    const ids = new Set(
      deliveries
        .filter(({ kind, state }) => kind === 'result' && state !== 'delivered')
        .map(({ subagentId }) => subagentId),
    );
    return subagents.filter(({ id, endedAt }) => endedAt !== null && ids.has(id));
  };

  return {
    name: 'lead',
    instructions,
    greeting: 'Greet the user and say in one sentence what you can do.',
    tools: [
      defineTool({
        name: 'book_ride',
        description: 'Books a ride. Takes a while; the user will be asked which ride.',
        parameters: z.object({ destination: z.string().min(1).describe('Where to') }),
        execution: 'background',
        pendingMessage: "I'm on it. I'll find you a ride.",
      }),
      defineTool({
        name: 'book_table',
        description: 'Reserves a table for tonight. Takes a while; the user will be asked where.',
        parameters: z.object({ partySize: z.number().int().min(1).describe('Number of guests') }),
        execution: 'background',
        pendingMessage: "I'm looking for a table.",
      }),
      defineTool({
        name: 'generate_report',
        description: 'Makes a sales report for a date range. Takes a while.',
        parameters: z.object({
          dateRange: z.string().min(1).describe('e.g. "last 7 days", "Q4 2024"'),
        }),
        execution: 'background',
        pendingMessage: "I'm making the report now. I'll tell you when it's ready.",
      }),
      defineTool({
        name: 'check_order',
        description: 'The state of an order; without a number, of the latest one.',
        parameters: z.object({ orderId: z.string().optional() }),
        execution: 'inline',
        execute: ({ orderId }) => {
          const order = world.order(orderId);
          return order ? { order } : { unknownOrderId: orderId ?? null };
        },
      }),
      defineTool({
        name: 'refund_order',
        description:
          'Refunds an order; without a number, the latest one. Takes a while; the user will be asked to allow it.',
        parameters: z.object({ orderId: z.string().optional() }),
        execution: 'background',
        pendingMessage: "I'll look into the refund.",
      }),
      defineTool({
        name: 'change_menu',
        description:
          'Lets an agent read the menu, or put a dish on it. Takes a while; the user will be asked to allow the change.',
        parameters: z.object({
          task: z.string().min(1).describe('In the words of the user: "Put soup on the menu."'),
        }),
        execution: 'background',
        pendingMessage: "I've passed that on.",
      }),
      defineTool({
        name: 'check_progress',
        description:
          'What runs in the background, how far it is, and what is done but not told yet.',
        parameters: z.object({}),
        execution: 'inline',
        execute: (): { running: readonly RunningWork[]; untold: readonly string[] } => ({
          running: running().map((view) => ({ work: nameOf(view), doing: doing(view) })),
          untold: untold().map(nameOf),
        }),
      }),
      defineTool({
        name: 'cancel_work',
        description: 'Stops work in the background.',
        parameters: z.object({
          work: z
            .enum(['ride', 'table', 'report', 'refund', 'menu', 'everything', 'unclear'])
            .describe('What to stop; "unclear" when the user did not say'),
        }),
        execution: 'inline',
        execute: ({ work }) => {
          const all = running();
          const meant =
            work === 'everything' || (work === 'unclear' && all.length === 1)
              ? all
              : all.filter(({ toolName }) => toolName.includes(work));
          for (const { id } of meant) session().subagents.cancel(id, 'the user asked for it');
          const rest = all.filter((view) => !meant.includes(view));
          return { stopped: meant.map(nameOf), stillRunning: rest.map(nameOf) };
        },
      }),
    ],
  };
}

const workNames: Readonly<Record<string, string>> = {
  book_ride: 'the ride',
  book_table: 'the table',
  generate_report: 'the report',
  refund_order: 'the refund',
  change_menu: 'the menu',
};

/** The name of a subagent's work in conversation. */
export function nameOf({ toolName }: SubagentView): string {
  return workNames[toolName] ?? toolName;
}

function doing({ state, progress, step }: SubagentView): string {
  if (state === 'waiting_for_input') return 'waiting for your answer';
  if (state === 'ready' || state === 'spawning') return 'about to start';
  // Fits after "is": `reading sales, 40%`.
  if (progress) return progress.charAt(0).toLowerCase() + progress.slice(1);
  return `at step ${Math.max(1, step)}`;
}
