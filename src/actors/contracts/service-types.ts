// The API of the subagent service: requesters, requests and results. A service has one scope (a session, or a program),
// whose subagents form trees.
//
// All values here are plain JSON, except promises, observables and the contents of a configuration.

import type { JSONValue, ModelMessage } from 'ai';
import type { Observable } from 'rxjs';
import type { Failure, MessageMode } from '../../machines/index.ts';
import type { VouchedFor } from './identity.ts';
import type { SubagentState } from './session-views.ts';
import type { BudgetLimits, BudgetReport, SubagentConfig } from './config.ts';
import type { Outcome } from './outcome.ts';
import type { StreamedChunk, SubagentTask } from './task.ts';

/**
 * The caller of an operation. A subagent sees its descendants and the subagents of its workstream, but no others. Null
 * stands for the lead agent or a program, which sees the whole scope. In a tool, call `callerOf` to obtain the
 * requester.
 */
export interface Requester {
  /** The requesting subagent; null for the lead agent or the program. */
  readonly subagentId: string | null;
}

/** The requester that represents a session's lead agent, or a program. */
export const THE_LEAD: Requester = { subagentId: null };

/** The stable code of a refusal by the service. */
export type DelegationErrorCode =
  /** The requester cannot see a subagent with this id. */
  | 'NOT_FOUND'
  /** The operation is not possible in the current state or for this requester. */
  | 'INVALID_STATE'
  /** The subagent has already ended. */
  | 'ALREADY_TERMINAL'
  /** The subagent is waiting for the answer to a request, and this message does not name that request. */
  | 'REQUEST_PENDING'
  /** The task lacks an input that the configuration declares, or contains one that it does not declare. */
  | 'INVALID_INPUT'
  /** The task names an input that is not in working memory, or that the requester may not read. */
  | 'INPUT_NOT_FOUND'
  | 'DEPTH_EXCEEDED'
  /** A limit of the scope has been reached; the message names it. */
  | 'SESSION_LIMIT'
  /** A limit of the runtime has been reached; the message names it. */
  | 'GLOBAL_LIMIT'
  | 'ADAPTER_NOT_ALLOWED'
  | 'MODEL_NOT_ALLOWED'
  /** The requester does not have this tool, or may not pass it on to its subtree. */
  | 'TOOL_NOT_ALLOWED'
  /** The wait would create a cycle; the message names both subagents. */
  | 'WAIT_CYCLE'
  /** The requester's budget does not allow the operation. */
  | 'BUDGET_EXCEEDED'
  /** A duplicate is running, and its configuration has `duplicates: 'reject'`. */
  | 'DUPLICATE'
  /** The `idempotencyKey` was already used for a different request. */
  | 'ID_REUSED'
  /** The request's signal was aborted. */
  | 'CANCELLED'
  /** The scope is closed. */
  | 'SESSION_CLOSED';

/** Why a request about a subagent was refused. */
export interface DelegationFailure extends Failure {
  readonly code: DelegationErrorCode;
}

/** A refused request about a subagent; it has had no effect. */
export interface Refused {
  /** The request had no effect. */
  readonly ok: false;
  /** Why the request was refused. */
  readonly error: DelegationFailure;
}

/** The requester's tools that a new subagent receives in addition to its own. */
export interface ToolGrant {
  /** The names of the tools, chosen from the requester's tools. If absent, all of them are granted. Empty for none. */
  readonly tools?: readonly string[];
  /** Tools that are denied to the subagent and its whole subtree, even if they are granted or configured. */
  readonly disallowedTools?: readonly string[];
}

