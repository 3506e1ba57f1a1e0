// The ride from the documentation, as a subagent with a scripted model. It looks up the options, asks the user, books,
// and reports the booking.

import { tool } from 'ai';
import { z } from 'zod';
import { defineTool, type SessionEvent, type SubagentConfig } from '../../src/index.ts';
import { VoiceSession, type VoiceSessionOptions } from '../../src/voice-session.ts';
import { scriptedModel, simulatedEnvironment } from '../../src/testing/index.ts';
import type { Script } from '../../src/testing/doubles/scripted-model.ts';
import { FakeTransport } from './fake-transport.ts';

export const RIDE_INSTRUCTIONS = 'You book rides.';

export const bookRide = defineTool({
  name: 'book_ride',
  description: 'Book a ride for the user',
  parameters: z.object({ destination: z.string() }),
  execution: 'background',
  pendingMessage: 'Let me set up that ride for you.',
});

export const rideConfig: SubagentConfig = {
  name: 'ride_booker',
  instructions: RIDE_INSTRUCTIONS,
  interactive: true,
  maxSteps: 10,
  tools: {
    get_ride_options: tool({
      description: 'Get available ride options',
      inputSchema: z.object({ destination: z.string() }),
      execute: async () => [
        { id: 'economy', name: 'Economy', price: '$12' },
        { id: 'premium', name: 'Premium', price: '$24' },
      ],
    }),
    confirm_ride: tool({
      description: 'Confirm and book the selected ride',
      inputSchema: z.object({ rideType: z.string() }),
      execute: async ({ rideType }) => ({ status: 'confirmed', rideType }),
    }),
  },
};

/** Makes its decisions from its last result, so that any number of runs can share it. */
export const rideScript: Script = ({ results }) => {
  const last = results[0];
  if (last === undefined)
    return { calls: [{ name: 'get_ride_options', input: { destination: 'the airport' } }] };
  if (Array.isArray(last))
    return {
      calls: [
        {
          name: 'ask_user',
          input: {
            question: 'Economy or Premium?',
            options: [
              { id: 'economy', label: 'Economy', description: '$12' },
              { id: 'premium', label: 'Premium', description: '$24' },
            ],
          },
        },
      ],
    };
  const answer = last as {
    optionId?: string;
    userResponse?: string;
    error?: string;
    rideType?: string;
  };
  if (answer.error !== undefined)
    return { calls: [{ name: 'ask_user', input: { question: 'Economy or Premium, please?' } }] };
  if (answer.userResponse !== undefined)
    return {
      calls: [
        { name: 'confirm_ride', input: { rideType: answer.optionId ?? answer.userResponse } },
      ],
    };
  return { text: `Your ${answer.rideType} ride is booked.` };
};

/** Starts a voice session with a voice model that the test controls. Its lead agent books rides. */
export async function rideByVoice(
  hooks: VoiceSessionOptions['hooks'],
  ride: SubagentConfig = rideConfig,
) {
  const environment = simulatedEnvironment();
  const transport = new FakeTransport();
  const session = new VoiceSession({
    environment,
    transport,
    model: scriptedModel({ scripts: [{ when: RIDE_INSTRUCTIONS, script: rideScript }] }),
    agents: [{ name: 'lead', instructions: 'You talk to the user.', tools: [bookRide] }],
    subagentConfigs: { book_ride: ride },
    ...(hooks && { hooks }),
  });
  const events: SessionEvent[] = [];
  session.events.subscribe((event) => events.push(event));
  const detach = session.attach();
  await session.start();
  await environment.settle();
  const model = () => transport.current;
  /** Makes the client play an item completely. */
  const play = async (itemId: string, playedMs = 1000): Promise<void> => {
    session.playout.next({ itemId, playedMs });
    await environment.settle();
  };
  const state = () => session.store.getSnapshot().context;
  return { environment, transport, session, events, detach, model, play, state };
}
