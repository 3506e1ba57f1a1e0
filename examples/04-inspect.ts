// Usage: npm run example examples/04-inspect.ts [--stay]
//
// Watches the actors of a session in the Stately Inspector. It prints the URL to open in a browser, runs a short
// conversation, and exits. The inspector itself is a page of stately.ai and needs the network. With `--stay` it waits
// for Ctrl+C. A page that is opened late also shows everything. The stream hides what users and models say unless
// `redact: false` is set.

import { once } from 'node:events';
import { createWebSocketReceiver } from '@statelyai/inspect';
import { z } from 'zod';
import { createInspector } from 'offstage/inspect';
import { nodeEnvironment } from 'offstage/node';
import { defineSubagent, defineTool, TextSession } from 'offstage';
import { scriptedModel } from 'offstage/testing';

const inspector = await createInspector({ environment: nodeEnvironment() });
console.log(`Open ${inspector.url}\n`);

// A program reads the same stream: the states of each actor, in tree order.
const states = new Map<string, string[]>();
createWebSocketReceiver({ server: inspector.streamUrl ?? '' }).subscribe((message) => {
  if (message.type !== '@xstate.snapshot') return;
  const { value } = message.snapshot as { value?: unknown };
  if (value === undefined) return;
  const seen = states.get(message.sessionId) ?? [];
  const state = nameOf(value);
  if (seen.at(-1) !== state) states.set(message.sessionId, [...seen, state]);
});

const bookRide = defineTool({
  name: 'book_ride',
  description: 'Books a ride',
  parameters: z.object({}),
  execution: 'background',
  pendingMessage: 'I am on it.',
});

const model = scriptedModel({
  scripts: [
    {
      when: 'You book rides',
      script: ({ results: [answer] }) =>
        answer === undefined
          ? { calls: [{ name: 'ask_user', input: { question: 'Economy or Premium?' } }] }
          : { text: `Booked: ${(answer as { userResponse: string }).userResponse}.` },
    },
  ],
  otherwise: ({ user, results }) => {
    if (user.includes('"result"')) return { text: 'Your ride is booked.' };
    return results.length > 0
      ? { text: 'I am on it.' }
      : { calls: [{ name: 'book_ride', input: {} }] };
  },
});

const session = new TextSession({
  sessionId: 'ses_demo',
  inspect: inspector.inspect,
  model,
  agents: [{ name: 'lead', instructions: 'You talk to the user.', tools: [bookRide] }],
  subagentConfigs: {
    book_ride: defineSubagent({
      name: 'ride_booker',
      instructions: 'You book rides.',
      interactive: true,
    }),
  },
});

session.parts.subscribe((part) => {
  if (part.type === 'question.asked') void session.sendText('economy');
});

await session.start();
await session.sendText('book me a ride');
await session.nextResult();
await session.close();

if (process.argv.includes('--stay')) {
  console.log('Ctrl+C ends it.');
  await once(process, 'SIGINT');
}
await inspector.stop();
for (const [id, visited] of [...states].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  console.log(`${id}\n    ${visited.join(' → ')}`);

/**
 * Formats a state as text: `{ running: 'thinking' }` becomes `running.thinking`; parallel regions are listed.
 */
function nameOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return Object.entries(value as object)
    .map(([state, within]) => [state, nameOf(within)].filter(Boolean).join('.'))
    .join(' ');
}
