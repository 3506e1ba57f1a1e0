// The handling of tool calls and their tasks that both protocol versions share: arguments, results, errors, and waiting
// for the end.

import { validateWith } from '../../actors/model/schema.ts';
import type { Scheduler } from '../../actors/ports/environment.ts';
import { raceAbort } from '../../values/race-abort.ts';
import type { SubagentTask } from '../../actors/contracts/task.ts';
import { codeOf, messageOf, ProtocolError } from '../../values/errors.ts';
import { isRecord, asJson } from '../../values/json.ts';
import { answerIn } from './forms.ts';
import type { CheckedMcp } from './options.ts';
import type { TaskQuestion, TaskView, UserTasks } from './served-tasks.ts';

/** The `_meta` key that names the task of a message. */
export const RELATED_TASK = 'io.modelcontextprotocol/related-task';

/**
 * Returns the subagent task for a tool call.
 * @throws {ProtocolError} `NOT_FOUND`, `INVALID_INPUT`
 */
export async function taskOf(
  { tools }: CheckedMcp,
  name: string,
  given: Readonly<Record<string, unknown>> = {},
): Promise<SubagentTask> {
  const tool = tools.get(name);
  if (!tool)
    throw new ProtocolError(
      'NOT_FOUND',
      `Expected the name of a tool, got ${JSON.stringify(name)}`,
    );
  const json = asJson(given);
  const checked = json.ok ? await validateWith(tool.schema, json.value) : null;
  if (!checked?.ok) {
    const why = checked ? messageOf(checked.error) : 'expected arguments that are JSON';
    throw new ProtocolError('INVALID_INPUT', `${name}: ${why}`);
  }
  const args = checked.value as Readonly<Record<string, unknown>>;
  return tool.takesWords
    ? { toolName: name, description: String(args['task']), args: {} }
    : { toolName: name, description: tool.description, args };
}

export interface CallResult {
  readonly [key: string]: unknown;
  readonly content: { readonly type: 'text'; readonly text: string }[];
  readonly structuredContent?: Record<string, unknown>;
  readonly isError: boolean;
}

/** Returns the result of a call that has ended. */
export function resultOf({ outcome, status, message }: TaskView): CallResult {
  if (outcome?.status !== 'completed') {
    const { partial = '' } = outcome ?? {};
    const text = message === null ? status : `${status}: ${message}`;
    return failedCall(partial === '' ? text : `${text}\n\nWhat there is so far:\n${partial}`);
  }
  const { output, text, artifacts = [] } = outcome;
  const words =
    typeof output === 'string' ? output : isRecord(output) ? JSON.stringify(output) : text;
  return {
    content: [
      { type: 'text', text: words },
      ...artifacts.map(({ name, content }) => ({
        type: 'text' as const,
        text: `${name}:\n${typeof content === 'string' ? content : JSON.stringify(content)}`,
      })),
    ],
    ...(isRecord(output) ? { structuredContent: output } : {}),
    isError: false,
  };
}

export function failedCall(text: string): CallResult {
  return { content: [{ type: 'text', text }], isError: true };
}

/** The client whose call is waiting for the task. */
export interface Caller {
  /** Asks the user; null if this client cannot ask. Rejects if the client has disconnected. */
  readonly ask: ((question: TaskQuestion, signal: AbortSignal) => Promise<unknown>) | null;
  /**
   * If `ask` is null: whether the questions remain open for another client. Otherwise, these questions end unanswered.
   */
  readonly leavesOpen: boolean;
  /** Called after each change and at least every 15 s, because clients may abort a request that is silent for 60 s. */
  progressed(message: string): void;
  /** The source of time. */
  readonly scheduler: Scheduler;
}

const PROGRESS_MS = 15_000;

/** The maximum number of times that a client may try to send a valid answer. */
const MAX_ATTEMPTS = 3;

/**
 * Follows a task until it ends, and asks the client the questions that the task asks. If two calls follow the same
 * task, both ask the question, and the first answer is used.
 */
