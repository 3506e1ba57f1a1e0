// Malicious or broken servers: a relay to such a server ends its turn or receives an answer, and this process continues
// (MCP-RELAY-1, REMOTE-AGENT-2).

import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { mcpRelay } from '../../../src/adapters/mcp/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import type { RelayAnswer, RelayEvent } from '../../../src/entries/subagents.ts';

type Asked = Extract<RelayEvent, { readonly type: 'permission' | 'question' }>;
interface Call {
  readonly id: unknown;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/**
 * A 2026-07-28 server with one tool. `answer` answers all requests except `tools/list`; it returns null if it has
 * written the answer itself.
 */
async function served(answer: (call: Call, response: ServerResponse) => object | null) {
  const calls: Call[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      const call = JSON.parse(body) as Call;
      calls.push(call);
      const tools = [{ name: 'go', inputSchema: { properties: { task: { type: 'string' } } } }];
      const result = call.method === 'tools/list' ? { tools } : answer(call, response);
      if (!result) return;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, result }));
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, calls };
}

/** Plays one turn. Returns the turn's events and reports. */
async function turn(url: string, answerOf: (asked: Asked) => RelayAnswer) {
  const { scheduler, ids } = nodeEnvironment();
  const events: RelayEvent[] = [];
  const errors: string[] = [];
  const { promise: ended, resolve } = Promise.withResolvers<RelayEvent>();
  const session = await mcpRelay({ url, tool: 'go', protocol: '2026-07-28', pollMs: 20 }).start({
    subagentId: 'sub_1',
    signal: new AbortController().signal,
    scheduler,
    ids,
    receive(event) {
      events.push(event);
      if (event.type === 'permission' || event.type === 'question')
        session.answer(event.requestId, answerOf(event));
      if (event.type === 'turn_ended' || event.type === 'closed') resolve(event);
    },
    report: (error) => void errors.push(String(error)),
  });
  session.prompt({ key: 'k', text: 'go' });
  const end = await ended;
  await session.release('ended');
  return { end, events, errors };
}

const asking = (requestedSchema: unknown) => ({
  resultType: 'input_required',
  inputRequests: {
    q: { method: 'elicitation/create', params: { message: 'Which one?', requestedSchema } },
  },
});

describe("a server's form", () => {
  test.each([
    ['null as its fields', { properties: null }, { action: 'accept', content: {} }],
    ['a text for an object', 'form', { action: 'accept', content: {} }],
    ['a null field', { properties: { a: null } }, { action: 'accept', content: { a: 'x' } }],
    [
      'invalid choices',
      { properties: { a: { oneOf: [null, 7, { const: 'x' }] } } },
      { action: 'accept', content: { a: 'x' } },
    ],
    [
      'invalid items',
      { properties: { a: { type: 'array', items: [] } } },
      { action: 'accept', content: { a: 'x' } },
    ],
    [
      'a field named like a property of every object',
      JSON.parse('{"properties":{"__proto__":{"enum":["x"]}}}'),
      JSON.parse('{"action":"accept","content":{"__proto__":"x"}}'),
    ],
  ])('gets an answer with %s', async (_name, requestedSchema, expected) => {
    const { url, calls } = await served(({ params }) =>
      params['inputResponses'] === undefined
        ? asking(requestedSchema)
        : { content: [{ type: 'text', text: 'Done.' }] },
    );
    const { end, errors } = await turn(url, ({ type }) =>
      type === 'permission' ? { type: 'permitted' } : { type: 'answered', text: 'x' },
    );
    expect(errors).toEqual([]);
    expect(end).toMatchObject({ type: 'turn_ended', reason: 'completed' });
    const responses = calls.at(-1)?.params['inputResponses'];
    expect(JSON.stringify(responses)).toBe(JSON.stringify({ q: expected }));
  });
});

test('aborts an endless answer', async () => {
  const { url } = await served((_call, response) => {
    response.setHeader('content-type', 'text/event-stream');
    const piece = 'data: x\n'.repeat(64 * 1024);
    const more = (): void => void response.write(piece, more);
    response.on('error', () => {});
    more();
    return null;
  });
  const { end } = await turn(url, () => ({ type: 'cancelled' }));
  expect(end).toMatchObject({ type: 'closed', message: expect.stringContaining('more than') });
});
