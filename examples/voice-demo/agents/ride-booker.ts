// An interactive subagent: it looks for rides, asks the user which one to take, and books it.

import { tool } from 'ai';
import { defineSubagent } from 'offstage';
import { z } from 'zod';
import type { Workshop } from './workshop.ts';

export function rideBooker({ world, work }: Workshop) {
  return defineSubagent({
    name: 'ride_booker',
    title: ({ destination }) => `A ride to ${String(destination)}`,
    instructions: [
      'You book rides. Steps:',
      '1. Call get_ride_options with the destination.',
      '2. Call ask_user once to let the user pick. Give one option for each ride, with price and',
      '   arrival time in its description. The question names the destination and is one sentence.',
      '3. Call confirm_ride with the destination and the id of the chosen ride.',
      '4. Answer with one or two sentences to the user: ride, price, driver, car and arrival time.',
      'If the user did not respond, ask once more. If the user wants none of them, book nothing and say so.',
    ].join('\n'),
    tools: {
      get_ride_options: {
        ...tool({
          description: 'Looks up the rides to a destination, with price and time until pick-up.',
          inputSchema: z.object({
            destination: z.string().describe('Where to, e.g. "the airport"'),
          }),
          async *execute({ destination }, { abortSignal }) {
            yield { progress: 'Asking drivers near you' };
            await work(1600, abortSignal);
            yield world.quoteRide(destination);
          },
        }),
        idempotent: true,
      },
      confirm_ride: tool({
        description: 'Books one of the rides that get_ride_options gave.',
        inputSchema: z.object({
          destination: z.string(),
          rideId: z.string().describe('The id of the ride, e.g. "economy"'),
        }),
        async *execute({ destination, rideId }, { abortSignal }) {
          yield { progress: 'Booking the ride' };
          await work(1200, abortSignal);
          yield world.bookRide(destination, rideId);
        },
      }),
    },
    interactive: true,
    maxSteps: 10,
    timeout: 300_000,
  });
}
