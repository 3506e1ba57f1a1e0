// MCP servers with a tool that performs the acts in its task, without a model. The 2025-11-25 server uses the official
// SDK. The 2026-07-28 server is written by hand, because no SDK runs tasks on a server. Both use HTTP on 127.0.0.1.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  InMemoryTaskMessageQueue,
  InMemoryTaskStore,
} from '@modelcontextprotocol/sdk/experimental/tasks';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import type { RelayActor } from '../../../../src/testing/doubles/relay-acts.ts';
import { actsIn, perform } from '../../../../src/testing/doubles/relay-acts.ts';

export interface ActingServer {
  readonly url: string;
  /** The received tasks, in order. */
  readonly told: readonly string[];
  /** The received answers, each with the message that asked for it. */
  readonly answers: readonly string[];
  readonly headers: readonly IncomingMessage['headers'][];
  /** The `_meta` fields of the calls to its tool. */
  readonly metas: readonly Readonly<Record<string, unknown>>[];
  /** Returns the number of sessions, or of requests that have no answer yet. */
  running(): number;
  close(): void;
}

export interface ActingServerOptions {
  readonly protocol: '2025-11-25' | '2026-07-28';
  /** The port to listen on. @defaultValue a free one */
  readonly port?: number;
  /** A 2025-11-25 question that does not reach the client the first time, as on a broken connection. */
  readonly loses?: string;
}

interface Form {
  readonly mode: 'form';
  readonly message: string;
  readonly requestedSchema: {
    readonly type: 'object';
    readonly properties: Readonly<Record<string, object>>;
    readonly required: readonly string[];
  };
  readonly _meta?: Readonly<Record<string, unknown>>;
}
interface FormResult {
  readonly action: string;
  readonly content?: Readonly<Record<string, unknown>> | undefined;
}

interface Performing {
  readonly cancelled: AbortSignal;
  progress(text: string): Promise<void>;
  /** Shows a form to the client; null if the form was cancelled. */
  ask(form: Form): Promise<FormResult | null>;
  die(): void | Promise<void>;
  deaf(): void;
  garbage(): void;
}

/** Performs a task. Returns its text and how it ended. */
async function act(task: string, on: Performing) {
  let text = '';
  const actor: RelayActor = {
    cancelled: on.cancelled,
    say(words) {
      text += words;
    },
    progress: (words) => on.progress(words),
    toolStarted: () => {},
    toolEnded: () => {},
    async permission(_toolId, { title, input }) {
      const result = await on.ask({
        mode: 'form',
        message: title,
        requestedSchema: {
          type: 'object',
          properties: { allow: { type: 'boolean', title: 'Allow it' } },
          required: ['allow'],
        },
        _meta: { 'offstage/input': input },
      });
      if (result?.action !== 'accept') return 'cancelled';
      return result.content?.['allow'] === true ? 'permitted' : 'denied';
    },
    async question(message, options) {
      const choices = options.map(({ id, label }) => ({ const: id, title: label }));
      const answer = { type: 'string', ...(choices.length > 0 ? { oneOf: choices } : {}) };
      const result = await on.ask({
        mode: 'form',
        message,
        requestedSchema: { type: 'object', properties: { answer }, required: ['answer'] },
      });
      const given = result?.action === 'accept' ? result.content?.['answer'] : undefined;
      if (typeof given !== 'string') return null;
      return choices.length > 0 ? { optionId: given, text: given } : { text: given };
    },
    deaf: () => on.deaf(),
    async die() {
      await on.die();
      return new Promise<never>(() => {});
    },
    garbage: () => on.garbage(),
  };
  const reason = await perform(actsIn(task), actor);
  return { reason, text };
}

interface Handler {
  handle(request: IncomingMessage, response: ServerResponse, body: unknown): Promise<void>;
  running(): number;
  forget(): void;
}

interface Shared {
  readonly told: string[];
  readonly answers: string[];
  die(): void;
  /** The question that will be lost next. */
  loses: string | undefined;
}

export async function actingServer({
  protocol,
  port = 0,
  loses,
}: ActingServerOptions): Promise<ActingServer> {
  const headers: IncomingMessage['headers'][] = [];
  const metas: Readonly<Record<string, unknown>>[] = [];
  const shared: Shared = { told: [], answers: [], die: () => close(), loses };
  const handler = protocol === '2025-11-25' ? tasksOf2025(shared) : tasksOf2026(shared);
  const server = createServer((request, response) => {
    headers.push(request.headers);
    void (async () => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      const message = (body === '' ? undefined : JSON.parse(body)) as Message | undefined;
      if (message?.method === 'tools/call') metas.push(message.params?._meta ?? {});
      await handler.handle(request, response, message);
    })().catch(() => response.destroy());
  });
  const close = (): void => {
    handler.forget();
    server.closeAllConnections();
    server.close();
  };
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const { told, answers } = shared;
  return { url, told, answers, headers, metas, running: () => handler.running(), close };
}

