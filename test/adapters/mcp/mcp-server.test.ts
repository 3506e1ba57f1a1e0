// Subagents as tools and tasks; the client is the official SDK.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CallToolResultSchema,
  ElicitRequestSchema,
  type CallToolResult,
  type ElicitResult,
} from '@modelcontextprotocol/sdk/types.js';
import fc from 'fast-check';
import { describe, expect, onTestFinished, it, test } from 'vitest';
import { mcpServer, type McpServerOptions } from '../../../src/adapters/mcp/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import {
  createRuntime,
  memoryJournal,
  type Environment,
  type Journal,
} from '../../../src/index.ts';
import type { UserTasks } from '../../../src/adapters/mcp/served-tasks.ts';
import { follow } from '../../../src/adapters/mcp/tool-calls.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { rideServer, subagents } from './support/ride-server.ts';

const PROGRAM = join(import.meta.dirname, 'support/ride-server.ts');

type Answerer = (message: string, params: unknown) => ElicitResult | Promise<ElicitResult>;

const never: Answerer = () => new Promise(() => undefined);
const answers =
  (answer: string | boolean): Answerer =>
  () => ({ action: 'accept', content: { answer } });

async function connected(
  url: string,
  { token = 'ann', answer }: { readonly token?: string; readonly answer?: Answerer } = {},
) {
  const asked: { readonly message: string; readonly params: unknown }[] = [];
  const client = new Client(
    { name: 'test', version: '0' },
    { capabilities: answer ? { elicitation: { form: {} } } : {} },
  );
  if (answer)
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      asked.push({ message: params.message, params });
      return answer(params.message, params);
    });
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  await client.connect(transport);
  onTestFinished(() => client.close());
  return { client, asked, transport, tasks: client.experimental.tasks };
}

async function served(options: Partial<McpServerOptions> = {}) {
  const errors: unknown[] = [];
  const runtime = createRuntime({ environment: nodeEnvironment(), journal: memoryJournal() });
  const server = await rideServer(runtime, { onError: (error) => errors.push(error), ...options });
  const http = createServer((request, response) => server.handle(request, response));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  onTestFinished(async () => {
    await server.close();
    http.closeAllConnections();
    http.close();
  });
  const { port } = http.address() as AddressInfo;
  return { server, port, errors, url: `http://127.0.0.1:${port}/mcp` };
}

const textOf = (result: unknown): string =>
  (result as CallToolResult).content.map((part) => (part.type === 'text' ? part.text : '')).join();

/** Starts a task and returns its id. */
async function begun(
  { tasks }: Awaited<ReturnType<typeof connected>>,
  name: string,
  args: Record<string, unknown> = { task: 'To the airport' },
): Promise<string> {
  const stream = tasks.callToolStream({ name, arguments: args }, CallToolResultSchema, {
    task: {},
  });
  for await (const message of stream) {
    if (message.type === 'taskCreated') return message.task.taskId;
    if (message.type === 'error') throw message.error;
  }
  throw new Error('no task');
}

async function until(
  { tasks }: Awaited<ReturnType<typeof connected>>,
  id: string,
  status: string,
): Promise<void> {
  await expect.poll(async () => (await tasks.getTask(id)).status, { interval: 5 }).toBe(status);
}

