// Usage: npm run example examples/00-first-session.ts
//
// The first program of the README. With OPENAI_API_KEY it talks to a model; without a key scripts
// stand in for the model.

import { openai } from '@ai-sdk/openai';
import { tool } from 'ai';
import { defineSubagent, defineTool, TextSession } from 'offstage';
import { scriptedModel } from 'offstage/testing';
import { z } from 'zod';

const rideOptions = [
  { id: 'economy', label: 'Economy', description: '$12, in 5 minutes' },
  { id: 'premium', label: 'Premium', description: '$24, in 3 minutes' },
];

// Without a key, this script stands in for the models.
const script = scriptedModel({
  agents: {
    book_ride: [
      { calls: [{ name: 'ask_user', input: { question: 'Which ride?', options: rideOptions } }] },
      { calls: [{ name: 'confirm_ride', input: { optionId: 'premium' } }] },
      { text: 'The premium ride is booked; it arrives in 3 minutes.' },
    ],
  },
  otherwise: [
    { calls: [{ name: 'book_ride', input: { destination: 'the airport' } }] },
    { text: 'I am booking it. One moment.' },
    { text: 'Your premium ride to the airport is booked. It arrives in 3 minutes.' },
  ],
});
const model = process.env['OPENAI_API_KEY'] ? openai('gpt-5.4-mini') : script;

// The lead agent calls this tool; the subagent with the same name does the work.
const bookRide = defineTool({
  name: 'book_ride',
  description: 'Book a ride for the user',
  parameters: z.object({ destination: z.string() }),
  execution: 'background',
  pendingMessage: 'I am booking it. One moment.', // the lead agent says this meanwhile
});

const rideBooker = defineSubagent({
  name: 'ride_booker',
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
});

const session = new TextSession({
  model,
  agents: [
    { name: 'assistant', instructions: 'You are a friendly travel assistant.', tools: [bookRide] },
  ],
  subagentConfigs: { book_ride: rideBooker },
});

session.parts.subscribe((part) => {
  if (part.type === 'text.done') console.log(`assistant: ${part.text}`);
  if (part.type === 'question.asked')
    console.log(
      `${part.subagentName} asks: ${part.question} (${part.options.map(({ label }) => label).join(' or ')})`,
    );
});

await session.start();
for (const text of ['Book me a ride to the airport, please.', 'Premium']) {
  console.log(`you: ${text}`);
  await session.sendText(text);
  await session.idle(); // until the assistant and its subagents have nothing more to do or to say
}
await session.close();
