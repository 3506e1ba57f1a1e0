// RockBot's topics: typed messages about the progress and the results of a session's subagents, for logs, other
// sessions or a queue. Uses only `session.events`.

import { filter, map, type Observable } from 'rxjs';
import { z } from 'zod';
import { anObject, check } from '../values/checks.ts';
import type { LedgerEntry, Outcome } from '../actors/contracts/outcome.ts';
import type { SessionEvent } from '../actors/contracts/session-views.ts';

interface SubagentMessage {
  /** The subagent's id. */
  readonly taskId: string;
  /** The namespace of the subagent in working memory: `subagent/<id>`. */
  readonly subagentSessionId: string;
  /** The session that the subagent works for. */
  readonly primarySessionId: string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
}

/** On `subagent.progress`: a subagent reports its progress. */
export interface SubagentProgressMessage extends SubagentMessage {
  /** The progress, as text. */
  readonly message: string;
  /** From 0 to 100, or null if the subagent did not report a percentage. */
  readonly percent: number | null;
}

/** On `subagent.result`: a subagent has ended, with any status. It is sent once per subagent. */
export interface SubagentResultMessage extends SubagentMessage {
  /** The subagent's result, or its partial result if it did not complete. */
  readonly output: string;
  /** Whether the subagent has completed its task. */
  readonly isSuccess: boolean;
  /** The message of the subagent's failure, if it failed. */
  readonly error: string | null;
  /** `cancelled` and `timed_out` are not failures of the subagent. */
  readonly status: Outcome['status'];
  /** The id of the batch in which the result is delivered, or null if the result is delivered alone or not at all. */
  readonly batchId: string | null;
  /** The result is delivered together with the results of its siblings. */
  readonly consolidate: boolean;
  /**
   * The user's utterance that led the lead agent to spawn the subagent or its ancestor, or null if no utterance did.
   */
  readonly originatingUserRequest: string | null;
  /** The subagent's task. */
  readonly description: string;
  /** The subagent's tool calls, in order. */
  readonly toolCalls: readonly LedgerEntry[];
  /** The number of the subagent's tool calls. */
  readonly toolCallCount: number;
}

/** The messages of each topic, by topic name. */
export interface SubagentTopics {
  /** Sent whenever a subagent reports progress. */
  readonly 'subagent.progress': SubagentProgressMessage;
  /** Sent once for each subagent, when it ends. */
  readonly 'subagent.result': SubagentResultMessage;
}

const SUBAGENT_TOPICS = ['subagent.progress', 'subagent.result'] as const;

/** The part of a session that `topic` needs. */
export interface TopicSession {
  /** The session's id. */
  readonly id: string;
  /** The session's events. */
  readonly events: Observable<SessionEvent>;
}

const aSession = anObject('a session: a TextSession or a VoiceSession', 'sendText');

/**
 * Returns the messages of one of a session's topics. The observable is hot and completes with `session.events`.
 * @throws {ConfigurationError} `INVALID_ARGUMENT` if the name is unknown or `session` is not a session.
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
