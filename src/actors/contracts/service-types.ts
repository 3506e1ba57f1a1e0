// The service of subagents, as those who use it see it: who may ask, what is asked for, what
// comes back. One service is one scope (a session, or a program): a forest of subagents.
//
// Everything here is plain JSON but promises, observables and what a configuration holds.

import type { JSONValue, ModelMessage } from 'ai';
import type { Observable } from 'rxjs';
import type { Failure, MessageMode } from '../../machines/index.ts';
import type { VouchedFor } from './identity.ts';
import type { SubagentState } from './session-views.ts';
import type { SubagentConfig } from './config.ts';
import type { Outcome } from './outcome.ts';
import type { StreamedChunk, SubagentTask } from './task.ts';

/**
 * Who asks. A subagent sees its descendants and those of its own workstream; whatever else
 * there is does not exist for it. Null is the lead agent, or a program: it sees the whole
 * scope. What `callerOf` gives a tool is a requester.
 */
export interface Requester {
  readonly subagentId: string | null;
}

/** The lead agent of a session, or a program. */
export const THE_LEAD: Requester = { subagentId: null };

/** Why the service did not do what it was asked for. Stable. */
export type DelegationErrorCode =
  /** No such subagent, for this requester. */
  | 'NOT_FOUND'
  /** Not possible as it is now, or not for this requester. */
  | 'INVALID_STATE'
  /** It has ended. */
  | 'ALREADY_TERMINAL'
  /** It has an open request, and this is not the answer to it. */
  | 'REQUEST_PENDING'
  /** Its task lacks an input that the configuration declares, or has one that it does not know. */
  | 'INVALID_INPUT'
  /** Its task names an input that is not in working memory, or not for the requester to read. */
  | 'INPUT_NOT_FOUND'
  | 'DEPTH_EXCEEDED'
  /** A limit of the scope, named in the message. */
  | 'SESSION_LIMIT'
  /** A limit of the runtime, named in the message. */
  | 'GLOBAL_LIMIT'
  | 'ADAPTER_NOT_ALLOWED'
  | 'MODEL_NOT_ALLOWED'
  /** A tool that the requester does not have itself, or that is denied to its subtree. */
  | 'TOOL_NOT_ALLOWED'
  /** It would wait for somebody who waits for it. The message names both. */
  | 'WAIT_CYCLE'
  /** A budget of the requester does not allow it. */
  | 'BUDGET_EXCEEDED'
  /** One like it is under way, and its configuration says `duplicates: 'reject'`. */
  | 'DUPLICATE'
  /** The signal of the request aborted. */
  | 'CANCELLED'
  /** The scope is closed. */
  | 'SESSION_CLOSED';

export interface DelegationFailure extends Failure {
  readonly code: DelegationErrorCode;
}

export interface Refused {
  readonly ok: false;
  readonly error: DelegationFailure;
}

/** What a model grants of its own tools. */
export interface ToolGrant {
  /** By name, out of the requester's own. Absent: all of them. Empty: none. */
  readonly tools?: readonly string[];
  /** Neither it nor anybody below it gets these, whatever they are granted or configured with. */
  readonly disallowedTools?: readonly string[];
}

export interface SpawnRequest {
  /** As its author wrote it (a checked definition is one, too). */
  readonly config: SubagentConfig;
  readonly task: SubagentTask;
  /** Its parent, or null for the lead agent or a program. */
  readonly caller: Requester;
  /** The requester's tool call that it works for. */
  readonly callId?: string;
  /**
   * Its tools are those of `config` and, of the requester's, the granted ones. Absent: exactly
   * those of `config`. Denials of the requester's subtree hold in either case.
   */
  readonly grant?: ToolGrant;
  /** Those of one workstream see each other. @defaultValue the workstream of the requester */
  readonly workstreamId?: string;
  /** How deep it and its subtree may be; a limit of the scope that is lower wins. */
  readonly maxDepth?: number;
  /** A second request with this key is answered with the subagent of the first. */
  readonly idempotencyKey?: string;
  /** With `context: 'fork'`: the requester's conversation, which it goes on from. */
  readonly messages?: readonly ModelMessage[];
  /**
   * What the tool that spawned it needs to make the same configuration again after a crash; see
   * `RECONFIGURES`. Not needed for a configuration that is found by its name.
   */
  readonly recipe?: JSONValue;
  /** Checked against `allowedAdapters`. @defaultValue the name of the configuration */
  readonly adapterName?: string;
  /** Checked against `allowedModels`. @defaultValue the id of its model */
  readonly modelName?: string;
  /**
   * For whom it works, as the program vouches: tools read it as `requester`. Of one with a parent, or
   * for a call of the lead agent, it is known. @defaultValue nobody in particular
   */
  readonly by?: string;
}

