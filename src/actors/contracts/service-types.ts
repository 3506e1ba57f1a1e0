// The API of the service of subagents: requesters, requests and results. One service covers one scope (a
// session, or a program): a forest of subagents.
//
// Everything here is plain JSON except promises, observables and the contents of a configuration.

import type { JSONValue, ModelMessage } from 'ai';
import type { Observable } from 'rxjs';
import type { Failure, MessageMode } from '../../machines/index.ts';
import type { VouchedFor } from './identity.ts';
import type { SubagentState } from './session-views.ts';
import type { BudgetLimits, BudgetReport, SubagentConfig } from './config.ts';
import type { Outcome } from './outcome.ts';
import type { StreamedChunk, SubagentTask } from './task.ts';

/**
 * The caller of an operation. A subagent sees its descendants and those of its own workstream; to it, others
 * do not exist. Null is the lead agent, or a program: it sees the whole scope. The result of `callerOf` in a
 * tool is a requester.
 */
export interface Requester {
  readonly subagentId: string | null;
}

/** The requester for the lead agent of a session, or a program. */
export const THE_LEAD: Requester = { subagentId: null };

/** The reason for a refusal of the service. Stable. */
export type DelegationErrorCode =
  /** The requester sees no such subagent. */
  | 'NOT_FOUND'
  /** Not possible in the current state, or not for this requester. */
  | 'INVALID_STATE'
  /** The subagent has ended. */
  | 'ALREADY_TERMINAL'
  /** The subagent has an open request, and this message does not answer it. */
  | 'REQUEST_PENDING'
  /** The task lacks an input that the configuration declares, or has an unknown one. */
  | 'INVALID_INPUT'
  /** The task names an input that is not in working memory, or that the requester may not read. */
  | 'INPUT_NOT_FOUND'
  | 'DEPTH_EXCEEDED'
  /** A limit of the scope, named in the message. */
  | 'SESSION_LIMIT'
  /** A limit of the runtime, named in the message. */
  | 'GLOBAL_LIMIT'
  | 'ADAPTER_NOT_ALLOWED'
  | 'MODEL_NOT_ALLOWED'
  /** The requester does not have the tool itself, or it is denied to its subtree. */
  | 'TOOL_NOT_ALLOWED'
  /** The wait would be circular. The message names both subagents. */
  | 'WAIT_CYCLE'
  /** A budget of the requester does not allow it. */
  | 'BUDGET_EXCEEDED'
  /** A duplicate is under way, and its configuration says `duplicates: 'reject'`. */
  | 'DUPLICATE'
  /** The `idempotencyKey` belongs to another request. */
  | 'ID_REUSED'
  /** The signal of the request aborted. */
  | 'CANCELLED'
  /** The scope is closed. */
  | 'SESSION_CLOSED';

/** The reason why a request about a subagent was refused. */
export interface DelegationFailure extends Failure {
  readonly code: DelegationErrorCode;
}

/** A request about a subagent that was refused; nothing has happened. */
export interface Refused {
  readonly ok: false;
  readonly error: DelegationFailure;
}

/** The grant of a model's own tools. */
export interface ToolGrant {
  /** The names, out of the requester's own tools. Absent: all of them. Empty: none. */
  readonly tools?: readonly string[];
  /** Neither the subagent nor those below it get these, whatever they are granted or configured with. */
  readonly disallowedTools?: readonly string[];
}

