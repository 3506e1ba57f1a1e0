// A program that an editor starts: `node served-program.ts <folder>`. Its session has one subagent that asks for a
// colour, and one that wants to delete a file. `done.log` records the effects.

import { tool } from 'ai';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { z } from 'zod';
import { createRuntime, defineTool, TextSession } from '../../../../src/index.ts';
import { acpAgent } from '../../../../src/adapters/acp/index.ts';
import { nodeEnvironment } from '../../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../../src/adapters/sqlite-journal/index.ts';
import { scriptedModel } from '../../../../src/testing/index.ts';
import { scriptedLead } from '../../../../examples/scripted-lead.ts';

const [folder = ''] = process.argv.slice(2);
const environment = nodeEnvironment();
const journal = sqliteJournal({ path: join(folder, 'journal.sqlite'), environment });
const runtime = createRuntime({ environment, journal });

const task = { parameters: z.object({ task: z.string() }), execution: 'background' } as const;
const paint = defineTool({
  name: 'paint',
  description: 'Paints',
  pendingMessage: 'I paint.',
  ...task,
});
const remove = defineTool({
  name: 'remove',
  description: 'Removes',
  pendingMessage: 'I look.',
  ...task,
});
const work = defineTool({
  name: 'work',
  description: 'Works long',
  pendingMessage: 'I work.',
  ...task,
});

const agent = await acpAgent({
  open: ({ sessionId }) =>
    new TextSession({
      runtime,
      ...(sessionId === undefined ? {} : { sessionId }),
      model: scriptedModel({
        agents: {
          paint: ({ results: [answer] }) =>
            answer === undefined
              ? {
                  calls: [
                    {
                      name: 'ask_user',
                      input: {
                        question: 'Which colour?',
                        options: [
                          { id: 'r', label: 'Red' },
                          { id: 'b', label: 'Blue' },
                        ],
                      },
                    },
                  ],
                }
              : { text: `Painted: ${(answer as { userResponse: string }).userResponse}.` },
          remove: ({ prompt, results: [answer] }) =>
            answer === undefined
              ? {
                  calls: [
                    {
                      name: 'delete_file',
                      input: {
                        path: JSON.stringify(prompt).includes('a long name')
                          ? `${'x'.repeat(3_000)}.txt`
                          : 'a.txt',
                      },
                    },
                  ],
                }
              : { text: `It is so: ${JSON.stringify(answer)}.` },
          work: () => ({ calls: [{ name: 'wait', input: {} }] }),
        },
        otherwise: scriptedLead((text) => {
          const name = ['paint', 'remove', 'work'].find((one) => text.includes(one));
          return name === undefined ? [] : [{ name, input: { task: text } }];
        }),
      }),
      agents: [{ name: 'lead', instructions: 'You talk.', tools: [paint, remove, work] }],
      subagentConfigs: {
        paint: { name: 'painter', instructions: 'You paint.', interactive: true },
        remove: {
          name: 'remover',
          instructions: 'You remove.',
          tools: {
            delete_file: tool({
              inputSchema: z.object({ path: z.string() }),
              needsApproval: true,
              execute: ({ path }) => {
                appendFileSync(join(folder, 'done.log'), `deleted ${path}\n`);
                return 'deleted';
              },
            }),
          },
        },
        work: {
          name: 'worker',
          instructions: 'You work.',
          tools: {
            wait: tool({
              inputSchema: z.object({}),
              execute: (_, { abortSignal }) =>
                new Promise((_resolve, reject) => {
                  abortSignal?.addEventListener('abort', () => reject(new Error('stopped')));
                }),
            }),
          },
        },
      },
    }),
  onError: (error, where) => process.stderr.write(`${where}: ${String(error)}\n`),
});
await agent.closed;
journal.close?.();
