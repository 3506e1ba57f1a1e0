// An external server with protocol 2025-11-25, accessed through the official SDK's client. The client polls
// `tasks/get`, and the server sends questions as requests while `tasks/result` is waiting.

import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { z } from 'zod';
import { messageOf } from '../../values/errors.ts';
import type { AskedForm } from '../relays/form-fields.ts';
import {
  allTools,
  callResultSchema,
  failure,
  read,
  Refusal,
  taskSchema,
  type Begun,
  type CallResult,
  type RemoteServer,
  type RemoteTask,
  type RemoteTool,
  type FormResult,
  type Heard,
} from './remote-server.ts';
import type { ClientSdk } from './load-sdk.ts';
import { OFFSTAGE_VERSION } from '../../values/version.ts';

const RELATED = 'io.modelcontextprotocol/related-task';
const VERSION = '2025-11-25';
/** The maximum timer value. This module sets no deadline for tasks. */
const NEVER = 2_147_483_647;

const anything = z.looseObject({});
const polled = taskSchema.extend({ pollInterval: z.number().nullish() });
const created = z.looseObject({ task: polled });
const ENDED = new Set<string>(['completed', 'failed', 'cancelled']);

interface Remote2025Options {
  readonly heard: Heard;
  readonly ttlMs: number;
  readonly signal: AbortSignal;
  /** The W3C trace context (SEP 414). */
  readonly traceparent: (() => string | undefined) | undefined;
}

export class Remote2025 implements RemoteServer {
  readonly #sdk: ClientSdk;
  readonly #client: Client;
  readonly #heard: Heard;
  readonly #ttlMs: number;
  readonly #traceparent: Remote2025Options['traceparent'];
  /** The pending `tasks/result` requests, by task. Questions arrive only while such a request is pending. */
  readonly #results = new Map<string, Promise<CallResult>>();
  readonly #over = new AbortController();
  #asked = 0;