describe('tools', () => {
  test('completes a call without a task after asking the client, and returns the result', async () => {
    const { url } = await served();
    const { client, asked } = await connected(url, { answer: answers('premium') });
    const { tools } = await client.listTools();
    expect(tools.map(({ name, execution }) => [name, execution?.taskSupport])).toEqual(
      subagents.map(({ config }) => [config.name, 'optional']),
    );
    const result = await client.callTool({
      name: 'ride_booker',
      arguments: { task: 'To the airport' },
    });
    expect(result.isError).toBe(false);
    expect(textOf(result)).toContain('premium');
    expect(asked).toMatchObject([
      {
        message: 'Economy or Premium?',
        params: {
          requestedSchema: {
            properties: {
              answer: {
                oneOf: [{ const: 'economy' }, { const: 'premium', title: 'Premium ($24)' }],
              },
            },
          },
        },
      },
    ]);
  });

  test("reports the agent's text as progress, but not its state", async () => {
    const { url } = await served();
    const { client } = await connected(url, { answer: answers('premium') });
    const told: (string | undefined)[] = [];
    await client.callTool({ name: 'ride_booker', arguments: { task: 'x' } }, undefined, {
      onprogress: ({ message }) => told.push(message),
    });
    expect(told).toEqual(['Economy or Premium?']);
  });

  it('reports progress at least every 15 s, even while a question is waiting for its user', async () => {
    const environment = simulatedEnvironment();
    const told: string[] = [];
    const gone = new AbortController();
    const view = { message: 'Economy?', outcome: null, questions: [{ requestId: 'q1' }] };
    const tasks = { changed: () => new Promise<void>(() => {}), view: () => view };
    const followed = follow(
      tasks as object as UserTasks,
      'task',
      {
        ask: () => new Promise(() => {}),
        leavesOpen: false,
        progressed: (message) => told.push(message),
        scheduler: environment.scheduler,
      },
      gone.signal,
    );
    await environment.advance(60_000);
    expect(told).toEqual(Array(5).fill('Economy?'));
    gone.abort(new Error('gone'));
    await expect(followed).rejects.toThrow('gone');
    expect(environment.pendingTimers).toBe(0);
  });

  it('accepts more calls than the outbox can hold, because returned results leave the outbox', async () => {
    const { url } = await served();
    const { client } = await connected(url);
    const call = () => client.callTool({ name: 'broken', arguments: { task: 'x' } });
    for (let done = 0; done <= 1_000; done += 50)
      await Promise.all(Array.from({ length: 50 }, call));
    expect(textOf(await call())).not.toContain('LIMIT');
  });

  test('leaves a question unanswered and continues the work when the client cannot be asked', async () => {
    const { url } = await served();
    const { client } = await connected(url);
    const result = await client.callTool({ name: 'ride_booker', arguments: { task: 'x' } });
    expect(result).toBeDefined();
  });

  test('treats an approval as permission for one call, and `decline` as a denial', async () => {
    const { url } = await served();
    const yes = await connected(url, { answer: answers(true) });
    const sent = await yes.client.callTool({ name: 'mailer', arguments: { task: 'Write to Bob' } });
    // The tool knows for which user it works.
    expect(textOf(sent)).toContain('"sent":"bob","for":"ann"');
    expect(yes.asked[0]?.message).toContain('send_mail');
    expect(yes.asked[0]?.params).toMatchObject({
      _meta: { 'offstage/tool': 'send_mail', 'offstage/input': { to: 'bob' } },
    });
    const no = await connected(url, { answer: () => ({ action: 'decline' }) });
    const denied = await no.client.callTool({
      name: 'mailer',
      arguments: { task: 'Write to Bob' },
    });
    expect(textOf(denied)).not.toContain('"sent"');
  });

  test('presents a request to the parent as a free-text question', async () => {
    const { url } = await served();
    const { client, asked } = await connected(url, { answer: answers('src') });
    const result = await client.callTool({ name: 'asker', arguments: { task: 'Go' } });
    expect(textOf(result)).toContain('src');
    expect(asked[0]?.message).toBe('Which folder?');
  });

  test('distinguishes invalid arguments from unknown tools', async () => {
    const { url } = await served();
    const one = await connected(url);
    const wrong = await one.client.callTool({ name: 'worker', arguments: { what: 'x' } });
    expect(wrong.isError).toBe(true);
    await expect(begun(one, 'worker', { what: 'x' })).rejects.toMatchObject({ code: -32602 });
    await expect(one.client.callTool({ name: 'nobody' })).rejects.toMatchObject({ code: -32602 });
  });

  test('returns a failure as a result with isError', async () => {
    const { url } = await served();
    const { client } = await connected(url);
    const result = await client.callTool({ name: 'broken', arguments: { task: 'x' } });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain('failed');
  });

  test("cancels a call's subagent when the client aborts the call", async () => {
    const { url } = await served();
    const one = await connected(url);
    const stop = new AbortController();
    const call = one.client
      .callTool({ name: 'worker', arguments: { what: 'all' } }, undefined, { signal: stop.signal })
      .catch(() => 'given up');
    await expect
      .poll(async () => (await one.tasks.listTasks()).tasks.map(({ status }) => status))
      .toEqual(['working']);
    stop.abort();
    expect(await call).toBe('given up');
    await expect
      .poll(async () => (await one.tasks.listTasks()).tasks.map(({ status }) => status))
      .toEqual(['cancelled']);
  });
});