export type SpawnReceipt =
  | {
      readonly status: 'accepted';
      readonly subagentId: string;
      /** It was there already: the same `idempotencyKey`. */
      readonly isRepeat?: true;
    }
  | { readonly status: 'rejected'; readonly error: DelegationFailure };

/** What a subagent asked the agent that gave it the task, and waits to be told. */
export interface PendingInput {
  /** What the answer must name (`inResponseTo`). */
  readonly requestId: string;
  readonly question: string;
  readonly context?: string;
  /** Milliseconds since 1970. */
  readonly askedAt: number;
  /** When it goes on without an answer; milliseconds since 1970. */
  readonly dueAt: number;
}

export interface ProgressNote {
  /** Its first 2,000 characters, and whether that is not all. */
  readonly update: string;
  /** 0 to 100; null if it did not say. */
  readonly percent: number | null;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Everything that may be known of one subagent. */
export interface SubagentReport {
  readonly id: string;
  /** Of its configuration. */
  readonly name: string;
  readonly task: string;
  readonly toolName: string;
  readonly state: SubagentState;
  /** The model step it is in, from 1; 0 before the first. */
  readonly step: number;
  /** Without a sign of life for its `inactivityTimeoutMs`. The next one clears it. */
  readonly hung: boolean;
  /** What it asks its parent. In `waiting_for_input` without one it waits for the user. */
  readonly pendingRequest: PendingInput | null;
  /** The latest 50, oldest first. */
  readonly progress: readonly ProgressNote[];
  /** 1 for one of the lead agent or of a program. */
  readonly depth: number;
  readonly parentId: string | null;
  readonly callId: string | null;
  readonly workstreamId: string | null;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly lastActiveAt: number;
  readonly endedAt: number | null;
  /** The following, once it has ended. Completed: text, or the value of its output schema. */
  readonly result?: unknown;
  /** The result in words that can be said. */
  readonly summary?: string;
  readonly error?: Failure;
  /** What it had said when it did not complete. */
  readonly partial?: string;
  readonly outcome: Outcome | null;
}

export type CheckResult = { readonly ok: true; readonly report: SubagentReport } | Refused;

export interface SendRequest {
  readonly content: string;
  /** The `requestId` of its pending request, if this is the answer. */
  readonly inResponseTo?: string;
  /** When it reads a message that is no answer. @defaultValue 'steer' */
  readonly mode?: MessageMode;
  /**
   * The same for every attempt, also after a crash: with the key of one of its latest 100
   * messages it is told nothing more. @defaultValue each is a message of its own
   */
  readonly idempotencyKey?: string;
}

/** What became of a message. */
export type MessageReceipt =
  | { readonly applied: true; readonly step: number }
  | { readonly applied: false; readonly reason: string };

export type SendResult =
  | {
      readonly ok: true;
      readonly messageId: string;
      /** It was the answer to its pending request. */
      readonly resolvedPending: boolean;
      /**
       * Settles when the model call that reads the message begins, or when it is certain that
       * none will (never rejects). A `queue` message may take as long as the subagent itself. Where the
       * session or the service is suspended first, it is `SUSPENDED`: what is `written` by then is read
       * when it goes on, by a model call of which this process does not hear.
       * For an answer: the step that asked; for one that was read before: the one that it is in.
       */
      readonly receipt: Promise<MessageReceipt>;
      /** Resolves when it is in the journal, or it is certain that it never will be (never rejects). */
      readonly written: Promise<void>;
    }
  | Refused;

export interface AwaitOptions {
  /**
   * Of several: until one has ended, or until all have. A question of one of them always
   * ends the wait. @defaultValue 'all'
   */
  readonly mode?: 'any' | 'all';
  /** A question of somebody else to the requester ends the wait, too. @defaultValue true */
  readonly alsoAsking?: boolean;
  /**
   * In a text session, for the lead agent: new words of the user end the wait, so that they are
   * answered. @defaultValue false
   */
  readonly heedsUser?: boolean;
  /** @defaultValue `defaultAwaitTimeoutMs` */
  readonly timeoutMs?: number;
  /** Ends the wait with CANCELLED; the subagents are not touched. */
  readonly signal?: AbortSignal;
}

export type AwaitResult =
  | {
      readonly ok: true;
      /**
       * `ended`: what was waited for. `asked`: one of them (or, for a subagent that waits,
       * anyone below it) asks the requester something. `user`: the user has said something.
       * `timeout`: none of these.
       */
      readonly why: 'ended' | 'asked' | 'user' | 'timeout';
      /** Of each that was waited for, in the order of the request. */
      readonly reports: readonly SubagentReport[];
      /** Who asks the requester, of whom it did not wait for. */
      readonly alsoAsking: readonly SubagentReport[];
    }
  | Refused;

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

/** What happens to subagents, and what those with `stream: true` say, in order. */
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
        /** Who sent it, where somebody vouched for it. */
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
 * All subagents of one scope. What cannot be done is answered with a stated reason.
 * @throws {ConfigurationError} `INVALID_ARGUMENT`, from each method, for an argument of another type than
 * it declares or with a property that it does not (`await` rejects with it).
 */
export interface SubagentService {
  /** Of the session, or of the scope. */
  readonly id: string;

