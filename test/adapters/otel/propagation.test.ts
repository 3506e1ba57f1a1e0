// A trace continues in remote agents that do part of the work, and Offstage continues the traces of its callers. The
// other ends use the official SDK for each protocol (TRACED-JOURNAL-7, TRACED-JOURNAL-8).

import { client, methods, ndJsonStream } from '@agentclientprotocol/sdk';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { a2aRelay } from '../../../src/adapters/a2a/index.ts';
import { acpAgent, acpRelay, type AcpSessionRequest } from '../../../src/adapters/acp/index.ts';
import { mcpRelay } from '../../../src/adapters/mcp/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { tracedJournal } from '../../../src/adapters/otel/index.ts';
import { chatHandler } from '../../../src/ai-sdk-ui/index.ts';
import { connect } from '../../../src/client/index.ts';
import { serve } from '../../../src/serve/index.ts';
import { createRuntime, memoryJournal, TextSession } from '../../../src/index.ts';
import type { GivenAnswer, Journal } from '../../../src/index.ts';
import { type Relay, runSubagent } from '../../../src/entries/subagents.ts';
import {
  actsPrompt,
  scriptedModel,
  scriptedRelay,
  simulatedEnvironment,
  type RelayAct,
} from '../../../src/testing/index.ts';
import { AGENT } from '../acp/support/agent-path.ts';
import { agentServer } from '../a2a/support/agent-server.ts';
import { actingServer } from '../mcp/support/acting-server.ts';
import { rideServer } from '../mcp/support/ride-server.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const CALLER = `00-${TRACE}-${SPAN}-01`;
const HOSTILE = [
  '00-0-0-01',
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `${CALLER}\r\nx: y`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  'a'.repeat(500),
];

function sdk() {
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  const spans = () => exporter.getFinishedSpans();
  /** Returns the `traceparent` of each span with this name. */
  const named = (name: string): readonly string[] =>
    spans()
      .filter((span) => span.name === name)
      .map((span) => {
        const { traceId, spanId, traceFlags } = span.spanContext();
        return `00-${traceId}-${spanId}-0${traceFlags}`;
      });
  return { spans, named, tracerProvider };
}

/** Plays a task on a relay that asks one question. */
async function played(relay: Relay, journal: Journal, acts: readonly RelayAct[]) {
  const environment = nodeEnvironment();
  const { result } = runSubagent(
    { name: 'coder', instructions: 'You write code.', relay },
    actsPrompt(...acts),
    {
      runtime: createRuntime({ environment, journal }),
      id: 'run',
      onQuestion: (): GivenAnswer => ({ text: 'now' }),
    },
  );
  const outcome = await result;
  expect(outcome).toMatchObject({ status: 'completed' });
}

const ASKS: readonly RelayAct[] = [{ say: 'One. ' }, { question: 'When?' }, { say: 'Two.' }];