describe('tasks', () => {
  test("delegates, asks and returns the result through the SDK's stream", async () => {
    const { url } = await served();
    const { client, tasks, asked } = await connected(url, { answer: answers('economy') });
    await client.listTools();
    const seen: string[] = [];
    let text = '';
    for await (const message of tasks.callToolStream(
      { name: 'ride_booker', arguments: { task: 'To the airport' } },
      CallToolResultSchema,
      { task: {} },
    )) {
      seen.push(message.type);
      if (message.type === 'result') text = textOf(message.result);
    }
    expect(seen[0]).toBe('taskCreated');
    expect(seen.at(-1)).toBe('result');
    expect(text).toContain('economy');
    expect(asked).toHaveLength(1);
    expect(asked[0]?.params).toMatchObject({
      _meta: { 'io.modelcontextprotocol/related-task': { taskId: expect.any(String) } },
    });
  });

  test('lets another connection of the user resume a task by its id, and asks through that connection', async () => {
    const { url } = await served();
    const first = await connected(url, { answer: never });
    const id = await begun(first, 'ride_booker');
    await until(first, id, 'input_required');
    const pending = first.tasks.getTaskResult(id, CallToolResultSchema);
    await expect.poll(() => first.asked.length).toBe(1);
    const second = await connected(url, { answer: answers('premium') });
    expect(textOf(await second.tasks.getTaskResult(id, CallToolResultSchema))).toContain('premium');
    // The first client was waiting for the same task, so its question was withdrawn.
    expect(textOf(await pending)).toContain('premium');
    // A result can be read again.
    expect(textOf(await second.tasks.getTaskResult(id, CallToolResultSchema))).toContain('premium');
  });

  test('hides tasks from another user', async () => {
    const { url } = await served();
    const ann = await connected(url, { answer: never });
    const id = await begun(ann, 'ride_booker');
    const eve = await connected(url, { token: 'eve', answer: answers('premium') });
    const refusals = await Promise.all(
      [id, 'nobody'].map((each) =>
        Promise.all([
          eve.tasks.getTask(each).catch(String),
          eve.tasks.getTaskResult(each, CallToolResultSchema).catch(String),
          eve.tasks.cancelTask(each).catch(String),
        ]),
      ),
    );
    expect(refusals[0]).toEqual(refusals[1]);
    expect(
      refusals[0]?.every((refusal) => typeof refusal === 'string' && refusal.includes('-32602')),
    ).toBe(true);
    expect((await eve.tasks.listTasks()).tasks).toEqual([]);
    expect(eve.asked).toEqual([]);
    expect((await ann.tasks.getTask(id)).status).not.toBe('cancelled');
  });

  test('cancels a task only once', async () => {
    const { url } = await served();
    const one = await connected(url);
    const id = await begun(one, 'worker', { what: 'everything' });
    // The tool's report.
    await expect
      .poll(async () => (await one.tasks.getTask(id)).statusMessage, { interval: 5 })
      .toBe('Working on it');
    expect(await one.tasks.cancelTask(id)).toMatchObject({ taskId: id, status: 'cancelled' });
    await expect(one.tasks.cancelTask(id)).rejects.toMatchObject({ code: -32602 });
    const result = await one.tasks.getTaskResult(id, CallToolResultSchema);
    expect(result.isError).toBe(true);
  });

  test('keeps the reason why a task failed', async () => {
    const { url } = await served();
    const one = await connected(url);
    const id = await begun(one, 'broken');
    await until(one, id, 'failed');
    expect(textOf(await one.tasks.getTaskResult(id, CallToolResultSchema))).toContain('failed');
  });

  test('refuses invalid answers, and asks at most three more times', async () => {
    const { url } = await served();
    let times = 0;
    const one = await connected(url, {
      answer: (): ElicitResult => {
        times += 1;
        if (times === 1) return { action: 'accept', content: {} };
        return { action: 'accept', content: { answer: 'first class' } };
      },
    });
    const id = await begun(one, 'ride_booker');
    await expect(one.tasks.getTaskResult(id, CallToolResultSchema)).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('"economy", "premium"'),
    });
    expect(times).toBe(3);
    // The question is still open.
    const second = await connected(url, { answer: answers('premium') });
    expect(textOf(await second.tasks.getTaskResult(id, CallToolResultSchema))).toContain('premium');
  });

  test('keeps a dismissed question open', async () => {
    const { url } = await served();
    const one = await connected(url, { answer: () => ({ action: 'cancel' }) });
    const id = await begun(one, 'ride_booker');
    void one.tasks.getTaskResult(id, CallToolResultSchema).catch(() => undefined);
    await expect.poll(() => one.asked.length).toBe(1);
    expect((await one.tasks.getTask(id)).status).toBe('input_required');
  });

  test('confirms tasks and answers once they are in the journal', async () => {
    const inner = memoryJournal();
    const kept: string[] = [];
    let gate: Promise<void> | null = null;
    const journal: Journal = {
      ...inner,
      async append(entry) {
        await gate;
        inner.append(entry);
        kept.push(entry.event.type);
      },
      read: (query) => inner.read(query),
    };
    const runtime = createRuntime({ environment: nodeEnvironment(), journal });
    const { url } = await served({ runtime });
    const one = await connected(url, { answer: answers('premium') });
    const shut = Promise.withResolvers<void>();
    gate = shut.promise;
    let id: string | null = null;
    const creating = begun(one, 'ride_booker').then((given) => (id = given));
    await one.client.listTools();
    await expect
      .poll(async () => (await one.tasks.listTasks()).tasks.map(({ status }) => status))
      .toEqual(['working']);
    expect([id, kept]).toEqual([null, []]);
    shut.resolve();
    await creating;
    expect(kept.length).toBeGreaterThan(0);
    expect(textOf(await one.tasks.getTaskResult(id ?? '', CallToolResultSchema))).toContain(
      'premium',
    );
  });

  test("queues a user's tasks that exceed `tasksPerUser`, without affecting other users", async () => {
    const { url } = await served({ limits: { tasksPerUser: 1 } });
    const ann = await connected(url);
    const eve = await connected(url, { token: 'eve' });
    const messageOf = async ({ tasks }: typeof ann, id: string) =>
      (await tasks.getTask(id)).statusMessage;
    const first = await begun(ann, 'worker', { what: 'everything' });
    const second = await begun(ann, 'worker', { what: 'the rest' });
    const other = await begun(eve, 'worker', { what: 'everything' });
    await expect.poll(() => messageOf(ann, first)).toBe('Working on it');
    await expect.poll(() => messageOf(eve, other)).toBe('Working on it');
    expect(await messageOf(ann, second)).not.toBe('Working on it');
    await ann.tasks.cancelTask(first);
    await expect.poll(() => messageOf(ann, second)).toBe('Working on it');
  });

  test('limits how many requests of a user may wait for a task at the same time', async () => {
    const { url } = await served({ limits: { waitsPerUser: 1 } });
    const one = await connected(url);
    const id = await begun(one, 'worker', { what: 'everything' });
    void one.tasks.getTaskResult(id, CallToolResultSchema).catch(() => undefined);
    await expect(one.tasks.getTaskResult(id, CallToolResultSchema)).rejects.toMatchObject({
      code: -32000,
      data: { code: 'SESSION_LIMIT' },
    });
  });
});

