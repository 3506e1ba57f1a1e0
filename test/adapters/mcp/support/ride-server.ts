// The server for these tests: one subagent books rides and asks, one needs approval, and one works until it is
// cancelled. As a program, it serves HTTP on the port that its first line prints, or its standard input and output.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { tool } from 'ai';
import { z } from 'zod';
import {
  mcpServer,
  type McpServer,
  type McpServerOptions,
} from '../../../../src/adapters/mcp/index.ts';
import { nodeEnvironment } from '../../../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../../../src/adapters/sqlite-journal/index.ts';
import {
  callerOf,
  createRuntime,
  type Runtime,
  type SubagentConfig,
  createChildSubagentToolset,
} from '../../../../src/index.ts';
import { scriptedModel, type Script } from '../../../../src/testing/index.ts';
import { rideConfig, RIDE_INSTRUCTIONS, rideScript } from '../../../support/ride.ts';

const mailer: SubagentConfig = {
  name: 'mailer',
  instructions: 'You send mail.',
  interactive: true,
  tools: {
    send_mail: tool({
      description: 'Send a mail',
      inputSchema: z.object({ to: z.string() }),
      needsApproval: true,
      execute: async ({ to }, options) => ({ sent: to, for: callerOf(options)?.requester ?? null }),
    }),
  },
};
const mailScript: Script = ({ results: [last] }) =>
  last === undefined
    ? { calls: [{ name: 'send_mail', input: { to: 'bob' } }] }
    : { text: `Mail: ${JSON.stringify(last)}` };

const worker: SubagentConfig = {
  name: 'worker',
  instructions: 'You work for ever.',
  inputSchema: z.object({ what: z.string().min(2) }),
  tools: {
    work: tool({
      description: 'Works until it is told to stop',
      inputSchema: z.object({}),
      async *execute(_input, { abortSignal }) {
        yield { progress: 'Working on it' };
        await new Promise((_resolve, reject) => {
          abortSignal?.addEventListener('abort', () => reject(new Error('stopped')));
        });
      },
    }),
  },
};

const asker: SubagentConfig = {
  name: 'asker',
  instructions: 'You ask your parent.',
  tools: createChildSubagentToolset(),
};
const askScript: Script = ({ results: [last] }) =>
  last === undefined
    ? { calls: [{ name: 'request_input', input: { question: 'Which folder?' } }] }
    : { text: `Got: ${JSON.stringify(last)}` };

const broken: SubagentConfig = { name: 'broken', instructions: 'You fail.', maxSteps: 1 };

export const subagents = [
  { config: rideConfig, description: 'Books a ride' },
  { config: mailer, description: 'Sends a mail' },
  { config: worker, description: 'Works' },
  { config: asker, description: 'Asks' },
  { config: broken, description: 'Fails' },
];

export function rideServer(
  runtime: Runtime,
  options: Partial<McpServerOptions> = {},
): Promise<McpServer> {
  return mcpServer({
    runtime,
    subagents,
    model: scriptedModel({
      scripts: [
        { when: RIDE_INSTRUCTIONS, script: rideScript },
        { when: mailer.instructions, script: mailScript },
        { when: worker.instructions, script: () => ({ calls: [{ name: 'work', input: {} }] }) },
        { when: asker.instructions, script: askScript },
        {
          when: broken.instructions,
          script: () => {
            throw new Error('the model is broken');
          },
        },
      ],
    }),
    authorize: ({ token }) => (token === 'ann' || token === 'eve' ? token : null),
    pollMs: 20,
    ...options,
  });
}

if (process.argv[1] === import.meta.filename) {
  const [, , path = '', how = 'http'] = process.argv;
  const environment = nodeEnvironment();
  const journal = sqliteJournal({ path, environment });
  const server = await rideServer(createRuntime({ environment, journal }), {
    onError: (error, where) => process.stderr.write(`${where}: ${String(error)}\n`),
  });
  if (how === 'stdio') {
    await (
      await server.stdio({ user: 'ann' })
    ).closed;
    await server.close();
  } else {
    const http = createServer(server.handle).listen(0, '127.0.0.1');
    await once(http, 'listening');
    process.stdout.write(`${(http.address() as AddressInfo).port}\n`);
  }
}