describe("TRACED-JOURNAL-7: the span of an agent's work behind a relay", () => {
  const folder = (): string => {
    const path = mkdtempSync(join(tmpdir(), 'offstage-test-traced-'));
    onTestFinished(() => rmSync(path, { recursive: true, force: true }));
    return path;
  };

  test('reaches the server in the `_meta` field of an MCP call in 2025-11-25 and 2026-07-28', async () => {
    for (const protocol of ['2025-11-25', '2026-07-28'] as const) {
      const server = await actingServer({ protocol });
      onTestFinished(() => server.close());
      const { tracerProvider, named } = sdk();
      const relay = mcpRelay({ url: server.url, tool: 'work', protocol });
      await played(relay, tracedJournal(memoryJournal(), { tracerProvider }), ASKS);
      const sent = server.metas.map(({ traceparent }) => traceparent);
      // The work before the question and after its answer.
      const [first] = named('invoke_agent coder');
      expect(sent).toEqual([first]);
    }
  });

  test('reaches the agent in a header of each A2A request', async () => {
    const server = await agentServer();
    onTestFinished(() => server.close());
    const { tracerProvider, named } = sdk();
    const relay = a2aRelay({ url: server.url });
    await played(relay, tracedJournal(memoryJournal(), { tracerProvider }), ASKS);
    const sent = new Set(server.headers.map(({ traceparent }) => traceparent));
    expect(sent).toEqual(new Set(named('invoke_agent coder')));
    expect(sent.size).toBe(2);
  });

  test('reaches an ACP process in its environment and in the `_meta` field of each request', async () => {
    const path = folder();
    const log = join(path, 'log');
    const { tracerProvider, named } = sdk();
    const relay = acpRelay({
      command: process.execPath,
      args: ['--conditions=offstage-source', AGENT],
      stateFolder: path,
      cwd: path,
      env: { LOG: log, STATE: path },
    });
    await played(relay, tracedJournal(memoryJournal(), { tracerProvider }), ASKS);
    const lines = readFileSync(log, 'utf8').split('\n');
    const [first = ''] = named('invoke_agent coder');
    expect(lines.filter((line) => line.startsWith('traced '))).toEqual([
      `traced env ${first}`,
      `traced new ${first}`,
      `traced prompt ${first}`,
    ]);
  });

  test('stays local without a provider or with `propagates: false`', async () => {
    const { tracerProvider } = sdk();
    for (const journal of [
      memoryJournal(),
      tracedJournal(memoryJournal()),
      tracedJournal(memoryJournal(), { tracerProvider, propagates: false }),
    ]) {
      const server = await agentServer();
      onTestFinished(() => server.close());
      await played(a2aRelay({ url: server.url }), journal, ASKS);
      expect(server.headers.some((each) => 'traceparent' in each)).toBe(false);
    }
  });

  test('belongs to the same trace in the next process after a crash', async () => {
    const told: (string | undefined)[] = [];
    const relay = scriptedRelay({ capabilities: { openQuestionSurvives: true } });
    const watched: Relay = {
      name: relay.name,
      capabilities: relay.capabilities,
      loop: relay.loop,
      start: (start) => {
        told.push(start.traceparent?.());
        return relay.start(start);
      },
    };
    const kept = memoryJournal();
    const environment = simulatedEnvironment();
    const life = (answer: GivenAnswer | null) => {
      const { tracerProvider, spans } = sdk();
      let isAlive = true;
      const journal = tracedJournal(
        {
          read: (query) => kept.read(query),
          append: (entry) => (isAlive ? kept.append(entry) : new Promise<never>(() => {})),
        },
        { tracerProvider },
      );
      const asked = Promise.withResolvers<void>();
      const { result } = runSubagent(
        { name: 'coder', instructions: 'Code.', relay: watched },
        actsPrompt({ question: 'When?' }, { say: 'Done.' }),
        {
          runtime: createRuntime({ environment, journal }),
          id: 'run',
          onQuestion: () => {
            asked.resolve();
            return answer ?? new Promise<never>(() => {});
          },
        },
      );
      return { result, asked: asked.promise, spans, kill: () => (isAlive = false) };
    };
    const first = life(null);
    await first.asked;
    first.kill();
    const next = life({ text: 'now' });
    expect((await next.result).status).toBe('completed');
    expect(told).toHaveLength(2);
    const [before = '', after = ''] = told;
    expect(after.split('-')[1]).toBe(before.split('-')[1]);
    expect(after).not.toBe(before);
    // Both are Offstage's spans.
    const ids = [...first.spans(), ...next.spans()].map((span) => span.spanContext().spanId);
    expect(ids).toEqual(expect.arrayContaining([before.split('-')[2], after.split('-')[2]]));
  });

  test("covers the agent's work and usage, but has no model call below it", async () => {
    const relay = scriptedRelay();
    const charging: Relay = {
      name: relay.name,
      capabilities: relay.capabilities,
      loop: relay.loop,
      async start(start) {
        const session = await relay.start(start);
        const { prompt, answer } = session;
        const uses = (): void =>
          start.receive({ type: 'usage', inputTokens: 30, outputTokens: 7, cost: 0 });
        session.prompt = (...given) => {
          uses();
          prompt.apply(session, given);
        };
        session.answer = (...given) => {
          uses();
          uses();
          answer.apply(session, given);
        };
        return session;
      },
    };
    const { tracerProvider, spans } = sdk();
    const journal = tracedJournal(memoryJournal(), { tracerProvider });
    await played(charging, journal, ASKS);
    expect(spans().map(({ name }) => name)).not.toContainEqual(expect.stringContaining('chat'));
    const work = spans().filter(({ name }) => name === 'invoke_agent coder');
    // CLIENT
    expect(work.map(({ kind }) => kind)).toEqual([2, 2]);
    expect(work.map(({ attributes }) => attributes['gen_ai.usage.input_tokens'])).toEqual([30, 60]);
  });
});

