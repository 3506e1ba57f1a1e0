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
 * is the lead agent or a program, which sees the whole scope. In a tool, `callerOf` returns a requester.
 */
export interface Requester {
  /** The requesting subagent; null for the lead agent or the program. */
  readonly subagentId: string | null;
}

/** The requester that represents a session's lead agent, or a program. */
export const THE_LEAD: Requester = { subagentId: null };

/** The stable code of a refusal by the service. */
export type DelegationErrorCode =
  /** The requester sees no subagent with this id. */
  | 'NOT_FOUND'
  /** The operation is not possible in the current state, or for this requester. */
  | 'INVALID_STATE'
  /** The subagent has ended. */
  | 'ALREADY_TERMINAL'
  /** The subagent has an open request that this message does not answer. */
  | 'REQUEST_PENDING'
  /** The task lacks an input that the configuration declares, or has an undeclared input. */
  | 'INVALID_INPUT'
  /** The task names an input that working memory lacks, or that the requester may not read. */
  | 'INPUT_NOT_FOUND'
  | 'DEPTH_EXCEEDED'
  /** A limit of the scope, which the message names. */
  | 'SESSION_LIMIT'
  /** A limit of the runtime, which the message names. */
  | 'GLOBAL_LIMIT'
  | 'ADAPTER_NOT_ALLOWED'
  | 'MODEL_NOT_ALLOWED'
  /** The requester does not have the tool, or the tool is denied to its subtree. */
  | 'TOOL_NOT_ALLOWED'
  /** The wait would be circular; the message names both subagents. */
  | 'WAIT_CYCLE'
  /** The requester's budget does not allow it. */
  | 'BUDGET_EXCEEDED'
  /** A duplicate is running, and its configuration has `duplicates: 'reject'`. */
  | 'DUPLICATE'
  /** The `idempotencyKey` belongs to another request. */
  | 'ID_REUSED'
  /** The signal of the request aborted. */
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
  /** The cause of the refusal. */
  readonly error: DelegationFailure;
}

/** The requester's tools that a new subagent receives. */
export interface ToolGrant {
  /** The names, out of the requester's tools. Absent for all tools. Empty for none. */
  readonly tools?: readonly string[];
  /** Tools that neither the subagent nor the subagents below it receive, even if the tools are granted or configured. */
  readonly disallowedTools?: readonly string[];
}

/** A request for a new subagent. */
export interface SpawnRequest {
  /** The configuration as its author wrote it, or a checked definition. */
  readonly config: SubagentConfig;
  /** The task of the new subagent. */
  readonly task: SubagentTask;
  /** The parent; the lead agent or a program if its `subagentId` is null. */
  readonly caller: Requester;
  /** The requester's tool call for which the subagent works. */
  readonly callId?: string;
  /**
   * Extends the tools of `config` with tools of the requester. If absent, the subagent has exactly the tools of
   * `config`. Denials for the requester's subtree apply in both cases.
   */
  readonly grant?: ToolGrant;
  /** The workstream, whose subagents see each other. @defaultValue the workstream of the requester */
  readonly workstreamId?: string;
  /** The depth limit of the subagent's subtree; a lower limit of the scope takes precedence. */
  readonly maxDepth?: number;
  /**
   * The request's key: a second request with this key returns the first request's subagent; a request with a different
   * `config.name` or `task` is refused (`ID_REUSED`).
   */
  readonly idempotencyKey?: string;
  /** With `context: 'fork'`: the requester's conversation, which the subagent continues. */
  readonly messages?: readonly ModelMessage[];
  /**
   * The data from which the spawning tool restores the configuration after a crash; see `RECONFIGURES`. Not needed if
   * the configuration is found by name.
   */
  readonly recipe?: JSONValue;
  /** The name that `allowedAdapters` checks. @defaultValue the name of the configuration */
  readonly adapterName?: string;
  /** The name that `allowedModels` checks. @defaultValue the id of the configuration's model */
  readonly modelName?: string;
  /**
   * The identity for whom the subagent works, as the program vouches: tools receive it as `requester`. Derived if the
   * subagent has a parent, or works for a call of the lead agent. @defaultValue none
   */
  readonly by?: string;
  /**
   * The `traceparent` header (W3C) of the caller's span, the parent of this subagent's spans in `tracedJournal`. An
   * invalid one is ignored. @defaultValue the trace of the scope
   */
  readonly traceparent?: string;
}