describe('storage of tasks', () => {
  /** An environment whose clock and sweeps the test controls. */
  function moved() {
    const real = nodeEnvironment();
    const sweeps: (() => void)[] = [];
    let offset = 0;
    const environment: Environment = {
      ...real,
      clock: { now: () => real.clock.now() + offset },
      scheduler: {
        ...real.scheduler,
        schedule(task, delayMs, options) {
          if (delayMs !== 500_000) return real.scheduler.schedule(task, delayMs, options);
          sweeps.push(task);
          return () => undefined;
        },
      },
    };
    const pass = (ms: number): void => {
      offset += ms;
      sweeps.shift()?.();
    };
    return { pass, runtime: createRuntime({ environment, journal: memoryJournal() }) };
  }

  test('keeps a result until its retention has passed', async () => {
    const { pass, runtime } = moved();
    const { url } = await served({ runtime, ttlMs: 60_000 });
    const one = await connected(url);
    const id = await begun(one, 'broken');
    await until(one, id, 'failed');
    pass(59_000);
    expect(await one.tasks.getTask(id)).toMatchObject({ status: 'failed', ttl: 60_000 });
    pass(2_000);
    await expect(one.tasks.getTask(id)).rejects.toMatchObject({ code: -32602 });
    expect((await one.tasks.listTasks()).tasks).toEqual([]);
  });

  test("unloads and later resumes an idle user's session, but not one whose user is waiting", async () => {
    const { pass, runtime } = moved();
    const { url, server } = await served({ runtime, limits: { idleMs: 1_000_000 } });
    const one = await connected(url);
    const id = await begun(one, 'broken');
    await until(one, id, 'failed');
    const { promise: answer, resolve } = Promise.withResolvers<ElicitResult>();
    const eve = await connected(url, { token: 'eve', answer: () => answer });
    const ride = await begun(eve, 'ride_booker');
    const result = eve.tasks.getTaskResult(ride, CallToolResultSchema);
    await expect.poll(() => eve.asked.length).toBe(1);
    expect(server.size).toEqual({ connections: 2, users: 2 });
    pass(1_000_001);
    await expect.poll(() => server.size).toEqual({ connections: 1, users: 1 });
    resolve({ action: 'accept', content: { answer: 'premium' } });
    expect(textOf(await result)).toContain('premium');
    const again = await connected(url);
    expect(await again.tasks.getTask(id)).toMatchObject({ status: 'failed' });
  });
});

