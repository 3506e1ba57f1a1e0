// The mapping between A2A version 1 and the relay port: states, parts, questions and answers, ids.

import { Buffer } from 'node:buffer';
import type { Message, Part, Task, TaskStatus } from '@a2a-js/sdk';
import { z } from 'zod';
import type { RelayAnswer, RelayEvent } from '../../actors/ports/relay.ts';
import type { Sdk } from './load-sdk.ts';

type EndReason = Extract<RelayEvent, { readonly type: 'turn_ended' }>['reason'];
export type Asking = Extract<RelayEvent, { readonly type: 'permission' | 'question' }>;

export type Phase =
  | { readonly type: 'works' }
  | { readonly type: 'asks'; readonly kind: 'question' | 'permission' }
  | { readonly type: 'ended'; readonly reason: EndReason };

/** Returns a task's phase. An unknown state is treated as working. */
export function phaseOf({ TaskState }: Sdk, { state }: Pick<TaskStatus, 'state'>): Phase {
  switch (state) {
    case TaskState.TASK_STATE_INPUT_REQUIRED:
      return { type: 'asks', kind: 'question' };
    case TaskState.TASK_STATE_AUTH_REQUIRED:
      return { type: 'asks', kind: 'permission' };
    case TaskState.TASK_STATE_COMPLETED:
      return { type: 'ended', reason: 'completed' };
    case TaskState.TASK_STATE_CANCELED:
      return { type: 'ended', reason: 'cancelled' };
    case TaskState.TASK_STATE_FAILED:
      return { type: 'ended', reason: 'failed' };
    case TaskState.TASK_STATE_REJECTED:
      return { type: 'ended', reason: 'refused' };
    case TaskState.TASK_STATE_SUBMITTED:
    case TaskState.TASK_STATE_WORKING:
    case TaskState.TASK_STATE_UNSPECIFIED:
    case TaskState.UNRECOGNIZED:
      return { type: 'works' };
    default:
      return { type: 'works' };
  }
}

const optionSchema = z.object({
  id: z.string().min(1),
  label: z.string(),
  description: z.string().optional(),
});
/** The maximum number of options in a question, because no user could choose from more. */
const MAX_OPTIONS = 1_000;
const optionsSchema = z.object({ options: z.array(optionSchema).max(MAX_OPTIONS) });

/** Returns the request that a task's status contains. The request has the same id every time it is read. */
export function askingOf(
  kind: 'question' | 'permission',
  taskId: string,
  { message, timestamp }: TaskStatus,
): Asking {
  const parts = message?.parts ?? [];
  const text = textOf(parts).trim();
  const requestId = `${taskId}:${message?.messageId || (timestamp ?? text)}`.slice(0, 500);
  const data = parts.flatMap(({ content }) => (content?.$case === 'data' ? [content.value] : []));
  if (kind === 'permission')
    return {
      type: 'permission',
      requestId,
      title: text || 'It needs an authorization',
      kind: 'authorization',
      input: (data.length > 1 ? data : data[0]) ?? null,
    };
  const options = data.flatMap((one) => {
    const read = optionsSchema.safeParse(one);
    return read.success ? read.data.options : [];
  });
  return {
    type: 'question',
    requestId,
    text: text || 'It needs your input.',
    ...(options.length > 0
      ? {
          options: options.map(({ id, label, description }) => ({
            id,
            label,
            ...(description === undefined ? {} : { description }),
          })),
        }
      : {}),
  };
}

/** Returns an answer as text and as machine-readable metadata. */
export function answerWords(answer: RelayAnswer): {
  readonly text: string;
  readonly metadata: Readonly<Record<string, unknown>>;
} {
  switch (answer.type) {
    case 'permitted':
      return { text: 'Permitted, for this request only.', metadata: { type: 'permitted' } };
    case 'denied': {
      const because = answer.words === '' ? '' : ` ${answer.words}`;
      return { text: `Not permitted.${because}`, metadata: { type: 'denied' } };
    }
    case 'answered': {
      const { text, optionId } = answer;
      return {
        text,
        metadata: { type: 'answered', ...(optionId === undefined ? {} : { optionId }) },
      };
    }
    case 'cancelled':
      return { text: 'Nobody answered.', metadata: { type: 'cancelled' } };
  }
}

/** The key of an answer in a message's metadata. */
export const ANSWER = 'offstage.answer';

/**
 * An answer that is sent again has the same message id, so that the relay can check whether the agent has received it.
 */
export function answerIdOf(requestId: string): string {
  return `answer-${requestId}`;
}

export function userMessage(
  { Role }: Sdk,
  text: string,
  ids: Pick<Message, 'messageId' | 'contextId' | 'taskId'>,
  metadata?: Record<string, unknown>,
): Message {
  const content = { $case: 'text' as const, value: text };
  return {
    ...ids,
    role: Role.ROLE_USER,
    parts: [{ content, metadata: undefined, filename: '', mediaType: 'text/plain' }],
    metadata,
    extensions: [],
    referenceTaskIds: [],
  };
}

/** Whether a part contains text of the answer rather than a file. */
export function isWords({ content, filename, mediaType }: Part): boolean {
  return content?.$case === 'text' && filename === '' && /^(text\/plain)?(;|$)/.test(mediaType);
}

export function textOf(parts: readonly Part[]): string {
  return parts
    .flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : []))
    .join('');
}

/** Returns the content of a file part as text. */
export function contentOf({ content, mediaType }: Part): {
  readonly mediaType: string;
  readonly content: string;
} {
  switch (content?.$case) {
    case 'text':
      return { mediaType: mediaType || 'text/plain', content: content.value };
    case 'data':
      return {
        mediaType: mediaType || 'application/json',
        content: JSON.stringify(content.value ?? null),
      };
    case 'url':
      return { mediaType: 'text/uri-list', content: content.value };
    case 'raw': {
      const type = mediaType || 'application/octet-stream';
      const bytes = Buffer.from(content.value).toString('base64');
      return { mediaType: type, content: `data:${type};base64,${bytes}` };
    }
    case undefined:
      return { mediaType: 'text/plain', content: '' };
  }
}

/** Whether the agent has received the answer to this request. */
export function hasAnswer({ history }: Task, requestId: string): boolean {
  return history.some(({ messageId }) => messageId === answerIdOf(requestId));
}
