// A subagent that may look up an order on its own, but refunds money only if the user approves that call.

import { tool } from 'ai';
import { defineSubagent } from 'offstage';
import { z } from 'zod';
import type { Workshop } from './workshop.ts';

export function refundClerk({ world, work }: Workshop) {
  return defineSubagent({
    name: 'refund_clerk',
    title: ({ orderId }) =>
      typeof orderId === 'string' ? `A refund of order ${orderId}` : 'A refund of the latest order',
    instructions: [
      'You refund orders. Steps:',
      '1. Call find_order with the number of the order, or without one for the latest.',
      '2. Call refund with its number and what was paid. The user is asked, and may change the amount; do not ask yourself.',
      '3. Answer with one sentence to the user: what was refunded, and how much.',
      'If the order is not there, was refunded before, or the user does not allow it, refund nothing and say so.',
    ].join('\n'),
    tools: {
      find_order: {
        ...tool({
          description: 'Looks up an order, and what was paid for it.',
          inputSchema: z.object({ order: z.string().optional().describe('Its number') }),
          async *execute({ order }, { abortSignal }) {
            yield { progress: 'Looking up the order' };
            await work(1200, abortSignal);
            yield { found: world.order(order) };
          },
        }),
        idempotent: true,
      },
      refund: {
        ...tool({
          description: 'Gives the money of an order back.',
          inputSchema: z.object({ order: z.string(), dollars: z.number().positive() }),
          async *execute({ order, dollars }, { abortSignal }) {
            yield { progress: 'Giving the money back' };
            await work(1200, abortSignal);
            yield world.refund(order, dollars);
          },
        }),
        approvalQuestion: ({ order, dollars }: { order: string; dollars: number }) =>
          `May I refund ${dollars} dollars for order ${order}?`,
        // The user may approve all refunds in this conversation, and may revoke that approval later.
        lasting: { free: ['order', 'dollars'] },
      },
    },
    // The user sees the arguments, and approves only this one call unless they say otherwise or press another button.
    toolApproval: { refund: 'user-approval' },
    maxSteps: 5,
    timeout: 300_000,
  });
}
