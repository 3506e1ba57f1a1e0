// Usage: npm run example examples/web-pages/server.ts
//
// A session in two pages: one with the hooks and components of `offstage/react`, one with the AI SDK's `useChat`. Both
// show the same session, so each page shows the answers that were given on the other. A third page has no session: its
// own machine invokes a subagent (actors.tsx). The models are scripted; you can use any AI SDK model instead.

import { fileURLToPath } from 'node:url';
import { createServer as createVite } from 'vite';
import { z } from 'zod';
import { defineSubagent, defineTool, TextSession } from 'offstage';
import { serveLocally } from 'offstage/serve';
import { scriptedModel } from 'offstage/testing';
import { scriptedLead } from '../scripted-lead.ts';

const options = [
  { id: 'economy', label: 'Economy', description: '$12' },
  { id: 'premium', label: 'Premium', description: '$24' },
];
const session = new TextSession({
  model: scriptedModel({
    agents: {
      book_ride: ({ results: [answer] }) =>
        answer === undefined
          ? { calls: [{ name: 'ask_user', input: { question: 'Which ride?', options } }] }
          : { text: `Your ride is booked: ${JSON.stringify(answer)}` },
    },
    otherwise: scriptedLead((text) =>
      /ride/i.test(text) ? [{ name: 'book_ride', input: {} }] : [],
    ),
  }),
  agents: [
    {
      name: 'lead',
      instructions: 'You talk to the user.',
      tools: [
        defineTool({
          name: 'book_ride',
          description: 'Book a ride for the user',
          parameters: z.object({}),
          execution: 'background',
          pendingMessage: 'I am looking for rides.',
        }),
      ],
    },
  ],
  subagentConfigs: {
    book_ride: defineSubagent({
      name: 'ride_booker',
      instructions: 'Let the user choose a ride, and book it.',
      interactive: true,
    }),
  },
});

const { url } = await serveLocally({
  session,
  port: Number(process.env['PORT'] ?? 3000),
  // The pages are JSX, which a bundler compiles.
  page: async (http) => {
    const vite = await createVite({
      root: fileURLToPath(new URL('pages', import.meta.url)),
      // Needed only in this repository, where the package is used from its source.
      resolve: { conditions: ['offstage-source', 'module', 'browser', 'development'] },
      server: { middlewareMode: true, ws: { server: http } },
    });
    return vite.middlewares;
  },
});
for (const page of ['react', 'use-chat', 'actors']) console.log(url.replace('#', `${page}.html#`));
