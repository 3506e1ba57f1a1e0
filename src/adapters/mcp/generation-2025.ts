// The server side of protocol version 2025-11-25, built on the official SDK's server. It serves one connection, whose
// tools may be called as tasks.
//
//   tools/call + task   → the task's id, once it is in the journal
//   tasks/result        → waits for the end; meanwhile, questions are sent to the client as `elicitation/create`
//   tools/call          → both in one request; an abort of the request cancels the task

import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import type { ServerNotification, ServerRequest, Task } from '@modelcontextprotocol/sdk/types.js';
import { messageOf, ProtocolError } from '../../values/errors.ts';
import { formOf } from './forms.ts';
import type { ServerSdk } from './load-sdk.ts';
import type { CheckedMcp } from './options.ts';
import type { TaskView, UserTasks } from './served-tasks.ts';
import {
  failedCall,
  follow,
  RELATED_TASK,
  resultOf,
  rpcErrorOf,
  taskOf,
  viewOf,
  type Caller,
} from './tool-calls.ts';
import { OFFSTAGE_VERSION } from '../../values/version.ts';

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** The user to whom a connection belongs. */
export interface ConnectedUser {
  /** Calls `work` with the user's tasks, which remain in memory until `work` has settled. */
  readonly use: <Result>(work: (tasks: UserTasks) => Promise<Result>) => Promise<Result>;
  /** Like `use`, but for a request that waits. Rejects if more than `waitsPerUser` requests are waiting. */
  readonly wait: <Result>(work: (tasks: UserTasks) => Promise<Result>) => Promise<Result>;
}

/** The maximum timer value. A question has no time limit. It ends only when the task no longer needs an answer. */
const ASK_TIMEOUT_MS = 2_147_483_647;
const PAGE = 100;

/** Creates the server for one connection. */
export function server2025(sdk: ServerSdk, options: CheckedMcp, user: ConnectedUser): Server {
  const { name, instructions, tools } = options;
  const server = new sdk.Server(
    { name, version: OFFSTAGE_VERSION },
    {
      capabilities: {
        tools: {},
        tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
      },
      ...(instructions === undefined ? {} : { instructions }),
    },
  );
  const answering = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work();
    } catch (error) {
      if (error instanceof sdk.McpError) throw error;
      const { code, message, data } = rpcErrorOf(error, options);
      throw new sdk.McpError(code, message, data);
    }
  };
  const caller = (id: string, extra: Extra, leavesOpen: boolean): Caller => ({
    leavesOpen,
    ask: server.getClientCapabilities()?.elicitation
      ? (question, signal) =>
          extra.sendRequest(
            {
              method: 'elicitation/create',
              params: asParams(formOf(question), id),
            },
            sdk.ElicitResultSchema,
            { signal, timeout: ASK_TIMEOUT_MS },
          )
      : null,
    progressed: progressOf(extra, id),
    scheduler: options.runtime.environment.scheduler,
  });

  server.setRequestHandler(sdk.ListToolsRequestSchema, () => ({
    tools: [...tools.values()].map(({ name: tool, description, inputSchema }) => ({
      name: tool,
      description,
      inputSchema: inputSchema as { type: 'object' },
      execution: { taskSupport: 'optional' as const },
    })),
  }));

  server.setRequestHandler(sdk.CallToolRequestSchema, ({ params }, extra) =>
    answering(async () => {
      const isTask = params.task !== undefined;
      const known = tools.has(params.name);
      const task = await taskOf(options, params.name, params.arguments).catch((error: unknown) => {
        // The client's model receives the error and can correct its call.
        if (known && !isTask) return failedCall(messageOf(error));
        throw error;
      });
      if ('content' in task) return task;
      if (isTask)
        return user.use(async (tasks) => {
          const id = await tasks.start(params.name, task, params._meta);
          return { task: wireOf(viewOf(tasks, id), options) };
        });
      return user.wait(async (tasks) => {
        const id = await tasks.start(params.name, task, params._meta);
        try {
          const ended = await follow(tasks, id, caller(id, extra, false), extra.signal);
          return resultOf(ended);
        } catch (error) {
          // The client never received the task's id, so it cannot use the task.
          tasks.cancel(id);
          throw error;
        }
      });
    }),
  );

  server.setRequestHandler(sdk.GetTaskRequestSchema, ({ params: { taskId } }) =>
    answering(() => user.use(async (tasks) => wireOf(viewOf(tasks, taskId), options))),
  );

  server.setRequestHandler(sdk.GetTaskPayloadRequestSchema, ({ params: { taskId } }, extra) =>
    answering(() =>
      user.wait(async (tasks) => {
        const ended = await follow(tasks, taskId, caller(taskId, extra, true), extra.signal);
        return { ...resultOf(ended), _meta: { [RELATED_TASK]: { taskId } } };
      }),
    ),
  );

  server.setRequestHandler(sdk.ListTasksRequestSchema, ({ params }) =>
    answering(() =>
      user.use(async (tasks) => {
        const all = tasks.list();
        const { cursor } = params ?? {};
        const at = cursor === undefined ? 0 : all.findIndex(({ id }) => id === cursor) + 1;
        if (cursor !== undefined && at === 0)
          throw new ProtocolError('NOT_FOUND', 'Expected a cursor of an earlier page');
        const page = all.slice(at, at + PAGE);
        const last = page.at(-1);
        return {
          tasks: page.map((view) => wireOf(view, options)),
          ...(last && at + PAGE < all.length ? { nextCursor: last.id } : {}),
        };
      }),
    ),
  );

  server.setRequestHandler(sdk.CancelTaskRequestSchema, ({ params: { taskId } }, extra) =>
    answering(() =>
      user.wait(async (tasks) => {
        const { status } = viewOf(tasks, taskId);
        if (!tasks.cancel(taskId))
          throw new ProtocolError(
            'ALREADY_TERMINAL',
            `Expected a task that goes on: it is ${status}`,
          );
        await tasks.whenEnded(taskId, extra.signal);
        return wireOf(viewOf(tasks, taskId), options);
      }),
    ),
  );
  return server;
}

function progressOf(extra: Extra, id: string): (message: string) => void {
  const progressToken = extra._meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  let progress = 0;
  return (message) => {
    progress += 1;
    extra
      .sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress, message, _meta: { [RELATED_TASK]: { taskId: id } } },
      })
      // The client has disconnected, so its request has ended.
      .catch(() => undefined);
  };
}

/** The SDK's types require mutable arrays. */
function asParams(form: ReturnType<typeof formOf>, taskId: string) {
  const { mode, message, requestedSchema, _meta } = form;
  const { answer } = requestedSchema.properties;
  const { type, title, oneOf } = answer;
  const property =
    type === 'boolean'
      ? { type, title }
      : oneOf
        ? { type, title, oneOf: oneOf.map((one) => ({ ...one })) }
        : { type, title };
  return {
    mode,
    message,
    requestedSchema: {
      type: 'object' as const,
      properties: { answer: property },
      required: ['answer'],
    },
    _meta: { ..._meta, [RELATED_TASK]: { taskId } },
  };
}

function wireOf(view: TaskView, { ttlMs, pollMs }: CheckedMcp): Task {
  const { id, status, message, createdAt, updatedAt } = view;
  return {
    taskId: id,
    status,
    ...(message === null ? {} : { statusMessage: message }),
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttl: ttlMs,
    pollInterval: pollMs,
  };
}