  static async open(
    sdk: ClientSdk,
    transport: Transport,
    options: Remote2025Options,
  ): Promise<Remote2025> {
    const { signal } = options;
    const server = new Remote2025(sdk, options);
    const isKnown = transport.sessionId !== undefined;
    const stop = (): void => void server.close('suspended');
    signal.addEventListener('abort', stop, { once: true });
    try {
      await server.#client.connect(transport, { timeout: NEVER, signal });
      if (isKnown) {
        // A resumed session is not initialized again. The response shows whether the server still has the session.
        transport.setProtocolVersion?.(VERSION);
        await server.#client.ping({ timeout: NEVER, signal });
      }
    } catch (error) {
      await server.close('suspended');
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
    return server;
  }

  private constructor(sdk: ClientSdk, { heard, ttlMs, traceparent }: Remote2025Options) {
    this.#sdk = sdk;
    this.#traceparent = traceparent;
    this.#heard = heard;
    this.#ttlMs = ttlMs;
    const client = new sdk.Client(
      { name: 'offstage', version: OFFSTAGE_VERSION },
      { capabilities: { elicitation: { form: {} } } },
    );
    this.#client = client;
    // The SDK's client uses callback properties, not listeners.
    Object.assign(client, {
      onclose: () => {
        if (!this.#over.signal.aborted) heard.closed('the connection was closed');
      },
      onerror: (error: Error) => {
        if (!this.#over.signal.aborted) heard.report(error);
      },
    });
    client.setRequestHandler(sdk.ElicitRequestSchema, ({ params }, { signal }) =>
      this.#asks(params, signal),
    );
    client.setNotificationHandler(sdk.TaskStatusNotificationSchema, () => heard.changed());
  }

  tools(signal: AbortSignal): Promise<readonly RemoteTool[]> {
    return allTools((params) => this.#request('tools/list', params, signal));
  }

  async call(
    { name, isTask }: RemoteTool,
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<Begun> {
    const params = { name, arguments: args };
    if (!isTask) {
      const result = read(callResultSchema, await this.#request('tools/call', params, signal));
      return { type: 'result', result };
    }
    const task = { ttl: this.#ttlMs };
    const given = read(created, await this.#request('tools/call', { ...params, task }, signal));
    return { type: 'task', task: await this.#taskOf(given.task) };
  }

  async look(taskId: string, signal: AbortSignal): Promise<RemoteTask> {
    return this.#taskOf(read(polled, await this.#request('tasks/get', { taskId }, signal)));
  }

  async cancel(taskId: string): Promise<void> {
    await this.#request('tasks/cancel', { taskId });
  }

  get sessionId(): string | null {
    return this.#client.transport?.sessionId ?? null;
  }

  async close(why: 'ended' | 'suspended'): Promise<void> {
    this.#over.abort(new Error('released'));
    // Ends the session on an HTTP server that has sessions. Other servers refuse this request.
    const { transport } = this.#client;
    if (why === 'ended' && transport instanceof this.#sdk.StreamableHTTPClientTransport)
      await transport.terminateSession().catch(() => {});
    await this.#client.close().catch(() => {});
  }

  async #taskOf(given: z.infer<typeof polled>): Promise<RemoteTask> {
    const { taskId, status, statusMessage, pollInterval } = given;
    const message = statusMessage ?? '';
    const waiting = this.#results.get(taskId) ?? this.#wait(taskId);
    let result: CallResult | null = null;
    if (status === 'completed' || status === 'failed')
      result = await waiting.catch((error: unknown) =>
        failure(status === 'failed' && message !== '' ? message : error),
      );
    if (ENDED.has(status)) this.#results.delete(taskId);
    return { taskId, status, message, pollMs: pollInterval ?? null, result };
  }

  #wait(taskId: string): Promise<CallResult> {
    const waiting = this.#request('tasks/result', { taskId }, this.#over.signal).then((result) =>
      read(callResultSchema, result),
    );
    this.#results.set(taskId, waiting);
    waiting.then(
      () => this.#heard.changed(),
      (error: unknown) => {
        // Only the task's state determines the result. The next regular poll waits for the result again.
        if (this.#results.get(taskId) === waiting) this.#results.delete(taskId);
        if (!(error instanceof Refusal) && !this.#over.signal.aborted) this.#heard.report(error);
      },
    );
    return waiting;
  }

  async #request(
    method: 'tools/list' | 'tools/call' | 'tasks/get' | 'tasks/result' | 'tasks/cancel',
    params: object,
    signal: AbortSignal = this.#over.signal,
  ): Promise<unknown> {
    const traceparent = this.#traceparent?.();
    const traced = traceparent === undefined ? {} : { _meta: { traceparent } };
    try {
      return await this.#client.request({ method, params: { ...params, ...traced } }, anything, {
        timeout: NEVER,
        signal,
        onprogress: ({ message }) => {
          if (message !== undefined) this.#heard.progress(message);
        },
      });
    } catch (error) {
      const { McpError, ErrorCode } = this.#sdk;
      const lost: number = ErrorCode.ConnectionClosed;
      const isRefusal = error instanceof McpError && error.code !== lost;
      throw isRefusal ? new Refusal(messageOf(error), { cause: error }) : error;
    }
  }

  #asks(
    params: {
      readonly message: string;
      readonly _meta?: Readonly<Record<string, unknown>> | undefined;
    },
    signal: AbortSignal,
  ): Promise<{ [key: string]: unknown } & FormResult> {
    const related = params._meta?.[RELATED] as { readonly taskId?: unknown } | undefined;
    const taskId = typeof related?.taskId === 'string' ? related.taskId : null;
    this.#asked += 1;
    const key = `request-${this.#asked}`;
    const form: AskedForm = params;
    return new Promise((resolve) => {
      this.#heard.asked(taskId, {
        key,
        form,
        signal,
        answer: (result) => resolve({ ...result }),
      });
    });
  }
}
