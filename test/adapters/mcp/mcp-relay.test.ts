// The MCP relay with different servers: calls that are not tasks, forms, Offstage's own server, standard input and
// output, and invalid settings.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { mcpRelay, type McpRelayOptions } from '../../../src/adapters/mcp/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { type RelayAnswer, type RelayEvent, runSubagent } from '../../../src/entries/subagents.ts';
import { createRuntime, memoryJournal } from '../../../src/index.ts';
import { actsPrompt } from '../../../src/testing/index.ts';
import { actingServer } from './support/acting-server.ts';
import { rideServer } from './support/ride-server.ts';

type Protocol = '2025-11-25' | '2026-07-28';
type Asked = Extract<RelayEvent, { readonly type: 'permission' | 'question' }>;

async function acting(protocol: Protocol) {
  const server = await actingServer({ protocol });
  onTestFinished(() => server.close());
  return server;
}

async function ownServer(): Promise<string> {
  const runtime = createRuntime({ environment: nodeEnvironment(), journal: memoryJournal() });
  const server = await rideServer(runtime);
  const http = createServer((request, response) => server.handle(request, response));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  onTestFinished(async () => {
    await server.close();
    http.closeAllConnections();
    http.close();
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
}

const NO_ANSWER: RelayAnswer = { type: 'cancelled' };

/** Plays one turn and answers its questions. */
async function turn(
  options: McpRelayOptions,
  text: string,
  answerOf: (asked: Asked) => RelayAnswer = () => NO_ANSWER,
) {
  const { scheduler, ids } = nodeEnvironment();
  const ended = Promise.withResolvers<Extract<RelayEvent, { readonly type: 'turn_ended' }>>();
  const asked: Asked[] = [];
  let words = '';
  const session = await mcpRelay(options).start({
    subagentId: 'sub_1',
    signal: new AbortController().signal,
    scheduler,
    ids,
    receive(event) {
      if (event.type === 'words') words += event.text;
      if (event.type === 'permission' || event.type === 'question') {
        asked.push(event);
        session.answer(event.requestId, answerOf(event));
      }
      if (event.type === 'turn_ended') ended.resolve(event);
      if (event.type === 'closed') ended.reject(new Error(event.message));
    },
    report: () => {},
  });
  session.prompt({ key: 'k', text });
  const { reason, message } = await ended.promise;
  await session.release('ended');
  return { reason, message, words, asked };
}

describe('a tool without tasks', () => {
  test.each([
    { given: { type: 'permitted' }, words: 'accept: Hello' },
    { given: { type: 'denied', words: 'No' }, words: 'decline: Hello' },
  ] as const)(
    'asks during its call, and receives an answer whose type is $given.type',
    async ({ given, words }) => {
      const { url } = await acting('2025-11-25');
      const played = await turn({ url, tool: 'echo' }, 'Hello', () => given);
      expect(played).toMatchObject({ reason: 'completed', words });
      expect(played.asked).toMatchObject([{ type: 'permission', title: 'Say it?' }]);
    },
  );

  test("asks in rounds under protocol 2026-07-28, and returns the server's state with each answer", async () => {
    const { url } = await acting('2026-07-28');
    const options = { url, tool: 'ask_back', protocol: '2026-07-28' } as const;
    const played = await turn(options, 'Hello', () => ({ type: 'permitted' }));
    expect(played).toMatchObject({ reason: 'completed', words: 'accept: Hello' });
  });
});

describe.each(['2025-11-25', '2026-07-28'] as const)(
  'an MCP server of Offstage (%s)',
  (protocol) => {
    const headers = { authorization: 'Bearer ann' };

    test('asks with choices, and books the selected ride', async () => {
      const url = await ownServer();
      const options = { url, protocol, headers, tool: 'ride_booker', pollMs: 20 };
      const played = await turn(options, 'To the airport', () => ({
        type: 'answered',
        text: 'Premium',
        optionId: 'premium',
      }));
      expect(played).toMatchObject({ reason: 'completed' });
      expect(played.words).toMatch(/premium/i);
      expect(played.asked[0]).toMatchObject({
        type: 'question',
        options: expect.arrayContaining([expect.objectContaining({ id: 'premium' })]) as unknown,
      });
    });

    test('does not send a denied mail', async () => {
      const url = await ownServer();
      const options = { url, protocol, headers, tool: 'mailer' };
      const played = await turn(options, 'Write to Bob', () => ({ type: 'denied', words: 'No' }));
      // The user sees the call itself in addition to what the server says.
      expect(played.asked[0]).toMatchObject({ type: 'permission', input: { to: 'bob' } });
      expect(played.words).not.toContain('"sent"');
    });
  },
);

test('starts, queries and stops a server over standard input and output', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-test-mcp-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const program = fileURLToPath(new URL('support/ride-server.ts', import.meta.url));
  const transport = () =>
    new StdioClientTransport({
      command: process.execPath,
      args: [program, join(folder, 'journal'), 'stdio'],
    });
  const played = await turn({ transport, tool: 'ride_booker' }, 'To the airport', () => ({
    type: 'answered',
    text: 'Premium',
    optionId: 'premium',
  }));
  expect(played).toMatchObject({ reason: 'completed' });
  expect(played.words).toMatch(/premium/i);
});

test('asks again after an invalid answer, then leaves the question unanswered', async () => {
  const { url } = await acting('2026-07-28');
  const options = { url, tool: 'work', protocol: '2026-07-28' } as const;
  const question = { question: 'When?', options: [{ id: 'early', label: 'At eight' }] };
  const played = await turn(options, actsPrompt(question), () => ({
    type: 'answered',
    text: 'Never',
  }));
  expect(played.asked).toHaveLength(3);
  expect(played.asked[1]).toMatchObject({ text: 'When?\nExpected one of: At eight.' });
  expect(played.words).toBe('no answer. ');
});

test("lets the app build a call's arguments if the tool needs more than text", async () => {
  const { url, told } = await acting('2025-11-25');
  const say = actsPrompt({ say: 'Well.' });
  const args = ({ text }: { readonly text: string }) => ({ task: `${text}!` });
  expect((await turn({ url, tool: 'work', arguments: args }, say)).words).toBe('Well.');
  expect(told).toEqual([`${say}!`]);
});

// A server on the official SDK asks each question once. If the connection breaks, the question is lost and the server
// keeps waiting.
test.each(['First?', 'Second?'])(
  'MCP-RELAY-4: asks %s again after a lost connection',
  async (loses) => {
    const server = await actingServer({ protocol: '2025-11-25', loses });
    onTestFinished(() => server.close());
    const runtime = createRuntime({ environment: nodeEnvironment(), journal: memoryJournal() });
    const asked: string[] = [];
    const { result } = runSubagent(
      {
        name: 'worker',
        instructions: 'You do the work.',
        relay: mcpRelay({ url: server.url, tool: 'work', graceMs: 300 }),
        retry: { maxAttempts: 10, baseDelayMs: 0 },
      },
      actsPrompt({ question: 'First?' }, { question: 'Second?' }, { say: 'Done.' }),
      {
        runtime,
        async onQuestion({ question }) {
          asked.push(question);
          // The relay has polled the task in the meantime.
          const requests = server.headers.length;
          await vi.waitUntil(() => server.headers.length > requests + 1);
          return { text: `about ${question}` };
        },
      },
    );
    expect(await result).toMatchObject({
      status: 'completed',
      text: expect.stringMatching(/Done\.$/) as unknown,
    });
    // On a slow machine, the relay may treat a question as lost.
    expect(server.told.length).toBeGreaterThanOrEqual(2);
    expect(asked.slice(-2)).toEqual(['First?', 'Second?']);
    expect(server.answers.slice(-1)).toEqual([expect.stringContaining('about Second?')]);
  },
);

describe('invalid options', () => {
  test.each([
    [{ tool: 'work' }, 'either `url` or `transport`'],
    [{ tool: 'work', url: 'ftp://example.com' }, 'http or https'],
    [
      {
        tool: 'work',
        protocol: '2026-07-28',
        transport: () => new StdioClientTransport({ command: 'x' }),
      },
      'sent over HTTP',
    ],
    [{ url: 'http://127.0.0.1:1', tool: '' }, 'tool'],
  ] satisfies [McpRelayOptions, string][])('cause an error by name: %o', (options, why) => {
    expect(() => mcpRelay(options)).toThrow(why);
  });

  test('cause an error if they name a tool that the server lacks', async () => {
    const { url } = await acting('2025-11-25');
    await expect(turn({ url, tool: 'fly' }, 'Go')).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('(work, echo), got "fly"') as unknown,
    });
  });
});
