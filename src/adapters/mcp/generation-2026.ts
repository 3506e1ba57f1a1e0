// Protocol version 2026-07-28 over HTTP, with its tasks extension. Each request is independent. The server only
// responds and sends no requests. No SDK implements the server side of these tasks.
//
//   tools/call, tasks declared → the task; `tasks/get` returns its questions, `tasks/update` answers, `tasks/cancel`
//   tools/call                 → waits; a question is returned as a result (`input_required`), and answered in a second call
//
// Invariants
//   MCP-2026-1. A `requestState`, task id or key is valid only if it belongs to a task of the requesting user.

import { z } from 'zod';
import { raceAbort } from '../../values/race-abort.ts';
import { ProtocolError } from '../../values/errors.ts';
import { answerIn, formOf } from './forms.ts';
import type { ConnectedUser } from './generation-2025.ts';
import type { CheckedMcp } from './options.ts';
import type { TaskQuestion, TaskView, UserTasks } from './served-tasks.ts';
import { resultOf, rpcErrorOf, taskOf, viewOf } from './tool-calls.ts';
import { OFFSTAGE_VERSION } from '../../values/version.ts';

export const VERSION_2026 = '2026-07-28';
const TASKS = 'io.modelcontextprotocol/tasks';
const META = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  server: 'io.modelcontextprotocol/serverInfo',
} as const;

const HEADER_MISMATCH = -32_020;
const MISSING_CAPABILITY = -32_021;
const UNSUPPORTED_VERSION = -32_022;
const INVALID_REQUEST = -32_600;
const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;

type Json = Readonly<Record<string, unknown>>;

const record = z.record(z.string(), z.unknown());
const requestSchema = z.looseObject({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string(),
  params: z
    .looseObject({
      _meta: z
        .looseObject({
          [META.version]: z.string().optional(),
          [META.capabilities]: z
            .looseObject({ elicitation: record.optional(), extensions: record.optional() })
            .optional(),
        })
        .optional(),
    })
    .optional(),
});
type Request2026 = z.infer<typeof requestSchema>;

const callSchema = z.looseObject({
  name: z.string(),
  arguments: record.optional(),
  inputResponses: record.optional(),
  requestState: z.string().optional(),
  _meta: record.optional(),
});
const taskSchema = z.looseObject({ taskId: z.string() });
const updateSchema = z.looseObject({ taskId: z.string(), inputResponses: record });

/** An error with an HTTP status. */
class Refused extends Error {
  readonly status: number;
  readonly code: number;
  readonly data: Json | undefined;

  constructor(status: number, code: number, message: string, data?: Json) {
    super(message);
    this.status = status;
    this.code = code;
    this.data = data;
  }
}

/** Whether a posted message has this protocol version. */
export function is2026(headers: Headers, message: unknown): boolean {
  if (headers.get('mcp-protocol-version') === VERSION_2026) return true;
  const checked = requestSchema.safeParse(message);
  return checked.success && checked.data.params?._meta?.[META.version] !== undefined;
}

/** Responds to a message that was posted with this protocol version. Never rejects. */
export async function answer2026(
  message: unknown,
  { headers, signal }: Request,
  options: CheckedMcp,
  user: ConnectedUser,
): Promise<Response> {
  const checked = requestSchema.safeParse(message);
  const id = checked.data?.id ?? null;
  try {
    if (!checked.success)
      throw new Refused(
        400,
        INVALID_REQUEST,
        `Expected a request: ${z.prettifyError(checked.error)}`,
      );
    const request = checked.data;
    checkHeaders(request, headers);
    // A notification receives no response.
    if (request.id === undefined) return new Response(null, { status: 202 });
    const result = await resultFor(request, options, user, signal);
    return Response.json({ jsonrpc: '2.0', id, result });
  } catch (error) {
    if (error instanceof Refused) {
      const { status, code, message: text, data } = error;
      const told = { code, message: text, ...(data === undefined ? {} : { data }) };
      return Response.json({ jsonrpc: '2.0', id, error: told }, { status });
    }
    return Response.json({ jsonrpc: '2.0', id, error: rpcErrorOf(error, options) });
  }
}

function checkHeaders({ method, params }: Request2026, headers: Headers): void {
  const requested = params?._meta?.[META.version];
  const version = headers.get('mcp-protocol-version');
  const mismatch = (what: string): Refused =>
    new Refused(400, HEADER_MISMATCH, `Expected the header and the body to name one ${what}`);
  if (version !== null && requested !== undefined && version !== requested)
    throw mismatch('version of the protocol');
  if ((requested ?? version) !== VERSION_2026)
    throw new Refused(400, UNSUPPORTED_VERSION, `Expected the version ${VERSION_2026}`, {
      supported: [VERSION_2026],
      requested,
    });
  const named = headers.get('mcp-method');
  if (named !== null && named !== method) throw mismatch('method');
  const name = headers.get('mcp-name');
  const given = params?.['name'] ?? params?.['taskId'];
  if (name !== null && given !== undefined && name !== given) throw mismatch('name');
}