/** The receipt of a spawn: the subagent's id, or why it was refused. */
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
  /** More text from the subagent about its question. @defaultValue none */
  readonly context?: string;
  /** When the question was asked, in milliseconds since 1970. */
  readonly askedAt: number;
  /** When the subagent continues without an answer, in milliseconds since 1970. */
  readonly dueAt: number;
}

/** A subagent's progress note. */
export interface ProgressNote {
  /** The first 2,000 characters of the note, with a mark if it is longer. */
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
  /** The name of the subagent's configuration. */
  readonly name: string;
  /** The description of its task. */
  readonly task: string;
  /** The tool that started it. */
  readonly toolName: string;
  /** Its state now. */
  readonly state: SubagentState;
  /** The current model step, from 1; 0 before the first step. */
  readonly step: number;
  /** Whether the subagent has shown no sign of life for its `inactivityTimeoutMs`. The next sign of life clears the mark. */
  readonly hung: boolean;
  /** The open question to the parent. Null in `waiting_for_input`, where the subagent waits for the user. */
  readonly pendingRequest: PendingInput | null;
  /** The latest 50 progress notes, oldest first. */
  readonly progress: readonly ProgressNote[];
  /** 1 for a subagent of the lead agent or of a program. */
  readonly depth: number;
  /** The id of its parent; null if the lead agent or the program started it. */
  readonly parentId: string | null;
  /** The tool call for which it works; null if there is none. */
  readonly callId: string | null;
  readonly workstreamId: string | null;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** When it last showed a sign of life, in milliseconds since 1970. */
  readonly lastActiveAt: number;
  /** When it ended, in milliseconds since 1970; null if it has not ended. */
  readonly endedAt: number | null;
  /** The result: text, or the value of the output schema. Present once the subagent has completed. */
  readonly result?: unknown;
  /** The result as text for speech. */
  readonly summary?: string;
  /** The failure of a subagent that did not complete. @defaultValue none */
  readonly error?: Failure;
  /** The last text of a subagent that did not complete. */
  readonly partial?: string;
  /** The end of the subagent; null if it has not ended. */
  readonly outcome: Outcome | null;
}

/** The report on a subagent, or why the request was refused. */
export type CheckResult = { readonly ok: true; readonly report: SubagentReport } | Refused;

/** A message to a subagent: a steer, a queued message, or the answer to its question. */
export interface SendRequest {
  /** The words for the subagent. */
  readonly content: string;
  /** The `requestId` of the pending request that this message answers, if any. */
  readonly inResponseTo?: string;
  /** When the subagent reads a message that is not an answer. @defaultValue 'steer' */
  readonly mode?: MessageMode;
  /**
   * The same for every attempt, even after a crash: a message whose key is among the latest 100 is not delivered again.
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
       * Settles when the model call that reads the message starts, or when it is certain that no call will; never
       * rejects. A `queue` message may take as long as the subagent itself. If the session or the service is suspended
       * first, the reason is `SUSPENDED`: a message that is `written` by then is read after the restart, but this
       * process does not learn it. `step`: the step that reads the message; for an answer, the step that asked; for an
       * answer that was already read, the current step.
       */
      readonly receipt: Promise<MessageReceipt>;
      /** Resolves when the message is in the journal, or when it is certain that it will never be; never rejects. */
      readonly written: Promise<void>;
    }
  | Refused;

/** The result of a message sent over the network. */
export type MessageSent =
  | Pick<Extract<SendResult, { ok: true }>, 'ok' | 'messageId' | 'resolvedPending'>
  | Refused;

/** The options of a wait for subagents. */
export interface AwaitOptions {
  /**
   * For several subagents: `any` waits until one has ended, `all` until all have. A question from an awaited subagent
   * always ends the wait. @defaultValue 'all'
   */
  readonly mode?: 'any' | 'all';
  /** Whether a question to the requester from another subagent ends the wait too. @defaultValue true */
  readonly alsoAsking?: boolean;
  /**
   * In a text session, for the lead agent: whether new words from the user end the wait, so that the agent can answer them.
   * @defaultValue false
   */
  readonly heedsUser?: boolean;
  /** The maximum duration of the wait, in milliseconds. @defaultValue `defaultAwaitTimeoutMs` */
  readonly timeoutMs?: number;
  /** Ends the wait with `CANCELLED`; the subagents continue. */
  readonly signal?: AbortSignal;
}

