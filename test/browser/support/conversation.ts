// A conversation without a server: the session, the subagent and the journal all live in the page or the worker, and a
// scripted model replaces the models.

import { z } from 'zod';
import { defineSubagent, defineTool, TextSession } from '../../../src/index.ts';
import { scriptedModel } from '../../../src/testing/doubles/scripted-model.ts';

export interface Conversation {
  /** What the lead agent said, in order. */
  readonly said: readonly string[];
  readonly asked: readonly string[];
  /** The final states of the subagent's tasks. */
  readonly ended: readonly string[];
  /** The Node.js globals that existed where the conversation took place. */
  readonly nodeGlobals: readonly string[];
}

const options = ['Economy', 'Premium'].map((label) => ({ id: label.toLowerCase(), label }));

/** The user books a ride, and answers the subagent's question with its button. */
export async function converse(): Promise<Conversation> {
  const session = new TextSession({
    model: scriptedModel({
      agents: {
        book_ride: [
          { calls: [{ name: 'ask_user', input: { question: 'Which ride?', options } }] },
          { text: 'The premium ride comes in 3 minutes.' },
        ],
      },
      otherwise: [
        { calls: [{ name: 'book_ride', input: {} }] },
        { text: 'One moment.' },
        { text: 'Your premium ride is booked.' },
      ],
    }),
    agents: [
      {
        name: 'assistant',
        instructions: 'You talk to the user.',
        tools: [
          defineTool({
            name: 'book_ride',
            description: 'Books a ride',
            parameters: z.object({}),
            execution: 'background',
            pendingMessage: 'One moment.',
          }),
        ],
      },
    ],
    subagentConfigs: {
      book_ride: defineSubagent({
        name: 'ride_booker',
        instructions: 'You book rides.',
        interactive: true,
      }),
    },
  });
  const said: string[] = [];
  const asked: string[] = [];
  const open: string[] = [];
  const ended: string[] = [];
  session.events.subscribe((event) => {
    if (event.type === 'subagent.ended') ended.push(event.outcome.status);
  });
  session.parts.subscribe((part) => {
    if (part.type === 'text.done') said.push(part.text);
    if (part.type !== 'question.asked') return;
    asked.push(part.question);
    open.push(part.requestId);
  });
  await session.start();
  await session.sendText('Book me a ride, please.');
  // Nothing is left but to wait for the user.
  await session.idle();
  for (const requestId of open) await session.answer(requestId, { optionId: 'premium' });
  await session.idle();
  await session.close();
  const nodeGlobals = ['Buffer', 'process', 'setImmediate', 'require'].filter(
    (name) => name in globalThis,
  );
  return { said, asked, ended, nodeGlobals };
}