describe('access', () => {
  test('refuses unknown users, other hosts and origins, and the sessions of other users', async () => {
    const { url, port } = await served();
    await expect(connected(url, { token: 'mallory' })).rejects.toThrow();
    const statusOf = (headers: Record<string, string>): Promise<number> =>
      new Promise((resolve, reject) => {
        httpRequest(
          { port, host: '127.0.0.1', path: '/mcp', method: 'POST', headers },
          (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          },
        )
          .on('error', reject)
          .end('{}');
      });
    const authorization = 'Bearer ann';
    expect(await statusOf({ authorization, host: 'evil.example' })).toBe(403);
    expect(await statusOf({ authorization, origin: 'https://evil.example' })).toBe(403);
    expect(await statusOf({})).toBe(401);
    const ann = await connected(url);
    const session = { 'mcp-session-id': ann.transport.sessionId ?? '' };
    const eve = await statusOf({ authorization: 'Bearer eve', ...session });
    const unknown = await statusOf({ authorization, 'mcp-session-id': 'nobody' });
    expect([eve, unknown]).toEqual([404, 404]);
  });

  test("counts a user's sessions, and does not store uninitialized ones", async () => {
    const { url, server } = await served({ limits: { sessionsPerUser: 2 } });
    const headers = {
      authorization: 'Bearer ann',
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    for (let i = 0; i < 5; i += 1)
      await fetch(url, {
        method: 'POST',
        headers,
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      });
    expect(server.size.connections).toBe(0);
    await connected(url);
    await connected(url);
    await expect(connected(url)).rejects.toThrow('too many sessions');
    await connected(url, { token: 'eve' });
  });

  test('counts sessions that start at the same time', async () => {
    const { url, server } = await served({ limits: { sessionsPerUser: 2 } });
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'test', version: '0' },
    };
    const initialize = () =>
      server.fetch(
        new Request(url, {
          method: 'POST',
          headers: {
            host: new URL(url).host,
            authorization: 'Bearer ann',
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
          },
          body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
        }),
      );
    const answers = await Promise.all(Array.from({ length: 12 }, initialize));
    expect(answers.filter(({ ok }) => ok)).toHaveLength(2);
    expect(server.size.connections).toBe(2);
  });

  test('returns an HTTP response to any request body', async () => {
    const { url, server, errors } = await served();
    const ann = await connected(url);
    const headers = {
      authorization: 'Bearer ann',
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': ann.transport.sessionId ?? '',
    };
    const methods = fc.constantFrom('tools/call', 'tasks/get', 'tasks/cancel', 'tasks/list', 'x');
    const message = fc.record({
      jsonrpc: fc.constant('2.0'),
      id: fc.oneof(fc.integer(), fc.string(), fc.constant(null)),
      method: methods,
      params: fc.jsonValue(),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string(),
          fc.json(),
          message.map((value) => JSON.stringify(value)),
        ),
        async (body) => {
          const response = await fetch(url, { method: 'POST', headers, body });
          await response.text();
          expect(response.status).toBeLessThan(500);
        },
      ),
      { numRuns: 60 },
    );
    const big = await fetch(url, { method: 'POST', headers, body: 'x'.repeat(1_100_000) });
    expect(big.status).toBe(413);
    expect((await ann.client.listTools()).tools).toHaveLength(subagents.length);
    expect(server.size).toEqual({ connections: 1, users: expect.any(Number) });
    expect(errors.filter((error) => !(error instanceof Error))).toEqual([]);
  });

  test('refuses invalid options, and names them in the error', async () => {
    const runtime = createRuntime({ environment: nodeEnvironment() });
    await expect(mcpServer({ runtime, subagents: [] })).rejects.toThrow('subagents');
    await expect(mcpServer({ runtime, subagents: [...subagents, ...subagents] })).rejects.toThrow(
      'unique',
    );
    await expect(mcpServer({ runtime, subagents, ttlMs: 0 })).rejects.toThrow('ttlMs');
  });
});