/** A request for a new subagent. */
export interface SpawnRequest {
  /** The configuration as its author wrote it (a checked definition is one, too). */
  readonly config: SubagentConfig;
  readonly task: SubagentTask;
  /** The parent; the lead agent or a program if its id is null. */
  readonly caller: Requester;
  /** The requester's tool call that it works for. */
  readonly callId?: string;
  /**
   * The tools of `config` are extended by the granted tools of the requester. Absent: exactly the tools of
   * `config`. Denials of the requester's subtree apply in either case.
   */
  readonly grant?: ToolGrant;
  /** Subagents of one workstream see each other. @defaultValue the workstream of the requester */
  readonly workstreamId?: string;
  /** The maximum depth of its subtree; a lower limit of the scope wins. */
  readonly maxDepth?: number;
  /**
   * A second request with this key returns the subagent of the first; one with another `config.name` or `task` is refused
   * (`ID_REUSED`).
   */
  readonly idempotencyKey?: string;
  /** With `context: 'fork'`: the requester's conversation, which the subagent continues. */
  readonly messages?: readonly ModelMessage[];
  /**
   * The data from which the spawning tool restores the same configuration after a crash; see `RECONFIGURES`.
   * Not needed for a configuration that is found by its name.
   */
  readonly recipe?: JSONValue;
  /** Checked against `allowedAdapters`. @defaultValue the name of the configuration */
  readonly adapterName?: string;
  /** Checked against `allowedModels`. @defaultValue the id of its model */
  readonly modelName?: string;
  /**
   * The identity for whom it works, as the program vouches: tools read it as `requester`. Derived for a
   * subagent with a parent, or for a call of the lead agent. @defaultValue none
   */
  readonly by?: string;
  /**
   * The W3C `traceparent` of the caller's span: the spans of `tracedJournal` of this subagent are below it. One that
   * cannot be read is ignored. @defaultValue the trace of the scope
   */
  readonly traceparent?: string;
}

/** The receipt of a spawn: the subagent's id, or the reason of its refusal. */
export type SpawnReceipt =
  | {
      readonly status: 'accepted';
      readonly subagentId: string;
      /** The subagent existed already: the same `idempotencyKey`. */
      readonly isRepeat?: true;
    }
  | { readonly status: 'rejected'; readonly error: DelegationFailure };

/** A question of a subagent to the agent that gave it the task. */
export interface PendingInput {
  /** The id that the answer must name (`inResponseTo`). */
  readonly requestId: string;
  readonly question: string;
  readonly context?: string;
  /** When it was asked, in milliseconds since 1970. */
  readonly askedAt: number;
  /** When the subagent continues without an answer, in milliseconds since 1970. */
  readonly dueAt: number;
}