export async function follow(
  tasks: UserTasks,
  id: string,
  { ask, leavesOpen, progressed, scheduler }: Caller,
  signal: AbortSignal,
): Promise<TaskView> {
  const asking = new Map<string, AbortController>();
  const broken = new AbortController();
  const ended = AbortSignal.any([signal, broken.signal]);
  const put = async (question: TaskQuestion, over: AbortSignal): Promise<void> => {
    if (!ask) {
      if (!leavesOpen) await tasks.answer(id, question, null);
      return;
    }
    for (let attempt = 1; !over.aborted; attempt += 1) {
      const read = answerIn(question, await ask(question, over));
      if (over.aborted || read.type === 'left') return;
      if (read.type !== 'invalid') {
        await tasks.answer(id, question, read.type === 'given' ? read.answer : null);
        return;
      }
      if (attempt === MAX_ATTEMPTS)
        throw new ProtocolError('INVALID_ANSWER', `${question.requestId}: ${read.why}`);
    }
  };
  let message: string | null = null;
  let stopBeat = (): void => undefined;
  const beat = (): void => {
    stopBeat();
    stopBeat = scheduler.schedule(
      () => {
        progressed(message ?? 'The task is at work');
        beat();
      },
      PROGRESS_MS,
      { isBackground: true },
    );
  };
  try {
    beat();
    for (;;) {
      const changed = tasks.changed();
      const view = viewOf(tasks, id);
      if (view.outcome) {
        tasks.returned(id);
        return view;
      }
      if (view.message !== null && view.message !== message) progressed(view.message);
      ({ message } = view);
      const open = new Set(view.questions.map(({ requestId }) => requestId));
      for (const [requestId, over] of asking) if (!open.has(requestId)) over.abort();
      for (const question of view.questions) {
        if (asking.has(question.requestId)) continue;
        const over = new AbortController();
        asking.set(question.requestId, over);
        put(question, over.signal).catch((error: unknown) => {
          if (!over.signal.aborted) broken.abort(error);
        });
      }
      await raceAbort(changed, ended);
    }
  } finally {
    stopBeat();
    for (const over of asking.values()) over.abort();
  }
}

/** @throws {ProtocolError} `NOT_FOUND` */
export function viewOf(tasks: UserTasks, id: string): TaskView {
  const view = tasks.view(id);
  if (view) return view;
  throw new ProtocolError('NOT_FOUND', 'Expected the id of a task of yours that is still kept');
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data: { readonly code: string };
}

const INVALID_PARAMS = -32_602;
const REFUSED = -32_000;
const INTERNAL = -32_603;

const CODES: Readonly<Record<string, number>> = {
  NOT_FOUND: INVALID_PARAMS,
  INVALID_INPUT: INVALID_PARAMS,
  INVALID_ANSWER: INVALID_PARAMS,
  ALREADY_TERMINAL: INVALID_PARAMS,
  NOT_ALLOWED: REFUSED,
  INPUT_NOT_FOUND: REFUSED,
  SESSION_LIMIT: REFUSED,
  GLOBAL_LIMIT: REFUSED,
  BUDGET_EXCEEDED: REFUSED,
  DUPLICATE: REFUSED,
  SESSION_CLOSED: REFUSED,
};

/** Converts an error for the client. An internal error is reported, and its details are hidden from the client. */
export function rpcErrorOf(error: unknown, { onError }: CheckedMcp): RpcError {
  const code = codeOf(error);
  if (Object.hasOwn(CODES, code))
    return { code: CODES[code] ?? INTERNAL, message: messageOf(error), data: { code } };
  onError(error, 'a request');
  if (code === 'SCOPE_IN_USE')
    return { code: REFUSED, message: 'Another process has your tasks', data: { code } };
  return { code: INTERNAL, message: 'The server made a mistake', data: { code: 'INTERNAL' } };
}