/** A request for a new subagent. */
export interface SpawnRequest {
  /** The configuration as its author wrote it, or a validated definition. */
  readonly config: SubagentConfig;
  /** The task of the new subagent. */
  readonly task: SubagentTask;
  /** The parent; if its `subagentId` is null, the lead agent or a program is the parent. */
  readonly caller: Requester;
  /** The requester's tool call that the subagent works for. */
  readonly callId?: string;
  /**
   * Adds tools of the requester to the tools of `config`. If absent, the subagent has exactly the tools of `config`. In
   * both cases, tools that are denied to the requester's subtree are removed.
   */
  readonly grant?: ToolGrant;
  /** The workstream; its subagents see each other. @defaultValue the requester's workstream */
  readonly workstreamId?: string;
  /** The maximum depth of the subagent's subtree; a lower limit of the scope takes precedence. */
  readonly maxDepth?: number;
  /**
   * The request's key. A second request with this key returns the subagent of the first request; it is refused
   * (`ID_REUSED`) if its `config.name` or `task` differs.
   */
  readonly idempotencyKey?: string;
  /** With `context: 'fork'`: the requester's conversation, which the subagent continues. */
  readonly messages?: readonly ModelMessage[];
  /**
   * After a crash, the tool that spawned the subagent restores its configuration from this data; see `RECONFIGURES`.
   * Not needed if the configuration can be found by name.
   */
  readonly recipe?: JSONValue;
  /** The name to check against `allowedAdapters`. @defaultValue the name of the configuration */
  readonly adapterName?: string;
  /** The name to check against `allowedModels`. @defaultValue the id of the configuration's model */
  readonly modelName?: string;
  /**
   * The identity on whose behalf the subagent works, as vouched for by the program. Tools receive it as `requester`.
   * Determined automatically if the subagent has a parent or works on a call of the lead agent. @defaultValue none
   */
  readonly by?: string;
  /**
   * The `traceparent` header (W3C) of the caller's span, which becomes the parent of this subagent's spans in
   * `tracedJournal`. An invalid header is ignored. @defaultValue the trace of the scope
   */
  readonly traceparent?: string;
}

/** The result of a spawn: the subagent's id, or why the subagent was refused. */
export type SpawnReceipt =
  | {
      readonly status: 'accepted';
      readonly subagentId: string;
      /** True if a subagent with the same `idempotencyKey` already existed. */
      readonly isRepeat?: true;
    }
  | { readonly status: 'rejected'; readonly error: DelegationFailure };

/** A subagent's question to its parent. */
export interface PendingInput {
  /** The id that the answer must name (`inResponseTo`). */
  readonly requestId: string;
  /** The text of the question. */
  readonly question: string;
  /** Additional text from the subagent about its question. @defaultValue none */
  readonly context?: string;
  /** When the question was asked, in milliseconds since 1970. */
  readonly askedAt: number;
  /** When the subagent stops waiting for an answer and continues without one, in milliseconds since 1970. */
  readonly dueAt: number;
}

