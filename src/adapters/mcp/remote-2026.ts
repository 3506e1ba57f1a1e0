// An external server with protocol 2026-07-28 and its tasks extension. Each request is an independent POST. A task's
// open questions are part of the task's state.

import { z } from 'zod';
import { raceAbort } from '../../values/race-abort.ts';
import { messageOf } from '../../values/errors.ts';
import { OFFSTAGE_VERSION } from '../../values/version.ts';
import {
  allTools,
  callResultSchema,
  failure,
  read,
  Refusal,
  taskSchema,
  type Asking,
  type CallResult,
  type RemoteServer,
  type RemoteTask,
  type FormResult,
  type Heard,
} from './remote-server.ts';

const VERSION = '2026-07-28';
const META = 'io.modelcontextprotocol/';
const TASKS = `${META}tasks`;
const MAX_BODY = 8 * 1024 * 1024;
const MAX_ROUNDS = 100;

const record = z.record(z.string(), z.unknown());
const inputRequests = z
  .record(
    z.string().min(1).max(400),
    z.looseObject({ method: z.string(), params: record.nullish() }),
  )
  .default({});
const errorSchema = z.looseObject({ code: z.number(), message: z.string() });
const answerSchema = z.looseObject({
  id: z.union([z.string(), z.number()]).nullish(),
  result: record.nullish(),
  error: errorSchema.nullish(),
});
const polled = taskSchema.extend({
  pollIntervalMs: z.number().nullish(),
  inputRequests: inputRequests.nullish(),
  result: record.nullish(),
  error: errorSchema.nullish(),
});
const roundSchema = z.looseObject({ inputRequests, requestState: z.string().optional() });
const formSchema = z.looseObject({ message: z.string() });

type InputRequests = z.infer<typeof inputRequests>;

export interface Remote2026Options {
  readonly url: string;
  /** The requests end together with the session. */
  readonly fetch: typeof globalThis.fetch;
  readonly heard: Heard;
  /** The W3C trace context (SEP 414). */
  readonly traceparent: (() => string | undefined) | undefined;
}

export function remote2026(options: Remote2026Options): RemoteServer {
  const sessionId = null;
  let requests = 0;

  /** Waits until all requests of one round have been answered. */
  async function answers(
    round: number,
    asked: InputRequests,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, FormResult>>> {
    const answered = Object.entries(asked).map(([key, request]) => {
      const { promise, resolve } = Promise.withResolvers<readonly [string, FormResult]>();
      const give = (result: FormResult): void => resolve([key, result]);
      asks(null, { key: `${round}-${key}`, signal, answer: give }, request);
      return promise;
    });
    return Object.fromEntries(await raceAbort(Promise.all(answered), signal));
  }

  function asks(
    taskId: string | null,
    asking: Omit<Asking, 'form'>,
    { method, params }: InputRequests[string],
  ): void {
    const form = formSchema.safeParse(params);
    if (method === 'elicitation/create' && form.success) {
      options.heard.asked(taskId, { ...asking, form: form.data });
      return;
    }
    // The client has not declared support for this kind of request.
    options.heard.report(new Error(`Expected a form, got a request \`${method}\``));
    asking.answer({ action: 'decline' });
  }

  function taskOf(given: unknown): RemoteTask {
    const { taskId, status, statusMessage, pollIntervalMs, ...rest } = read(polled, given);
    const message = statusMessage ?? '';
    if (status === 'input_required')
      for (const [key, request] of Object.entries(rest.inputRequests ?? {}))
        asks(taskId, { key, answer: (result) => update(taskId, key, result) }, request);
    let result: CallResult | null = null;
    if (status === 'completed') result = read(callResultSchema, rest.result ?? {});
    if (status === 'failed') result = failure(rest.error?.message ?? message);
    return { taskId, status, message, pollMs: pollIntervalMs ?? null, result };
  }

  function update(taskId: string, key: string, result: FormResult): void {
    // A cancelled task needs no answer. A late answer would even make the task continue.
    if (result.action === 'cancel') return;
    const { heard } = options;
    ask('tasks/update', { taskId, inputResponses: { [key]: result } }).then(
      () => heard.changed(),
      (error: unknown) => {
        if (error instanceof Refusal) heard.report(error);
        else heard.closed(messageOf(error));
      },
    );
  }

  async function ask(
    method: string,
    params: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ): Promise<Readonly<Record<string, unknown>>> {
    requests += 1;
    const id = requests;
    const { url, fetch } = options;
    const traceparent = options.traceparent?.();
    const named = params['name'] ?? params['taskId'];
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': VERSION,
        'mcp-method': method,
        ...(typeof named === 'string' && /^[\u0020-\u007E]+$/.test(named)
          ? { 'mcp-name': named }
          : {}),
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id,
        method,
        params: {
          ...params,
          _meta: {
            ...(traceparent === undefined ? {} : { traceparent }),
            [`${META}protocolVersion`]: VERSION,
            [`${META}clientInfo`]: { name: 'offstage', version: OFFSTAGE_VERSION },
            [`${META}clientCapabilities`]: {
              elicitation: { form: {} },
              extensions: { [TASKS]: {} },
            },
          },
        },
      }),
      ...(signal ? { signal } : {}),
    });
    const text = await bodyOf(response);
    const type = response.headers.get('content-type') ?? '';
    const { result, error } = messageIn(text, type, id, response.status);
    if (error) throw new Refusal(error.message);
    if (!result)
      throw new Error(`it answered ${method} with status ${response.status}, and nothing to read`);
    return result;
  }

  return {
    sessionId,
    tools: (signal) => allTools((params) => ask('tools/list', params, signal)),
    async call({ name }, args, signal) {
      const first = { name, arguments: args };
      let params: Readonly<Record<string, unknown>> = first;
      for (let round = 0; round < MAX_ROUNDS; round += 1) {
        const given = await ask('tools/call', params, signal);
        if (given['resultType'] === 'task') return { type: 'task', task: taskOf(given) };
        if (given['resultType'] !== 'input_required')
          return { type: 'result', result: read(callResultSchema, given) };
        const { inputRequests: asked, requestState } = read(roundSchema, given);
        params = {
          ...first,
          inputResponses: await answers(round, asked, signal),
          ...(requestState === undefined ? {} : { requestState }),
        };
      }
      throw new Refusal(`it asked more than ${MAX_ROUNDS} times`);
    },
    look: async (taskId, signal) => taskOf(await ask('tasks/get', { taskId }, signal)),
    async cancel(taskId) {
      await ask('tasks/cancel', { taskId });
    },
    /** The requests to this server ended together with the session. */
    async close() {},
  };
}

async function bodyOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_BODY)
      throw new Error(`it answered with more than ${MAX_BODY} characters`);
  }
  return text + decoder.decode();
}

/** Finds the response to a request in the body, which is either one message or an event stream. */
function messageIn(text: string, type: string, id: number, status: number) {
  const isStream = type.startsWith('text/event-stream');
  const messages = isStream
    ? text.split(/\r?\n\r?\n/).map((event) =>
        event
          .split(/\r?\n/)
          .filter((line) => line.startsWith('data:'))
          .map((line) => line.slice('data:'.length).replace(/^ /, ''))
          .join('\n'),
      )
    : [text];
  for (const message of messages) {
    if (message.trim() === '') continue;
    let given: unknown;
    try {
      given = JSON.parse(message);
    } catch (cause) {
      throw new Error(`it answered with status ${status}, and no JSON`, { cause });
    }
    const answer = read(answerSchema, given);
    if (answer.id === id || (!isStream && answer.error)) return answer;
  }
  return { result: null, error: null };
}
