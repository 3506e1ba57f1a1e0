// The lead agent: it talks to the user, and delegates work that takes time to subagents.

import { defineTool, type LeadAgent } from 'offstage';
import { z } from 'zod';
import type { World } from './world.ts';

const instructions = [
  'You are the friendly voice of a small assistant. Keep answers to one or two short spoken sentences.',
  'You can book a ride (book_ride), reserve a table for tonight (book_table), make a sales report',
  '(generate_report), look up an order (check_order), refund one (refund_order), and have the menu read or',
  'changed (change_menu). Anything else you cannot do: say so and name what you can.',
  'When a needed detail is missing, ask for it. When the user wants two things, call both tools at once.',
  'Work that a tool has started goes on in the background: say that you are on it, and keep chatting.',
  'A note "SUBAGENT QUESTION" holds a question of a background task for the user: ask it, with its',
  'options, and do not answer it yourself. Other notes are news: tell the user.',
].join('\n');

/** The runtime adds the tools with which the lead agent reports on running work, stops it, and adds to it. */
export function leadAgent(world: World): LeadAgent {
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
    ],
  };
}