  /**
   * Admits one more, or not. An accepted one ends exactly once, and never outlives its parent.
   * @throws {ConfigurationError} for a configuration that cannot work.
   */
  spawn(request: SpawnRequest): SpawnReceipt;

  /**
   * Whether the entries of working memory that the arguments of a task name under `inputs` can be
   * read by the requester. Null: all of them, or the configuration has no `lineage`. Refused:
   * INPUT_NOT_FOUND, with near matches; never for a key that has spawned. `spawn` does not wait for working memory: there, a subagent
   * with such inputs fails before its first step.
   */
  checkInputs(
    request: Pick<SpawnRequest, 'config' | 'task' | 'caller' | 'idempotencyKey'>,
  ): Promise<Refused | null>;

  /** How it is. The report of an ended one counts as delivered when an ancestor of it asks. */
  check(id: string, requester: Requester): CheckResult;

  /** Those that the requester sees, oldest first; reading them delivers nothing. */
  list(requester: Requester, options?: ListOptions): readonly SubagentReport[];

  /**
   * Tells it something, or answers what it asked. Only an ancestor of it may answer.
   * Refused: NOT_FOUND, ALREADY_TERMINAL, INVALID_STATE (no such request is open).
   */
  send(id: string, message: SendRequest, requester: Requester, options?: VouchedFor): SendResult;

  /**
   * Waits, at most `timeoutMs`. Returns at once if what it waits for is so already. Being hung
   * ends no wait. Refused: NOT_FOUND (any of them), INVALID_STATE (nobody to
   * wait for, no time), WAIT_CYCLE, SESSION_LIMIT (too many waits), CANCELLED.
   */
  await(ids: readonly string[], requester: Requester, options?: AwaitOptions): Promise<AwaitResult>;

  /**
   * Cancels it and everybody below. False if it has ended, or is not below the requester.
   * @throws {CapacityError} `MAILBOX_FULL` while 10,000 events of it wait for the journal.
   */
  cancel(id: string, requester: Requester, reason?: string, options?: VouchedFor): boolean;

  /** A note of a subagent on itself. `percent` outside 0 to 100 is refused (INVALID_STATE). */
  report(
    id: string,
    note: { readonly update: string; readonly percent: number | null },
  ): { readonly ok: true } | Refused;

  /** Its result has reached whom it was for, by another way than `check` or `await`. */
  delivered(id: string): void;

  /**
   * Marks who is hung and forgets what was delivered `stateRetentionMs` ago; runs by itself
   * every `sweepIntervalMs`. Returns how many were forgotten.
   */
  sweep(): number;

  /** Hot; completes when the scope is closed. Nothing is replayed. */
  readonly events: Observable<SubagentChunk>;
}