function resultFor(
  { method, params = {} }: Request2026,
  options: CheckedMcp,
  user: ConnectedUser,
  signal: AbortSignal,
): Json | Promise<Json> {
  const { name, instructions, tools } = options;
  const { extensions, elicitation } = params._meta?.[META.capabilities] ?? {};
  const complete = { resultType: 'complete' };
  const checkTasks = (): void => {
    if (extensions && Object.hasOwn(extensions, TASKS)) return;
    throw new Refused(400, MISSING_CAPABILITY, `Expected the capability ${TASKS}`, {
      requiredCapabilities: { extensions: { [TASKS]: {} } },
    });
  };
  switch (method) {
    case 'server/discover':
      return {
        ...complete,
        supportedVersions: [VERSION_2026],
        capabilities: { tools: {}, extensions: { [TASKS]: {} } },
        ...(instructions === undefined ? {} : { instructions }),
        ttlMs: 0,
        cacheScope: 'private',
        _meta: { [META.server]: { name, version: OFFSTAGE_VERSION } },
      };
    case 'tools/list':
      return {
        ...complete,
        tools: [...tools.values()].map(({ name: tool, description, inputSchema }) => ({
          name: tool,
          description,
          inputSchema,
        })),
        ttlMs: 0,
        cacheScope: 'private',
      };
    case 'tools/call': {
      const call = parsed(callSchema, params);
      if (!extensions || !Object.hasOwn(extensions, TASKS))
        return user.wait((tasks) =>
          called(call, tasks, options, elicitation !== undefined, signal),
        );
      return user.use(async (tasks) => {
        const task = await taskOf(options, call.name, call.arguments);
        const id = await tasks.start(call.name, task, call._meta);
        return { resultType: 'task', ...baseOf(viewOf(tasks, id), options) };
      });
    }
    case 'tasks/get': {
      checkTasks();
      const { taskId } = parsed(taskSchema, params);
      return user.use(async (tasks) => ({
        ...complete,
        ...detailedOf(viewOf(tasks, taskId), options),
      }));
    }
    case 'tasks/update': {
      checkTasks();
      const { taskId, inputResponses } = parsed(updateSchema, params);
      return user.use(async (tasks) => {
        await update(tasks, taskId, inputResponses);
        return complete;
      });
    }
    case 'tasks/cancel': {
      checkTasks();
      const { taskId } = parsed(taskSchema, params);
      return user.use(async (tasks) => {
        viewOf(tasks, taskId);
        tasks.cancel(taskId);
        return complete;
      });
    }
    default:
      throw new Refused(404, METHOD_NOT_FOUND, `Expected a method of this server, got ${method}`);
  }
}

function parsed<Schema extends z.ZodType>(schema: Schema, params: unknown): z.output<Schema> {
  const { success, data, error } = schema.safeParse(params);
  if (success) return data;
  throw new Refused(200, INVALID_PARAMS, z.prettifyError(error));
}

/** Runs one round of a call without a task. The round ends when the call ends or asks its next questions. */
async function called(
  call: z.infer<typeof callSchema>,
  tasks: UserTasks,
  options: CheckedMcp,
  canAsk: boolean,
  signal: AbortSignal,
): Promise<Json> {
  const { name, requestState, inputResponses = {} } = call;
  let id: string;
  if (requestState === undefined) {
    const task = await taskOf(options, name, call.arguments);
    id = await tasks.start(name, task, call._meta);
  } else {
    // MCP-2026-1
    const view = viewOf(tasks, requestState);
    if (view.name !== name)
      throw new ProtocolError('NOT_FOUND', 'Expected the `requestState` of a call of this tool');
    ({ id } = view);
    await update(tasks, id, inputResponses);
  }
  try {
    for (;;) {
      const changed = tasks.changed();
      const view = viewOf(tasks, id);
      if (view.outcome) {
        tasks.returned(id);
        return { resultType: 'complete', ...resultOf(view) };
      }
      const { questions } = view;
      if (questions.length > 0 && canAsk)
        return {
          resultType: 'input_required',
          inputRequests: requestsOf(questions),
          requestState: id,
        };
      for (const question of questions) await tasks.answer(id, question, null);
      if (questions.length === 0) await raceAbort(changed, signal);
    }
  } catch (error) {
    // The client has not received the task's id yet, so it cannot use the task.
    if (requestState === undefined) tasks.cancel(id);
    throw error;
  }
}

/** Accepts the answers to open questions. Other keys are ignored, as the protocol requires. */
async function update(tasks: UserTasks, id: string, responses: Json): Promise<void> {
  const { questions } = viewOf(tasks, id);
  const read = questions.flatMap((question) =>
    Object.hasOwn(responses, question.requestId)
      ? [{ question, answer: answerIn(question, responses[question.requestId]) }]
      : [],
  );
  // All answers are validated first, so that an invalid answer has no effect.
  for (const { question, answer } of read)
    if (answer.type === 'invalid')
      throw new ProtocolError('INVALID_ANSWER', `${question.requestId}: ${answer.why}`);
  for (const { question, answer } of read)
    if (answer.type === 'given' || answer.type === 'declined')
      await tasks.answer(id, question, answer.type === 'given' ? answer.answer : null);
}

function requestsOf(questions: readonly TaskQuestion[]): Json {
  return Object.fromEntries(
    questions.map((question) => [
      question.requestId,
      { method: 'elicitation/create', params: formOf(question) },
    ]),
  );
}

function baseOf(view: TaskView, { ttlMs, pollMs }: CheckedMcp): Json {
  const { id, status, message, createdAt, updatedAt } = view;
  return {
    taskId: id,
    // A failed subagent is reported as a tool failure, because the status `failed` is reserved for protocol errors.
    status: status === 'failed' ? 'completed' : status,
    ...(message === null ? {} : { statusMessage: message }),
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs,
    pollIntervalMs: pollMs,
  };
}

function detailedOf(view: TaskView, options: CheckedMcp): Json {
  const { status, questions } = view;
  const base = baseOf(view, options);
  if (status === 'input_required') return { ...base, inputRequests: requestsOf(questions) };
  if (status === 'completed' || status === 'failed')
    return { ...base, result: { resultType: 'complete', ...resultOf(view) } };
  return base;
}