/** A progress that a subagent reported. */
export interface ProgressNote {
  /** Its first 2,000 characters, and whether that is not all of it. */
  readonly update: string;
  /** 0 to 100; null if not reported. */
  readonly percent: number | null;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The complete report on one subagent. */
export interface SubagentReport {
  readonly id: string;
  /** The name of its configuration. */
  readonly name: string;
  readonly task: string;
  readonly toolName: string;
  readonly state: SubagentState;
  /** The current model step, from 1; 0 before the first. */
  readonly step: number;
  /** Whether it showed no sign of life for its `inactivityTimeoutMs`. The next sign clears it. */
  readonly hung: boolean;
  /** Its open question to its parent. Null in `waiting_for_input`: it waits for the user. */
  readonly pendingRequest: PendingInput | null;
  /** The latest 50, oldest first. */
  readonly progress: readonly ProgressNote[];
  /** 1 for a subagent of the lead agent or of a program. */
  readonly depth: number;
  readonly parentId: string | null;
  readonly callId: string | null;
  readonly workstreamId: string | null;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly lastActiveAt: number;
  readonly endedAt: number | null;
  /** The following properties exist once it has ended. Completed: text, or the value of its output schema. */
  readonly result?: unknown;
  /** The result in words that can be spoken. */
  readonly summary?: string;
  readonly error?: Failure;
  /** The last text of a subagent that did not complete. */
  readonly partial?: string;
  readonly outcome: Outcome | null;
}

/** The report on a subagent, or the reason of its refusal. */
export type CheckResult = { readonly ok: true; readonly report: SubagentReport } | Refused;

/** A message to a subagent: a steer, a queued message, or the answer to its question. */
export interface SendRequest {
  readonly content: string;
  /** The `requestId` of its pending request, if this message answers it. */
  readonly inResponseTo?: string;
  /** When it reads a message that is no answer. @defaultValue 'steer' */
  readonly mode?: MessageMode;
  /**
   * The same for every attempt, even after a crash: a message with the key of one of the latest 100 is not
   * delivered again. @defaultValue each message is separate
   */
  readonly idempotencyKey?: string;
}

/** The fate of a message. */
export type MessageReceipt =
  | { readonly applied: true; readonly step: number }
  | { readonly applied: false; readonly reason: string };

/** The raised budget, or why it was not raised. */
export type RaiseResult = { readonly ok: true; readonly budget: BudgetReport } | Refused;

/** The receipt of a message to a subagent, or the reason of its refusal. */
export type SendResult =
  | {
      readonly ok: true;
      readonly messageId: string;
      /** Whether it answered its pending request. */
      readonly resolvedPending: boolean;
      /**
       * Settles when the model call that reads the message begins, or when it is certain that none will
       * (never rejects). A `queue` message may take as long as the subagent itself. If the session or the
       * service is suspended first, it is `SUSPENDED`: messages that are `written` by then are read after the
       * restart, by a model call of which this process learns nothing. For an answer: the step that asked;
       * for an answer that was read before: the current step.
       */
      readonly receipt: Promise<MessageReceipt>;
      /**
       * Resolves when the message is in the journal, or when it is certain that it never will be (never
       * rejects).
       */
      readonly written: Promise<void>;
    }
  | Refused;

/** The fate of a message that came over the network. */
export type MessageSent =
  | Pick<Extract<SendResult, { ok: true }>, 'ok' | 'messageId' | 'resolvedPending'>
  | Refused;

/** The options of a wait for subagents. */
export interface AwaitOptions {
  /**
   * For several subagents: `any` waits until one has ended, `all` until all have. A question of one of them
   * always ends the wait. @defaultValue 'all'
   */
  readonly mode?: 'any' | 'all';
  /** Whether a question of another subagent to the requester ends the wait, too. @defaultValue true */
  readonly alsoAsking?: boolean;
  /**
   * In a text session, for the lead agent: whether new words of the user end the wait, so that they are
   * answered. @defaultValue false
   */
  readonly heedsUser?: boolean;
  /** @defaultValue `defaultAwaitTimeoutMs` */
  readonly timeoutMs?: number;
  /** Ends the wait with CANCELLED; the subagents continue. */
  readonly signal?: AbortSignal;
}

/** The result of a wait for subagents, or the reason of its refusal. */
export type AwaitResult =
  | {
      readonly ok: true;
      /**
       * `ended`: the awaited subagents have ended. `asked`: one of them (or, for a waiting subagent, any
       * below it) asks the requester a question. `user`: the user has spoken. `timeout`: none of these.
       */
      readonly why: 'ended' | 'asked' | 'user' | 'timeout';
      /** The reports on the awaited subagents, in the order of the request. */
      readonly reports: readonly SubagentReport[];
      /** Subagents that ask the requester a question and were not awaited. */
      readonly alsoAsking: readonly SubagentReport[];
    }
  | Refused;

/** The options of a list of subagents. */
export interface ListOptions {
  /** @defaultValue false */
  readonly includeEnded?: boolean;
}

interface ChunkBase {
  readonly subagentId: string;
  readonly name: string;
  readonly parentId: string | null;
  readonly callId: string | null;
  readonly depth: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The events of subagents and the streamed text of those with `stream: true`, in order. */
export type SubagentChunk = ChunkBase &
  (
    | {
        readonly type: 'spawned';
        readonly task: string;
        /** The arguments of the task. */
        readonly input: Readonly<Record<string, unknown>>;
        readonly workstreamId: string | null;
      }
    | {
        readonly type: 'message.sent';
        readonly messageId: string;
        readonly content: string;
        /** Null for an answer to `inResponseTo`. */
        readonly mode: MessageMode | null;
        readonly inResponseTo: string | null;
        /** The identity of the sender, if the app vouched for one. */
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
 * All subagents of one scope. A request that cannot be fulfilled is refused with a reason.
 * @throws {ConfigurationError} `INVALID_ARGUMENT`, from each method, for an argument of a type or with a
 *   property that it does not declare (`await` rejects with it).
 */
export interface SubagentService {
  /** The id of the session, or of the scope. */
  readonly id: string;

  /**
   * Admits or refuses a subagent. An accepted one ends exactly once, and never outlives its parent.
   * @throws {ConfigurationError} for an invalid configuration.
   */
  spawn(request: SpawnRequest): SpawnReceipt;

  /**
   * Checks whether the requester can read the entries of working memory that the arguments of a task name
   * under `inputs`. Null: it can read all of them, or the configuration has no `lineage`. Refused:
   * INPUT_NOT_FOUND, with near matches; never for a key that has spawned. `spawn` does not wait for working
   * memory: after it, a subagent with unreadable inputs fails before its first step.
   */
  checkInputs(
    request: Pick<SpawnRequest, 'config' | 'task' | 'caller' | 'idempotencyKey'>,
  ): Promise<Refused | null>;

  /**
   * Returns the report on a subagent. The report on an ended one counts as delivered if an ancestor of it
   * calls.
   */
  check(id: string, requester: Requester): CheckResult;

  /** Returns the subagents that the requester sees, oldest first; reading them delivers nothing. */
  list(requester: Requester, options?: ListOptions): readonly SubagentReport[];

  /**
   * Sends it a message, or an answer to its question. Only an ancestor of it may answer. Refused: NOT_FOUND,
   * ALREADY_TERMINAL, INVALID_STATE (no such request is open).
   */
  send(id: string, message: SendRequest, requester: Requester, options?: VouchedFor): SendResult;

  /**
   * Waits for subagents, at most `timeoutMs`. Returns at once if the condition already holds. A hung subagent
   * ends no wait. Refused: NOT_FOUND (any of them), INVALID_STATE (no subagent to wait for, no time),
   * WAIT_CYCLE, SESSION_LIMIT (too many waits), CANCELLED.
   */
  await(ids: readonly string[], requester: Requester, options?: AwaitOptions): Promise<AwaitResult>;

  /**
   * Cancels a subagent and all below it. Returns false if it has ended, or is not below the requester.
   * @throws {CapacityError} `MAILBOX_FULL` while 10,000 of its events wait for the journal.
   */
  cancel(id: string, requester: Requester, reason?: string, options?: VouchedFor): boolean;

  /**
   * Raises limits of its budget to new totals, all of them or none; what they are raised by is taken from the
   * budget above. Only an ancestor of it may do so. The same call again changes nothing. Refused: NOT_FOUND,
   * ALREADY_TERMINAL, BUDGET_EXCEEDED (the budget above has too little left), INVALID_STATE (a limit that is
   * not its own, lower than it is or than what was used; the budget is used up).
   * @throws {CapacityError} `MAILBOX_FULL` while 10,000 of its events wait for the journal.
   */
  raiseBudget(
    id: string,
    limits: BudgetLimits,
    requester: Requester,
    options?: VouchedFor,
  ): RaiseResult;

  /**
   * Records a progress note of a subagent on itself. `percent` outside 0 to 100 is refused (INVALID_STATE).
   */
  report(
    id: string,
    note: { readonly update: string; readonly percent: number | null },
  ): { readonly ok: true } | Refused;

  /** Records that its result has reached its recipient by another way than `check` or `await`. */
  delivered(id: string): void;

  /**
   * Marks hung subagents and forgets results that were delivered `stateRetentionMs` ago; runs by itself every
   * `sweepIntervalMs`. Returns the number of forgotten ones.
   */
  sweep(): number;

  /** Hot; completes when the scope is closed. Past events are not replayed. */
  readonly events: Observable<SubagentChunk>;
}
