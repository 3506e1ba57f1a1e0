// The lead agent talks to the user. The subagent works in the background, and asks the user when it needs an answer.

import { tool } from 'ai';
import { defineSubagent, defineTool, type LeadAgent } from 'offstage';
import { z } from 'zod';

export const rideOptions = [
  { id: 'economy', label: 'Economy', description: '$12, in 5 minutes' },
  { id: 'premium', label: 'Premium', description: '$24, in 3 minutes' },
];

export const lead: LeadAgent = {
  name: 'assistant',
  instructions: 'You are a friendly travel assistant. Be short.',
  tools: [
    // The subagent with the same name does the work.
    defineTool({
      name: 'book_ride',
      description: 'Book a ride for the user',
      parameters: z.object({ destination: z.string() }),
      execution: 'background',
      pendingMessage: 'I am looking for a ride. One moment.', // the lead agent says this meanwhile
    }),
  ],
};

export const subagentConfigs = {
  book_ride: defineSubagent({
    name: 'ride_booker',
    title: ({ destination }) => `A ride to ${String(destination)}`,
    instructions:
      'Get the options, let the user choose with ask_user, confirm, and say what is booked.',
    interactive: true, // it may ask the user
    tools: {
      get_ride_options: tool({
        description: 'List the rides that are available',
        inputSchema: z.object({ destination: z.string() }),
        execute: async () => rideOptions,
      }),
      confirm_ride: tool({
        description: 'Book the option that the user chose',
        inputSchema: z.object({ optionId: z.string() }),
        execute: async ({ optionId }) => ({ status: 'confirmed', optionId }),
      }),
    },
  }),
};