describe('TRACED-JOURNAL-8: the work for a caller', () => {
  const parentOf = (span: { readonly parentSpanContext?: { readonly spanId: string } }) =>
    span.parentSpanContext?.spanId;

  const sessionOn = (journal: Journal, options: { readonly traceparent?: string } = {}) =>
    new TextSession({
      journal,
      model: scriptedModel({ otherwise: () => ({ text: 'Hello.' }) }),
      agents: [{ name: 'lead', instructions: 'You talk.' }],
      ...options,
    });

  test("adds a whole run to its program's trace, even after a question", async () => {
    const { tracerProvider, spans } = sdk();
    const journal = tracedJournal(memoryJournal(), { tracerProvider });
    const { result } = runSubagent(
      { name: 'booker', instructions: 'Book.', interactive: true },
      'Book',
      {
        runtime: createRuntime({ environment: simulatedEnvironment(), journal }),
        id: 'run',
        model: scriptedModel({
          agents: {
            booker: [
              { calls: [{ name: 'ask_user', input: { question: 'When?' } }] },
              { text: 'Booked.' },
            ],
          },
        }),
        traceparent: CALLER,
        onQuestion: () => ({ text: 'now' }),
      },
    );
    await result;
    expect(new Set(spans().map((span) => span.spanContext().traceId))).toEqual(new Set([TRACE]));
    const work = spans().filter(({ name }) => name === 'invoke_agent booker');
    expect(work.map(parentOf)).toEqual([SPAN, SPAN]);
  });

  test('adds a session to the trace of the request that opened it, and nests its turns in that trace', async () => {
    const { tracerProvider, spans } = sdk();
    const session = sessionOn(tracedJournal(memoryJournal(), { tracerProvider }), {
      traceparent: CALLER,
    });
    await session.start();
    const again = '1'.repeat(16);
    await session.sendText('Hi', { traceparent: `00-${TRACE}-${again}-01` });
    await session.idle();
    await session.close();
    expect(new Set(spans().map((span) => span.spanContext().traceId))).toEqual(new Set([TRACE]));
    const root = spans().find(({ name }) => name === 'offstage.session');
    const turn = spans().find(({ name }) => name === 'invoke_agent lead');
    expect([root && parentOf(root), turn && parentOf(turn)]).toEqual([SPAN, again]);
  });

  test("continues a conversation's trace, and links it to a caller in another trace", async () => {
    const { tracerProvider, spans } = sdk();
    const session = sessionOn(tracedJournal(memoryJournal(), { tracerProvider }));
    await session.start();
    await session.sendText('Hi', { traceparent: CALLER });
    await session.idle();
    await session.sendText('And now?');
    await session.idle();
    await session.close();
    const ids = new Set(spans().map((span) => span.spanContext().traceId));
    expect([ids.size, ids.has(TRACE)]).toEqual([1, false]);
    const turns = spans().filter(({ name }) => name === 'invoke_agent lead');
    expect(
      turns.map(({ links }) =>
        links.map(({ context, attributes }) => [context.spanId, attributes?.['offstage.link']]),
      ),
    ).toEqual([[[SPAN, 'request']], []]);
  });

  test.each(HOSTILE)(
    'ignores an invalid header, and does not start a trace from it: %j',
    async (given) => {
      const { tracerProvider, spans } = sdk();
      const kept: string[] = [];
      const inner = memoryJournal();
      const journal = tracedJournal(
        {
          read: (query) => inner.read(query),
          append: (entry) => {
            kept.push(JSON.stringify(entry));
            return inner.append(entry);
          },
        },
        { tracerProvider },
      );
      const session = sessionOn(journal, { traceparent: given });
      await session.start();
      await session.sendText('Hi', { traceparent: given });
      await session.idle();
      await session.close();
      expect(spans().some((span) => span.spanContext().traceId === TRACE)).toBe(false);
      expect(spans().some(({ links }) => links.length > 0)).toBe(false);
      expect(kept.join('\n')).not.toContain(given);
    },
  );

  test('continues the trace of the official MCP client', async () => {
    const { tracerProvider, spans } = sdk();
    const journal = tracedJournal(memoryJournal(), { tracerProvider });
    const server = await rideServer(createRuntime({ environment: nodeEnvironment(), journal }));
    const http = createServer((request, response) => server.handle(request, response));
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    const url = new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`);
    const mcp = new Client({ name: 'test', version: '0' });
    await mcp.connect(
      new StreamableHTTPClientTransport(url, {
        requestInit: { headers: { authorization: 'Bearer ann' } },
      }),
    );
    await mcp.callTool({
      name: 'broken',
      arguments: { task: 'a' },
      _meta: { traceparent: CALLER },
    });
    await mcp.callTool({ name: 'broken', arguments: { task: 'b' }, _meta: { traceparent: 'no' } });
    await mcp.close();
    await server.close();
    http.closeAllConnections();
    http.close();
    const work = spans().filter(({ name }) => name === 'invoke_agent broken');
    expect(work.map((span) => [span.spanContext().traceId === TRACE, parentOf(span)])).toEqual([
      [true, SPAN],
      [false, expect.not.stringMatching(SPAN)],
    ]);
  });

  test("continues the traces of the official ACP client's `session/new` and `session/prompt`", async () => {
    const { tracerProvider, spans } = sdk();
    const journal = tracedJournal(memoryJournal(), { tracerProvider });
    const [toAgent, toEditor] = [new PassThrough(), new PassThrough()];
    const requests: AcpSessionRequest[] = [];
    const agent = await acpAgent({
      input: toAgent,
      output: toEditor,
      open: (request) => {
        requests.push(request);
        const { traceparent } = request;
        return sessionOn(journal, traceparent === undefined ? {} : { traceparent });
      },
    });
    const connection = client({ name: 'editor' })
      .onNotification(methods.client.session.update, () => {})
      .connect(
        ndJsonStream(
          Writable.toWeb(toAgent) as WritableStream<Uint8Array>,
          Readable.toWeb(toEditor) as ReadableStream<Uint8Array>,
        ),
      );
    const { agent: other } = connection;
    await other.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
    const opened = { cwd: '/tmp', mcpServers: [], _meta: { traceparent: CALLER } };
    const { sessionId } = (await other.request(methods.agent.session.new, opened)) as {
      readonly sessionId: string;
    };
    const prompt = [{ type: 'text' as const, text: 'Hi' }];
    const turn = '2'.repeat(16);
    await other.request(methods.agent.session.prompt, {
      sessionId,
      prompt,
      _meta: { traceparent: `00-${TRACE}-${turn}-01` },
    });
    const hostile = { cwd: '/tmp', mcpServers: [], _meta: { traceparent: { a: 1 } } };
    await other.request(methods.agent.session.new, hostile);
    connection.close();
    toAgent.end();
    await agent.close();
    expect(requests).toEqual([{ cwd: '/tmp', traceparent: CALLER }, { cwd: '/tmp' }]);
    const said = spans().find(({ name }) => name === 'invoke_agent lead');
    expect(said && [said.spanContext().traceId, parentOf(said)]).toEqual([TRACE, turn]);
  });

  test('continues the traces of `offstage/client` and of an AI SDK chat', async () => {
    const { tracerProvider, spans } = sdk();
    const session = sessionOn(tracedJournal(memoryJournal(), { tracerProvider }), {
      traceparent: CALLER,
    });
    const server = serve({
      authorize: () => ({ sessionId: session.id, user: 'ann', role: 'user' }),
      session: () => session,
      environment: nodeEnvironment(),
    });
    const http = createServer((request, response) => server.handle(request, response));
    http.on('upgrade', (request, socket, head) => server.upgrade(request, socket, head));
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/offstage`;
    const page = connect({ url, token: 'a' });
    const [one, two] = ['3'.repeat(16), '4'.repeat(16)];
    await page.send('Hi', { traceparent: `00-${TRACE}-${one}-01` });
    await session.idle();
    page.close();
    const chat = chatHandler({ authorize: () => ({ session, user: 'ann' }) });
    const response = await chat(
      new Request('http://127.0.0.1/chat', {
        method: 'POST',
        headers: { 'content-type': 'application/json', traceparent: `00-${TRACE}-${two}-01` },
        body: JSON.stringify({
          id: 'c',
          trigger: 'submit-message',
          messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Again' }] }],
        }),
      }),
    );
    expect(await response.text()).toContain('Hello.');
    await session.idle();
    await server.close();
    http.closeAllConnections();
    http.close();
    await session.close();
    const turns = spans().filter(({ name }) => name === 'invoke_agent lead');
    expect(turns.map(parentOf)).toEqual([one, two]);
  });
});
