// Usage: npm run example examples/13-book-a-ride.ts
//
// A subagent asks the user while it works. A JSON client receives the question with its buttons and answers with a
// click. An answer in words would also work. The subagent has the tool `ask_user` because it is `interactive`.

import { tool } from 'ai';
import { z } from 'zod';
import { clientMessages, receiveClientMessage } from 'offstage/compat';
import { defineSubagent, defineTool, TextSession } from 'offstage';
import { scriptedModel, type Script } from 'offstage/testing';
import { scriptedLead } from './scripted-lead.ts';

const bookRide = defineTool({
  name: 'book_ride',
  description: 'Book a ride for the user',
  parameters: z.object({ destination: z.string() }),
  execution: 'background',
  pendingMessage: 'Let me set up that ride for you.',
});

const rideBooker = defineSubagent({
  name: 'ride_booker',
  instructions: 'Get the options, let the user choose with ask_user, and confirm the ride.',
  interactive: true,
  maxSteps: 10,
  timeout: 300_000,
  tools: {
    get_ride_options: tool({
      description: 'Get the ride options',
      inputSchema: z.object({ destination: z.string() }),
      execute: async () => [
        { id: 'economy', label: 'Economy', description: '$12, in 5 minutes' },
        { id: 'premium', label: 'Premium', description: '$24, in 3 minutes' },
      ],
    }),
    confirm_ride: tool({
      description: 'Book the ride that the user chose',
      inputSchema: z.object({ rideType: z.string() }),
      execute: async ({ rideType }) => ({ status: 'confirmed', rideType }),
    }),
  },
});

/** Stands in for a model with these instructions, step by step. */
const ride: Script = ({ results: [last] }) => {
  if (last === undefined)
    return { calls: [{ name: 'get_ride_options', input: { destination: 'airport' } }] };
  if (Array.isArray(last))
    return {
      calls: [{ name: 'ask_user', input: { question: 'Economy or Premium?', options: last } }],
    };
  const { optionId, rideType } = last as { optionId?: string; rideType?: string };
  if (optionId) return { calls: [{ name: 'confirm_ride', input: { rideType: optionId } }] };
  return { text: `Your ${rideType} ride is booked` };
};

const session = new TextSession({
  model: scriptedModel({
    agents: { book_ride: ride },
    otherwise: scriptedLead(() => [{ name: 'book_ride', input: { destination: 'airport' } }]),
  }),
  agents: [{ name: 'lead', instructions: 'You talk to the user.', tools: [bookRide] }],
  subagentConfigs: { book_ride: rideBooker },
});

// Stands in for a WebSocket: one JSON text per message.
clientMessages(session).subscribe((message) => {
  // The screen shows the delivery, so it does not have to be spoken, and clients that connect later get no card for it.
  if (message.type === 'transcript' && message.deliveryId !== undefined)
    void receiveClientMessage(session, {
      type: 'delivery.shown',
      deliveryId: message.deliveryId,
    });
  if (message.type === 'transcript' && !message.partial)
    console.log(`${message.role}: ${message.text}`);
  if (message.type === 'subagent.question') console.log(`(${message.subagentName} asks)`);
  if (message.type === 'subagent.completion') console.log(`(${message.status})`);
  if (message.type === 'ui.payload') void click(message.payload);
});

interface Buttons {
  readonly requestId: string;
  readonly data: { readonly options: readonly { readonly id: string; readonly label: string }[] };
}
async function click({ requestId, data: { options } }: Buttons): Promise<void> {
  console.log(`(buttons: ${options.map(({ label }) => label).join(', ')})`);
  const send = async (message: object) => {
    const receipt = await receiveClientMessage(session, JSON.stringify(message));
    console.log(`client: ${JSON.stringify(message)} → ${JSON.stringify(receipt)}`);
  };
  // A button works only once it is visible.
  await send({ type: 'question.shown', requestId });
  await send({ type: 'ui.response', requestId, selectedOptionId: 'premium' });
  await send({ type: 'ui.response', requestId, selectedOptionId: 'economy' });
}

await session.start();
await session.sendText('A ride to the airport, please');
await session.nextResult();
await session.close();