interface Message {
  readonly method?: string;
  readonly params?: { readonly _meta?: Readonly<Record<string, unknown>> };
}

/** A store that reports which tasks a client cancels. */
class ObservedStore extends InMemoryTaskStore {
  readonly cancels = new Map<string, AbortController>();

  override async updateTaskStatus(
    ...args: Parameters<InMemoryTaskStore['updateTaskStatus']>
  ): Promise<void> {
    const [taskId, status] = args;
    const cancel = this.cancels.get(taskId);
    // A task that ignores its cancellation, so that the client waits forever.
    if (status === 'cancelled' && cancel === undefined) await new Promise<never>(() => {});
    await super.updateTaskStatus(...args);
    if (status === 'cancelled') cancel?.abort();
  }
}

function tasksOf2025(shared: Shared): Handler {
  const { told, answers, die } = shared;
  const taskStore = new ObservedStore();
  const taskMessageQueue = new InMemoryTaskMessageQueue();
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const streams = new Set<ServerResponse>();

  const open = async (): Promise<StreamableHTTPServerTransport> => {
    const server = new McpServer(
      { name: 'acting', version: '1' },
      {
        capabilities: { tasks: { requests: { tools: { call: {} } }, cancel: {}, list: {} } },
        taskStore,
        taskMessageQueue,
      },
    );
    server.experimental.tasks.registerToolTask(
      'work',
      {
        description: 'Performs acts',
        inputSchema: { task: z.string() },
        execution: { taskSupport: 'required' },
      },
      {
        async createTask({ task: given }, { taskStore: store, sendRequest }) {
          told.push(given);
          const task = await store.createTask({ ttl: 600_000, pollInterval: 20 });
          const { taskId } = task;
          const cancel = new AbortController();
          taskStore.cancels.set(taskId, cancel);
          const status = (state: 'working' | 'input_required', message?: string) =>
            store.updateTaskStatus(taskId, state, message).catch(() => {});
          void act(given, {
            cancelled: cancel.signal,
            progress: (text) => status('working', text),
            async ask(form) {
              await status('input_required', form.message);
              const asked = { method: 'elicitation/create', params: form } as never;
              const isLost = shared.loses === form.message;
              if (isLost) shared.loses = undefined;
              const result: FormResult | null = await Promise.race([
                isLost
                  ? new Promise<never>(() => {})
                  : sendRequest(asked, ElicitResultSchema, { relatedTask: { taskId } } as never),
                new Promise<null>((resolve) => {
                  cancel.signal.addEventListener('abort', () => resolve(null));
                }),
              ]).catch(() => null);
              if (result) answers.push(`${form.message} => ${JSON.stringify(result)}`);
              await status('working');
              return result;
            },
            die,
            deaf: () => taskStore.cancels.delete(taskId),
            garbage() {
              for (const stream of streams)
                if (stream.headersSent) stream.write('event: message\ndata: {"jsonrpc"\n\n');
            },
          })
            .then(async ({ reason, text }) => {
              if (reason === 'cancelled') return;
              const isError = reason !== 'completed';
              const content = [{ type: 'text' as const, text: isError ? reason : text }];
              await store.storeTaskResult(taskId, isError ? 'failed' : 'completed', {
                content,
                isError,
              });
            })
            .catch(() => {});
          return { task };
        },
        getTask: async (_args, { taskId, taskStore: store }) => store.getTask(taskId),
        getTaskResult: async (_args, { taskId, taskStore: store }) =>
          (await store.getTaskResult(taskId)) as never,
      },
    );
    server.registerTool(
      'echo',
      { inputSchema: { words: z.string() } },
      async ({ words }, extra) => {
        const sure = await extra.sendRequest(
          {
            method: 'elicitation/create',
            params: {
              mode: 'form',
              message: 'Say it?',
              requestedSchema: { type: 'object', properties: {} },
            },
          },
          ElicitResultSchema,
        );
        return { content: [{ type: 'text', text: `${sure.action}: ${words}` }] };
      },
    );
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => {
        sessions.set(id, transport);
      },
      onsessionclosed: (id) => {
        sessions.delete(id);
      },
    });
    await server.connect(transport);
    return transport;
  };

  return {
    async handle(request, response, body) {
      const id = request.headers['mcp-session-id'];
      streams.add(response);
      response.once('close', () => streams.delete(response));
      const transport = typeof id === 'string' ? sessions.get(id) : await open();
      if (transport) await transport.handleRequest(request, response, body);
      else response.writeHead(404).end();
    },
    running: () => sessions.size,
    forget: () => sessions.clear(),
  };
}

/** The params of the requests with these methods. */
interface Params {
  readonly name: string;
  readonly arguments: { readonly task: string };
  readonly taskId: string;
  readonly inputResponses?: Readonly<Record<string, FormResult>>;
  readonly requestState?: string;
  readonly _meta: Readonly<Record<string, { readonly extensions?: Record<string, unknown> }>>;
}

interface Task2026 {
  readonly taskId: string;
  status: string;
  statusMessage?: string;
  inputRequests?: Record<string, unknown>;
  result?: unknown;
}