/** The result of a wait for subagents, or why it was refused. */
export type AwaitResult =
  | {
      readonly ok: true;
      /**
       * Why the wait ended. `ended`: the awaited subagents have ended. `asked`: one of them (or, for a waiting
       * subagent, any subagent below it) asks the requester a question. `user`: the user has spoken. `timeout`: none of
       * these happened in time.
       */
      readonly why: 'ended' | 'asked' | 'user' | 'timeout';
      /** The reports on the awaited subagents, in the order of the ids. */
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
  /** The tool call for which it works; null if there is none. */
  readonly callId: string | null;
  /** The depth in the tree: 1 for a subagent of the lead agent. */
  readonly depth: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The subagents' events in order, including the streamed text of those with `stream: true`. */
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
 * All subagents of one scope. If it cannot fulfil a request, it refuses it and returns the reason.
 * @throws {ConfigurationError} `INVALID_ARGUMENT`, from each method, if an argument has the wrong type or an undeclared
 *   property (`await` rejects with it).
 */
export interface SubagentService {
  /** The id of the session, or of the scope. */
  readonly id: string;

  /**
   * Admits or refuses a subagent. An admitted subagent ends exactly once, and never outlives its parent.
   * @throws {ConfigurationError} if the configuration is invalid.
   */
  spawn(request: SpawnRequest): SpawnReceipt;

  /**
   * Checks whether the requester can read the working memory entries that a task's arguments name under `inputs`. Null
   * if it can read all of them, or the configuration has no `lineage`. Refused with INPUT_NOT_FOUND and similar codes;
   * never for an `idempotencyKey` that has already spawned a subagent. `spawn` does not wait for working memory:
   * without this check, a subagent with unreadable inputs fails before its first step.
   */
  checkInputs(
    request: Pick<SpawnRequest, 'config' | 'task' | 'caller' | 'idempotencyKey'>,
  ): Promise<Refused | null>;

  /** Returns the report on a subagent. An ancestor's call marks the report on an ended subagent as delivered. */
  check(id: string, requester: Requester): CheckResult;

  /** Returns reports on the subagents that the requester sees, oldest first. This marks no result as delivered. */
  list(requester: Requester, options?: ListOptions): readonly SubagentReport[];

  /**
   * Sends a subagent a message, or an answer to its question. Only an ancestor may answer. Refused: NOT_FOUND,
   * ALREADY_TERMINAL, INVALID_STATE (no such request is open).
   */
  send(id: string, message: SendRequest, requester: Requester, options?: VouchedFor): SendResult;

  /**
   * Waits for subagents, at most `timeoutMs`. Resolves immediately if the condition already holds. A hung subagent does
   * not end a wait. Refused: NOT_FOUND (for any of them), INVALID_STATE (no subagent to wait for, no time), WAIT_CYCLE,
   * SESSION_LIMIT (too many waits), CANCELLED.
   */
  await(ids: readonly string[], requester: Requester, options?: AwaitOptions): Promise<AwaitResult>;

  /**
   * Cancels a subagent and all subagents below it. Returns false if it has ended, or is not below the requester.
   * @throws {CapacityError} `MAILBOX_FULL` while 10,000 of its events wait for the journal.
   */
  cancel(id: string, requester: Requester, reason?: string, options?: VouchedFor): boolean;

  /**
   * Raises limits of a subagent's budget to new totals, all of them or none; the raise is taken from the budget above.
   * Only an ancestor may raise. A repeated call changes nothing. Refused: NOT_FOUND, ALREADY_TERMINAL, BUDGET_EXCEEDED
   * (the budget above has too little left), INVALID_STATE (the subagent has no such limit of its own; the total is
   * below the limit or the usage; the budget is used up).
   * @throws {CapacityError} `MAILBOX_FULL` while 10,000 of its events wait for the journal.
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

  /** Records that a subagent's result has reached its recipient other than by `check` or `await`. */
  delivered(id: string): void;

  /**
   * Marks hung subagents, and forgets results that were delivered more than `stateRetentionMs` ago; runs every
   * `sweepIntervalMs`. Returns the number of forgotten results.
   */
  sweep(): number;

  /** The events of all subagents. Completes when the scope is closed. Does not replay past events. */
  readonly events: Observable<SubagentChunk>;
}