describe('a server in its own process', () => {
  function folder(): string {
    const path = mkdtempSync(join(tmpdir(), 'offstage-mcp-'));
    onTestFinished(() => rmSync(path, { recursive: true, force: true }));
    return join(path, 'tasks.journal');
  }

  const ARGS = ['--disable-warning=ExperimentalWarning', PROGRAM];

  async function program(path: string): Promise<{ child: ChildProcess; url: string }> {
    const child = spawn(process.execPath, [...ARGS, path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    return { child, url: `http://127.0.0.1:${line}/mcp` };
  }

  async function killed(child: ChildProcess): Promise<void> {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  test('continues a delegated task after the server has been killed', async () => {
    const path = folder();
    const first = await program(path);
    const before = await connected(first.url, { answer: never });
    const id = await begun(before, 'ride_booker');
    // The process is killed at once. The client has the id, so the task is in the journal.
    await killed(first.child);
    const second = await program(path);
    const asking = await connected(second.url, { answer: never });
    void asking.tasks.getTaskResult(id, CallToolResultSchema).catch(() => undefined);
    await expect.poll(() => asking.asked.length, { timeout: 30_000 }).toBe(1);
    // The process is killed while the task asks a question.
    await killed(second.child);
    const third = await program(path);
    const answering = await connected(third.url, { answer: answers('premium') });
    const result = await answering.tasks.getTaskResult(id, CallToolResultSchema);
    expect(textOf(result)).toContain('premium');
    expect(answering.asked).toHaveLength(1);
    // The process is killed after the task has ended, and the result is stored.
    await killed(third.child);
    const fourth = await program(path);
    const later = await connected(fourth.url, { answer: never });
    expect(textOf(await later.tasks.getTaskResult(id, CallToolResultSchema))).toContain('premium');
    expect((await later.tasks.listTasks()).tasks).toMatchObject([
      { taskId: id, status: 'completed' },
    ]);
    expect(later.asked).toEqual([]);
  });

  test('supports standard input and output, even after the server has been killed', async () => {
    const path = folder();
    const open = async (answer: Answerer) => {
      const client = new Client(
        { name: 'test', version: '0' },
        { capabilities: { elicitation: {} } },
      );
      client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params.message, params));
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: [...ARGS, path, 'stdio'],
      });
      await client.connect(transport);
      onTestFinished(() => client.close());
      const gone = new Promise<void>((resolve) => {
        // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a class of the SDK has no other way
        client.onclose = resolve;
      });
      return { client, tasks: client.experimental.tasks, transport, gone };
    };
    const first = await open(never);
    const created = first.tasks.callToolStream(
      { name: 'ride_booker', arguments: { task: 'To the airport' } },
      CallToolResultSchema,
      { task: {} },
    );
    const { value } = await created.next();
    const id = value?.type === 'taskCreated' ? value.task.taskId : '';
    process.kill(first.transport.pid ?? 0, 'SIGKILL');
    await first.gone;
    const second = await open(answers('economy'));
    expect(textOf(await second.tasks.getTaskResult(id, CallToolResultSchema))).toContain('economy');
  });
});