const TASKS = 'io.modelcontextprotocol/tasks';

function tasksOf2026({ told, answers, die }: Shared): Handler {
  const tasks = new Map<
    string,
    {
      readonly task: Task2026;
      readonly cancel: AbortController;
      readonly open: Map<string, (result: FormResult) => void>;
      isDeaf: boolean;
      isGarbled: boolean;
    }
  >();
  const complete = { resultType: 'complete' };
  const looks = new Set<() => void>();
  let answering = 0;

  const begin = (given: string): Task2026 => {
    told.push(given);
    const task: Task2026 = { taskId: crypto.randomUUID(), status: 'working' };
    const cancel = new AbortController();
    const entry = {
      task,
      cancel,
      open: new Map<string, (result: FormResult) => void>(),
      isDeaf: false,
      isGarbled: false,
    };
    tasks.set(task.taskId, entry);
    let asked = 0;
    const ended = (): boolean => cancel.signal.aborted;
    void act(given, {
      cancelled: cancel.signal,
      async progress(text) {
        if (!ended()) task.statusMessage = text;
      },
      ask(form) {
        asked += 1;
        const key = `ask-${asked}`;
        const { promise, resolve } = Promise.withResolvers<FormResult | null>();
        task.status = 'input_required';
        task.inputRequests = { [key]: { method: 'elicitation/create', params: form } };
        entry.open.set(key, (result) => {
          entry.open.delete(key);
          answers.push(`${form.message} => ${JSON.stringify(result)}`);
          delete task.inputRequests;
          task.status = 'working';
          resolve(result);
        });
        cancel.signal.addEventListener('abort', () => resolve(null));
        return promise;
      },
      async die() {
        // The agent waits until the client has read what the agent said.
        await new Promise<void>((resolve) => looks.add(resolve));
        die();
      },
      deaf() {
        entry.isDeaf = true;
      },
      garbage() {
        entry.isGarbled = true;
      },
    }).then(({ reason, text }) => {
      if (reason === 'cancelled') return;
      const isError = reason !== 'completed';
      task.status = 'completed';
      const content = [{ type: 'text', text: isError ? reason : text }];
      task.result = { ...complete, content, isError };
    });
    return task;
  };

  const methods: Record<string, (params: Params) => unknown> = {
    'tools/list': () => ({
      ...complete,
      tools: ['work', 'ask_back'].map((name) => ({
        name,
        inputSchema: {
          type: 'object',
          properties: { task: { type: 'string' } },
          required: ['task'],
        },
      })),
    }),
    'tools/call'({ name, arguments: args, _meta, inputResponses, requestState }) {
      const { task } = args;
      if (name === 'ask_back') {
        const sure = inputResponses?.['sure'];
        if (sure && requestState === 'signed')
          return { ...complete, content: [{ type: 'text', text: `${sure.action}: ${task}` }] };
        const params = {
          mode: 'form',
          message: 'Sure?',
          requestedSchema: { type: 'object', properties: {} },
        };
        return {
          resultType: 'input_required',
          inputRequests: { sure: { method: 'elicitation/create', params } },
          requestState: 'signed',
        };
      }
      const { extensions } = _meta['io.modelcontextprotocol/clientCapabilities'] ?? {};
      if (!extensions || !(TASKS in extensions)) throw new Error('Missing capability');
      return { resultType: 'task', pollIntervalMs: 20, ...begin(task) };
    },
    'tasks/get'({ taskId }) {
      const entry = tasks.get(taskId);
      if (!entry) throw new Error(`Unknown task ${taskId}`);
      return { ...complete, pollIntervalMs: 20, ...entry.task };
    },
    'tasks/update'({ taskId, inputResponses }) {
      const entry = tasks.get(taskId);
      for (const [key, result] of Object.entries(inputResponses ?? {}))
        entry?.open.get(key)?.(result);
      return complete;
    },
    async 'tasks/cancel'({ taskId }) {
      const entry = tasks.get(taskId);
      if (entry?.isDeaf === true) await new Promise<never>(() => {});
      if (entry && entry.task.status !== 'completed') {
        delete entry.task.inputRequests;
        entry.task.status = 'cancelled';
        entry.cancel.abort();
      }
      return complete;
    },
  };

  return {
    async handle(_request, response, body) {
      const { id, method, params } = body as {
        readonly id: number;
        readonly method: string;
        readonly params: Params;
      };
      answering += 1;
      response.once('close', () => {
        answering -= 1;
        if (method === 'tasks/get') for (const looked of looks) looked();
      });
      let answer: object;
      try {
        answer = { result: await methods[method]?.(params) };
      } catch (error) {
        answer = { error: { code: -32602, message: (error as Error).message } };
      }
      const text = JSON.stringify({ jsonrpc: '2.0', id, ...answer });
      response
        .setHeader('content-type', 'text/event-stream')
        .end(`event: message\ndata: ${text}\n\n`);
    },
    running: () => answering,
    forget: () => {},
  };
}
