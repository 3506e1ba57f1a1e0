// The 2026-07-28 protocol, with the official extension's task client, and by hand where that has no client.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { withTasks } from '@modelcontextprotocol/ext-tasks/client';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { createRuntime, memoryJournal, type Journal } from '../../../src/index.ts';
import { rideServer, subagents } from './support/ride-server.ts';

const TASKS = 'io.modelcontextprotocol/tasks';
const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

type Params = Readonly<Record<string, unknown>>;
interface Answer {
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

async function served(journal: Journal = memoryJournal()) {
  const errors: unknown[] = [];
  const runtime = createRuntime({ environment: nodeEnvironment(), journal });
  const server = await rideServer(runtime, { onError: (error) => errors.push(error) });
  const http = createServer((request, response) => server.handle(request, response));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const stop = async (): Promise<void> => {
    await server.close();
    http.closeAllConnections();
    http.close();
  };
  onTestFinished(stop);
  const { port } = http.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/mcp`;
  const post = (
    method: string,
    params: Params = {},
    { token = 'ann', capabilities = {}, headers = {} }: Options = {},
  ): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...headers,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method,
        params: { ...params, _meta: { [VERSION]: '2026-07-28', [CAPABILITIES]: capabilities } },
      }),
    });
  const ask = async (method: string, params?: Params, options?: Options): Promise<Answer> =>
    (await (await post(method, params, options)).json()) as Answer;
  return { url, post, ask, stop, errors };
}

interface Options {
  readonly token?: string;
  readonly capabilities?: Params;
  readonly headers?: Record<string, string>;
}

const withExtension = { capabilities: { extensions: { [TASKS]: {} } } };
const withForms = { capabilities: { elicitation: { form: {} } } };

/** In the client's types, the type of the result follows from the request. */
const answering = (answer: () => Promise<unknown>) =>
  ({ onInputRequest: answer }) as unknown as Parameters<typeof withTasks>[1];
const ride = { name: 'ride_booker', arguments: { task: 'To the airport' } };
const premium = { action: 'accept', content: { answer: 'premium' } } as const;

/** Sends one POST per request, as a client of the extension expects. */
type Port = Parameters<typeof withTasks>[0];

function port(url: string): Port {
  let id = 0;
  const never = () => () => undefined;
  return {
    endpointId: 'test',
    invalidated: false,
    taskCapabilities: { generation: 'v2', capabilities: {} },
    onServerRequest: never,
    onNotification: never,
    onInvalidated: never,
    async dispatch(request, options) {
      id += 1;
      const sent = request as { readonly params?: Params };
      const { params = {} } = sent;
      const response = await fetch(url, {
        method: 'POST',
        signal: options?.signal ?? null,
        headers: {
          authorization: 'Bearer ann',
          'content-type': 'application/json',
          'mcp-protocol-version': '2026-07-28',
          ...options?.context?.headers,
        },
        body: JSON.stringify({
          ...sent,
          jsonrpc: '2.0',
          id,
          params: { ...params, _meta: { [VERSION]: '2026-07-28', ...(params['_meta'] as Params) } },
        }),
      });
      const { result, error } = (await response.json()) as Answer;
      const answer = error ? { kind: 'error', error } : { kind: 'result', result: result ?? {} };
      return answer as Awaited<ReturnType<Port['dispatch']>>;
    },
  };
}

test('lets a client with task support delegate work, answer a question and get the result', async () => {
  const { url } = await served();
  const asked: unknown[] = [];
  const session = withTasks(
    port(url),
    answering(async () => {
      asked.push('asked');
      return premium;
    }),
  );
  const execution = await session.callTool('ride_booker', { task: 'To the airport' });
  expect(execution.kind).toBe('task');
  const { outcome } = await execution.settle();
  expect(outcome.status).toBe('completed');
  expect(JSON.stringify(outcome)).toContain('premium');
  expect(asked).toHaveLength(1);
});

test('resumes a task by its id for another client on another server', async () => {
  const journal = memoryJournal();
  const first = await served(journal);
  const parked = await withTasks(
    port(first.url),
    answering(() => new Promise(() => undefined)),
  ).callTool('ride_booker', { task: 'To the airport' });
  if (parked.kind !== 'task') throw new Error('no task');
  let reference: unknown;
  await parked.handoff((given) => void (reference = JSON.parse(JSON.stringify(given))));
  await first.stop();
  const second = await served(journal);
  const session = withTasks(
    port(second.url),
    answering(async () => premium),
  );
  const resumed = await session.resumeTask(reference as Parameters<typeof session.resumeTask>[0]);
  expect(JSON.stringify((await resumed.settle()).outcome)).toContain('premium');
});

test('cancels a task, and returns a failed subagent as a result', async () => {
  const { url, ask } = await served();
  const session = withTasks(
    port(url),
    answering(async () => premium),
  );
  const slow = await session.callTool('worker', { what: 'everything' });
  if (slow.kind !== 'task') throw new Error('no task');
  const settled = slow.settle();
  await slow.cancel();
  expect((await settled).outcome.status).toBe('cancelled');
  const { result = {} } = await ask(
    'tools/call',
    { name: 'broken', arguments: { task: 'x' } },
    withExtension,
  );
  const failed = async () =>
    (await ask('tasks/get', { taskId: result['taskId'] }, withExtension)).result;
  await expect
    .poll(failed)
    .toMatchObject({ status: 'completed', result: { resultType: 'complete', isError: true } });
});

test('asks a client without task support in a second round of the same call', async () => {
  const { ask } = await served();
  const { result = {} } = await ask('tools/call', ride, withForms);
  expect(result).toMatchObject({ resultType: 'input_required', requestState: expect.any(String) });
  const { inputRequests = {}, requestState } = result as {
    inputRequests?: Record<string, unknown>;
    requestState?: string;
  };
  const [key = ''] = Object.keys(inputRequests);
  const wrong = { [key]: { action: 'accept', content: { answer: 'first class' } } };
  const refused = await ask(
    'tools/call',
    { ...ride, requestState, inputResponses: wrong },
    withForms,
  );
  expect(refused.error).toMatchObject({ code: -32602, data: { code: 'INVALID_ANSWER' } });
  const next = { ...ride, requestState, inputResponses: { [key]: premium } };
  // The state is not valid for another user or another tool.
  const eve = await ask('tools/call', next, { ...withForms, token: 'eve' });
  const other = await ask('tools/call', { ...next, name: 'mailer' }, withForms);
  expect([eve.error?.code, other.error?.code]).toEqual([-32602, -32602]);
  const done = await ask('tools/call', next, withForms);
  expect(done.result).toMatchObject({ resultType: 'complete', isError: false });
  expect(JSON.stringify(done.result)).toContain('premium');
});

test('completes the call without asking if the client cannot be asked', async () => {
  const { ask } = await served();
  expect((await ask('tools/call', ride)).result).toMatchObject({ resultType: 'complete' });
});

test('restricts tasks to clients with the tasks capability, and each task to its own user', async () => {
  const { ask } = await served();
  const { result = {} } = await ask('tools/call', ride, withExtension);
  const { taskId } = result;
  expect((await ask('tasks/get', { taskId })).error).toMatchObject({
    code: -32021,
    data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
  });
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const params = { inputResponses: {} };
    const eve = { ...withExtension, token: 'eve' };
    const own = await ask(method, { ...params, taskId: 'nobody' }, withExtension);
    const ofEve = await ask(method, { ...params, taskId }, eve);
    expect(ofEve).toEqual(own);
    expect(own.error?.code).toBe(-32602);
  }
});

test('accepts an answer once, and ignores keys of questions that are not open', async () => {
  const { ask } = await served();
  const { result = {} } = await ask('tools/call', ride, withExtension);
  const { taskId } = result;
  const state = async () => (await ask('tasks/get', { taskId }, withExtension)).result ?? {};
  await expect.poll(state).toMatchObject({ status: 'input_required' });
  const { inputRequests } = await state();
  const [key = ''] = Object.keys(inputRequests as Params);
  const inputResponses = { [key]: premium, other: premium };
  const both = await Promise.all(
    [1, 2].map(() => ask('tasks/update', { taskId, inputResponses }, withExtension)),
  );
  expect(both.map((answer) => answer.result)).toEqual([
    { resultType: 'complete' },
    { resultType: 'complete' },
  ]);
  await expect.poll(state).toMatchObject({ status: 'completed' });
  expect(JSON.stringify(await state())).toContain('premium');
});

test('confirms an answer once it is in the journal', async () => {
  const inner = memoryJournal();
  let gate: Promise<void> | null = null;
  const { ask } = await served({
    ...inner,
    async append(entry) {
      await gate;
      inner.append(entry);
    },
    read: (query) => inner.read(query),
  });
  const { result = {} } = await ask('tools/call', ride, withExtension);
  const { taskId } = result;
  const state = async () => (await ask('tasks/get', { taskId }, withExtension)).result ?? {};
  await expect.poll(state).toMatchObject({ status: 'input_required' });
  const { inputRequests } = await state();
  const [key = ''] = Object.keys(inputRequests as Params);
  const shut = Promise.withResolvers<void>();
  gate = shut.promise;
  let isTaken = false;
  const taken = ask(
    'tasks/update',
    { taskId, inputResponses: { [key]: premium } },
    withExtension,
  ).then(() => (isTaken = true));
  // The question is over for clients, although its answer has not been written yet.
  await expect.poll(state).toMatchObject({ status: 'working' });
  expect(isTaken).toBe(false);
  shut.resolve();
  await taken;
  await expect.poll(state).toMatchObject({ status: 'completed' });
});

test('supports discovery and tools, and refuses contradictory headers', async () => {
  const { ask, post } = await served();
  expect((await ask('server/discover')).result).toMatchObject({
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { extensions: { [TASKS]: {} } },
  });
  expect((await ask('tools/list')).result?.['tools']).toHaveLength(subagents.length);
  const statuses = async (headers: Record<string, string>) => {
    const response = await post('tools/list', {}, { headers });
    return [response.status, ((await response.json()) as Answer).error?.code];
  };
  expect(await statuses({ 'mcp-method': 'tools/call' })).toEqual([400, -32020]);
  expect(await statuses({ 'mcp-protocol-version': '2025-11-25' })).toEqual([400, -32020]);
  expect((await post('nothing')).status).toBe(404);
  expect((await post('tools/list', {}, { token: 'mallory' })).status).toBe(401);
});

test('returns an HTTP response to any request body', async () => {
  const { url, ask, errors } = await served();
  const method = fc.constantFrom('tools/call', 'tasks/get', 'tasks/update', 'tasks/cancel', 'x');
  const message = fc.record({
    jsonrpc: fc.constant('2.0'),
    id: fc.oneof(fc.integer(), fc.string(), fc.constant(null)),
    method,
    params: fc.oneof(
      fc.jsonValue(),
      fc.record({
        name: fc.constantFrom('worker', 'ride_booker', '__proto__', 'constructor'),
        arguments: fc.jsonValue(),
        taskId: fc.string(),
        inputResponses: fc.jsonValue(),
        requestState: fc.jsonValue(),
      }),
    ),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.json(),
        message.map((value) => JSON.stringify(value)),
      ),
      async (body) => {
        const response = await fetch(url, {
          method: 'POST',
          headers: {
            authorization: 'Bearer ann',
            'content-type': 'application/json',
            'mcp-protocol-version': '2026-07-28',
          },
          body,
        });
        await response.text();
        expect(response.status).toBeLessThan(500);
      },
    ),
    { numRuns: 60 },
  );
  expect((await ask('tools/list')).result?.['tools']).toHaveLength(subagents.length);
  expect(errors).toEqual([]);
});
