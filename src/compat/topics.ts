// RockBot's topics: the progress and the ends of a session's subagents, as typed messages for logs, other sessions or a
// queue. Uses only `session.events`.

import { filter, map, type Observable } from 'rxjs';
import { z } from 'zod';
import { anObject, check } from '../values/checks.ts';
import type { LedgerEntry, Outcome } from '../actors/contracts/outcome.ts';
import type { SessionEvent } from '../actors/contracts/session-views.ts';

interface SubagentMessage {
  /** The id of the subagent. */
  readonly taskId: string;
  /** The namespace of the subagent's working memory: `subagent/<id>`. */
  readonly subagentSessionId: string;
  /** The session for which the subagent works. */
  readonly primarySessionId: string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
}

/** On `subagent.progress`: a subagent reports its progress. */
export interface SubagentProgressMessage extends SubagentMessage {
  /** The progress, in words. */
  readonly message: string;
  /** From 0 to 100; null if the subagent did not state it. */
  readonly percent: number | null;
}

/** On `subagent.result`: a subagent has ended, with any status. Sent once per subagent. */
export interface SubagentResultMessage extends SubagentMessage {
  /** The result; the partial result if the subagent did not complete. */
  readonly output: string;
  /** Whether the subagent completed its task. */
  readonly isSuccess: boolean;
  /** The message of the subagent's failure. */
  readonly error: string | null;
  /** `cancelled` and `timed_out` are not failures of the subagent. */
  readonly status: Outcome['status'];
  /** The batch with which the result is delivered; null if it is delivered alone, or not at all. */
  readonly batchId: string | null;
  /** The result is delivered together with its siblings' results. */
  readonly consolidate: boolean;
  /** The user's words that led the lead agent to spawn the subagent or its ancestor; null if the user did not ask for it. */
  readonly originatingUserRequest: string | null;
  /** The task of the subagent. */
  readonly description: string;
  /** The subagent's tool calls, in order. */
  readonly toolCalls: readonly LedgerEntry[];
  /** The number of its tool calls. */
  readonly toolCallCount: number;
}

/** The messages of `topic`, by topic name. */
export interface SubagentTopics {
  readonly 'subagent.progress': SubagentProgressMessage;
  readonly 'subagent.result': SubagentResultMessage;
}

const SUBAGENT_TOPICS = ['subagent.progress', 'subagent.result'] as const;

/** The part of a session that its topics need. */
export interface TopicSession {
  /** The id of the session. */
  readonly id: string;
  /** The events of the session. */
  readonly events: Observable<SessionEvent>;
}

const aSession = anObject('a session: a TextSession or a VoiceSession', 'sendText');

/**
 * Returns the messages of one topic of a session. Hot; completes with `session.events`.
 * @throws {ConfigurationError} `INVALID_ARGUMENT` if the name is unknown, or `session` is not a session.
 */
export function topic<T extends keyof SubagentTopics>(
  session: TopicSession,
  name: T,
): Observable<SubagentTopics[T]> {
  check('topic(session)', aSession, session, 'INVALID_ARGUMENT');
  check('topic(session, name)', z.enum(SUBAGENT_TOPICS), name, 'INVALID_ARGUMENT');
  const { id, events } = session;
  const messages: Observable<SubagentTopics[keyof SubagentTopics]> =
    name === 'subagent.progress'
      ? events.pipe(
          filter((event) => event.type === 'subagent.progressed'),
          map((event) => progressMessage(event, id)),
        )
      : events.pipe(
          filter((event) => event.type === 'subagent.ended'),
          map((event) => resultMessage(event, id)),
        );
  return messages as Observable<SubagentTopics[T]>;
}

type Of<T extends SessionEvent['type']> = Extract<SessionEvent, { readonly type: T }>;

function progressMessage(
  { subagentId, text, percent, at }: Of<'subagent.progressed'>,
  sessionId: string,
): SubagentProgressMessage {
  return { ...addressOf(subagentId, sessionId), timestamp: at, message: text, percent };
}

function resultMessage(
  { subagent, outcome, batchId, request, at }: Of<'subagent.ended'>,
  sessionId: string,
): SubagentResultMessage {
  const { status, text, partial = '', error, toolLedger } = outcome;
  const isSuccess = status === 'completed';
  return {
    ...addressOf(subagent.id, sessionId),
    timestamp: at,
    output: isSuccess ? text : partial,
    isSuccess,
    error: isSuccess ? null : (error?.message ?? `It ended as ${status}`),
    status,
    batchId,
    consolidate: batchId !== null,
    originatingUserRequest: request,
    description: subagent.task,
    toolCalls: toolLedger,
    toolCallCount: toolLedger.length,
  };
}

function addressOf(subagentId: string, sessionId: string) {
  return {
    taskId: subagentId,
    subagentSessionId: `subagent/${subagentId}`,
    primarySessionId: sessionId,
  };
}