/** A subagent's progress note. */
export interface ProgressNote {
  /** The first 2,000 characters of the note; a longer note is marked as cut. */
  readonly update: string;
  /** From 0 to 100; null if not reported. */
  readonly percent: number | null;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The complete report on one subagent. */
export interface SubagentReport {
  /** The id of the subagent. */
  readonly id: string;
  /** The name of its configuration. */
  readonly name: string;
  /** The description of its task. */
  readonly task: string;
  /** The tool that started it. */
  readonly toolName: string;
  /** Its state now. */
  readonly state: SubagentState;
  /** The current model step, counted from 1; 0 before the first step. */
  readonly step: number;
  /**
   * Whether the subagent has shown no activity for its `inactivityTimeoutMs`. Any new activity clears this flag.
   */
  readonly hung: boolean;
  /** The open question to the parent. Null in `waiting_for_input`: the subagent is then waiting for the user. */
  readonly pendingRequest: PendingInput | null;
  /** The latest 50 progress notes, oldest first. */
  readonly progress: readonly ProgressNote[];
  /** The depth in the tree: 1 for a subagent of the lead agent or of a program. */
  readonly depth: number;
  /** The id of its parent; null if the lead agent or the program started it. */
  readonly parentId: string | null;
  /** The tool call that it works for; null if there is none. */
  readonly callId: string | null;
  /** The workstream, whose subagents see each other's state; null if the subagent belongs to none. */
  readonly workstreamId: string | null;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** When it last showed activity, in milliseconds since 1970. */
  readonly lastActiveAt: number;
  /** When it ended, in milliseconds since 1970; null if it has not ended. */
  readonly endedAt: number | null;
  /** The result: text, or the value of the output schema. Present if the subagent has completed its task. */
  readonly result?: unknown;
  /** The result as text for speech. */
  readonly summary?: string;
  /** The failure of a subagent that did not complete its task. @defaultValue none */
  readonly error?: Failure;
  /** The last text that the subagent wrote, if it did not complete its task. */
  readonly partial?: string;
  /** How the subagent ended; null if it has not ended. */
  readonly outcome: Outcome | null;
}

/** The report on a subagent, or why the request was refused. */
export type CheckResult = { readonly ok: true; readonly report: SubagentReport } | Refused;

/** A message to a subagent: a steer, a queued message, or the answer to its question. */
export interface SendRequest {
  /** The text for the subagent. */
  readonly content: string;
  /** The `requestId` of the pending request that this message answers, if any. */
  readonly inResponseTo?: string;
  /** When the subagent reads the message, unless the message is an answer. @defaultValue 'steer' */
  readonly mode?: MessageMode;
  /**
   * The key of the message, which is the same for every attempt, even after a crash. A message with one of the latest
   * 100 keys is not delivered again.
   * @defaultValue none: each message is separate
   */
  readonly idempotencyKey?: string;
}

/** Whether the subagent's model has read a message. */
export type MessageReceipt =
  | { readonly applied: true; readonly step: number }
  | { readonly applied: false; readonly reason: string };

/** The raised budget, or why it was refused. */
export type RaiseResult = { readonly ok: true; readonly budget: BudgetReport } | Refused;

/** The receipt of a message to a subagent, or why it was refused. */
export type SendResult =
  | {
      readonly ok: true;
      readonly messageId: string;
      /** Whether the message answered the pending request. */
      readonly resolvedPending: boolean;
      /**
       * Settles when a model call that reads the message starts, or when it is certain that none will; never rejects.
       * For a `queue` message, this may take as long as the subagent runs. If the session or the service is suspended
       * first, the reason is `SUSPENDED`. A message that has been `written` by then is still read after the restart,
       * but this process is not notified. `step`: the step that reads the message; for an answer, the step that asked;
       * for an answer that was already read, the current step.
       */
      readonly receipt: Promise<MessageReceipt>;
      /** Resolves when the message is in the journal, or when it is certain never to be written; never rejects. */
      readonly written: Promise<void>;
    }
  | Refused;

/** The result of a message sent over the network. */
export type MessageSent =
  | Pick<Extract<SendResult, { ok: true }>, 'ok' | 'messageId' | 'resolvedPending'>
  | Refused;

/** The options of `await`. */
export interface AwaitOptions {
  /**
   * For several subagents: `any` waits until one of the subagents has ended, `all` until all of them have. A question
   * from an awaited subagent always ends the wait. @defaultValue 'all'
   */
  readonly mode?: 'any' | 'all';
  /** Whether a question to the requester from a subagent that is not awaited also ends the wait. @defaultValue true */
  readonly alsoAsking?: boolean;
  /**
   * For the lead agent of a text session: whether a new message from the user ends the wait, so that the agent can
   * answer it.
   * @defaultValue false
   */
  readonly heedsUser?: boolean;
  /** The maximum duration of the wait, in milliseconds. @defaultValue `defaultAwaitTimeoutMs` */
  readonly timeoutMs?: number;
  /** Aborting it ends the wait with `CANCELLED`; the subagents continue. */
  readonly signal?: AbortSignal;
}

/** The result of a wait for subagents, or why it was refused. */
export type AwaitResult =
  | {
      readonly ok: true;
      /**
       * Why the wait ended. `ended`: the awaited subagents have ended. `asked`: one of them (or, if that one is waiting
       * for others, any subagent below it) asks the requester a question. `user`: the user has spoken. `timeout`: none
       * of these happened in time.
       */
      readonly why: 'ended' | 'asked' | 'user' | 'timeout';
      /** The reports on the awaited subagents, in the order of their ids in the request. */
      readonly reports: readonly SubagentReport[];
      /** The reports on other subagents that ask the requester a question. */
      readonly alsoAsking: readonly SubagentReport[];
    }
  | Refused;

/** The options for listing subagents. */
export interface ListOptions {
  /** Whether to include ended subagents. @defaultValue false */
  readonly includeEnded?: boolean;
}

interface ChunkBase {
  /** The id of the subagent. */
  readonly subagentId: string;
  /** The `name` of its configuration. */
  readonly name: string;
  /** The id of its parent; null if the lead agent or the program started it. */
  readonly parentId: string | null;
  /** The tool call that it works for; null if there is none. */
  readonly callId: string | null;
  /** The depth in the tree: 1 for a subagent of the lead agent. */
  readonly depth: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The subagents' events in order, including the streamed text of subagents with `stream: true`. */
export type SubagentChunk = ChunkBase &
  (
    | {
        readonly type: 'spawned';
        readonly task: string;
        /** The task's arguments. */
        readonly input: Readonly<Record<string, unknown>>;
        readonly workstreamId: string | null;
      }
    | {
        readonly type: 'message.sent';
        readonly messageId: string;
        readonly content: string;
        /** Null if the message answers the request `inResponseTo`. */
        readonly mode: MessageMode | null;
        readonly inResponseTo: string | null;
        /** The sender's identity, if the app vouched for one. */
        readonly by?: string;
      }
    | { readonly type: 'message.applied'; readonly messageId: string; readonly step: number }
    | { readonly type: 'message.refused'; readonly messageId: string; readonly reason: string }
    | { readonly type: 'progress'; readonly update: string; readonly percent: number | null }
    | { readonly type: 'input.requested'; readonly request: PendingInput }
    | {
        readonly type: 'input.settled';
        readonly requestId: string;
        readonly how: 'answered' | 'expired' | 'withdrawn';
      }
    | { readonly type: 'hung'; readonly lastActiveAt: number }
    | { readonly type: 'recovered' }
    | { readonly type: 'streamed'; readonly chunk: StreamedChunk }
    | { readonly type: 'ended'; readonly outcome: Outcome }
  );

/**
 * All subagents of one scope. If a request cannot be fulfilled, the service refuses it and states the reason.
 * @throws {ConfigurationError} `INVALID_ARGUMENT`, from each method, if an argument has the wrong type or an undeclared
 *   property (`await` rejects with this error).
 */
export interface SubagentService {
  /** The id of the session, or of the scope. */
  readonly id: string;

