// Usage: npm run example examples/19-mcp-tasks.ts
//
// Subagents as tasks of the Model Context Protocol, with the client from its official SDK. The client delegates a mail,
// the subagent asks for approval before it sends it, and the server is replaced in the meantime. The next server, on
// the same journal, asks again and continues.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CallToolResultSchema,
  ElicitRequestSchema,
  type ElicitResult,
} from '@modelcontextprotocol/sdk/types.js';
import { tool } from 'ai';
import { z } from 'zod';
import { createRuntime, defineSubagent } from 'offstage';
import { mcpServer } from 'offstage/mcp';
import { nodeEnvironment } from 'offstage/node';
import { sqliteJournal } from 'offstage/sqlite-journal';
import { scriptedModel } from 'offstage/testing';

const folder = mkdtempSync(join(tmpdir(), 'offstage-example-'));

const mailer = defineSubagent({
  name: 'mailer',
  instructions: 'Write and send the mail.',
  interactive: true,
  tools: {
    send_mail: tool({
      description: 'Send a mail',
      inputSchema: z.object({ to: z.string(), text: z.string() }),
      execute: ({ to }) => `sent to ${to}`,
    }),
  },
  toolApproval: { send_mail: 'user-approval' },
});

/** Starts a server on the example's journal. Returns its URL and a function that stops it. */
async function serve() {
  const environment = nodeEnvironment();
  const journal = sqliteJournal({ path: join(folder, 'tasks.journal'), environment });
  const server = await mcpServer({
    runtime: createRuntime({ environment, journal }),
    subagents: [{ config: mailer, description: 'Writes and sends mail, with consent' }],
    authorize: ({ token }) => (token === 'secret-of-ann' ? 'ann' : null),
    model: scriptedModel({
      otherwise: ({ results: [sent] }) =>
        sent === undefined
          ? { calls: [{ name: 'send_mail', input: { to: 'bob', text: 'Lunch at noon?' } }] }
          : { text: `The mail: ${JSON.stringify(sent)}.` },
    }),
  });
  const http = createServer(server.handle).listen(0, '127.0.0.1');
  await new Promise((resolve) => http.once('listening', resolve));
  return {
    url: new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`),
    async stop(): Promise<void> {
      await server.close();
      http.closeAllConnections();
      http.close();
      journal.close();
    },
  };
}

async function connect(url: URL, answer: () => ElicitResult | Promise<ElicitResult>) {
  const client = new Client(
    { name: 'example', version: '1' },
    { capabilities: { elicitation: {} } },
  );
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    console.log(`mailer asks: ${params.message}`);
    return answer();
  });
  const headers = { authorization: 'Bearer secret-of-ann' };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

const first = await serve();
const before = await connect(first.url, () => new Promise(() => undefined));
let taskId = '';
for await (const message of before.experimental.tasks.callToolStream(
  { name: 'mailer', arguments: { task: 'Invite Bob to lunch' } },
  CallToolResultSchema,
  { task: {} },
)) {
  if (message.type !== 'taskCreated') continue;
  ({ taskId } = message.task);
  console.log('client: delegated');
  break;
}
await before.close();
await first.stop();

const second = await serve();
const after = await connect(second.url, () => {
  console.log('user: Yes');
  return { action: 'accept', content: { answer: true } };
});
const { content } = await after.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);
for (const part of content) if (part.type === 'text') console.log(`result: ${part.text}`);
await after.close();
await second.stop();
rmSync(folder, { recursive: true });