  /**
   * Admits or refuses a subagent. An admitted subagent ends exactly once and never outlives its parent.
   * @throws {ConfigurationError} if the configuration is invalid.
   */
  spawn(request: SpawnRequest): SpawnReceipt;

  /**
   * Checks whether the requester may read the working memory entries that a task's arguments name under `inputs`.
   * Returns null if it may read all of them, or if the configuration has no `lineage`. Otherwise, returns a refusal
   * with `INPUT_NOT_FOUND` or a similar code, but never for an `idempotencyKey` that has already spawned a subagent.
   * `spawn` does not wait for working memory, so without this check, a subagent with unreadable inputs would fail
   * before its first step.
   */
  checkInputs(
    request: Pick<SpawnRequest, 'config' | 'task' | 'caller' | 'idempotencyKey'>,
  ): Promise<Refused | null>;

  /**
   * Returns the complete report on a subagent. If an ancestor requests the report on an ended subagent, the result
   * counts as delivered.
   */
  check(id: string, requester: Requester): CheckResult;

  /**
   * Returns reports on the subagents that the requester may see, oldest first. Does not mark any result as delivered.
   */
  list(requester: Requester, options?: ListOptions): readonly SubagentReport[];

  /**
   * Sends a subagent a message, or an answer to its question. Only an ancestor may answer. Refused with NOT_FOUND,
   * ALREADY_TERMINAL, or INVALID_STATE (the named request is not open).
   */
  send(id: string, message: SendRequest, requester: Requester, options?: VouchedFor): SendResult;

  /**
   * Waits for subagents, for at most `timeoutMs`. Resolves immediately if the condition is already met. A hung subagent
   * does not end the wait. Refused with NOT_FOUND (for any of the subagents), INVALID_STATE (there is no subagent to
   * wait for, or no time), WAIT_CYCLE, SESSION_LIMIT (too many waits), or CANCELLED.
   */
  await(ids: readonly string[], requester: Requester, options?: AwaitOptions): Promise<AwaitResult>;

  /**
   * Cancels a subagent and all subagents below it. Returns false if the subagent has ended or is not below the
   * requester.
   * @throws {CapacityError} `MAILBOX_FULL` while 10,000 of its events are waiting for the journal.
   */
  cancel(id: string, requester: Requester, reason?: string, options?: VouchedFor): boolean;

  /**
   * Raises limits of a subagent's budget to new totals, all of them or none. The difference is taken from the budget of
   * the parent. Only an ancestor may raise limits. Repeating a call changes nothing. Refused with NOT_FOUND,
   * ALREADY_TERMINAL, BUDGET_EXCEEDED (the budget above has too little left), or INVALID_STATE (the subagent has no
   * such limit of its own; the total is below the limit or the usage; the budget is used up).
   * @throws {CapacityError} `MAILBOX_FULL` while 10,000 of its events are waiting for the journal.
   */
  raiseBudget(
    id: string,
    limits: BudgetLimits,
    requester: Requester,
    options?: VouchedFor,
  ): RaiseResult;

  /** Records a subagent's progress note about itself. A `percent` outside 0 to 100 is refused (INVALID_STATE). */
  report(
    id: string,
    note: { readonly update: string; readonly percent: number | null },
  ): { readonly ok: true } | Refused;

  /** Records that a subagent's result has reached its recipient without `check` or `await`. */
  delivered(id: string): void;

  /**
   * Marks hung subagents, and forgets results that were delivered more than `stateRetentionMs` ago. Runs every
   * `sweepIntervalMs`. Returns the number of forgotten results.
   */
  sweep(): number;

  /** The events of all subagents. Completes when the scope is closed. Does not replay past events. */
  readonly events: Observable<SubagentChunk>;
}
