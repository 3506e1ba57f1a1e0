// The interface between a subagent and its host.

import type { JSONValue, ModelMessage } from 'ai';
import type { Caller } from '../model/caller.ts';
import type { AnsweredQuestion, AskedQuestion } from '../contracts/records.ts';
import type { SubagentState } from '../contracts/session-views.ts';
import type { Budget } from '../admission/budget.ts';
import type { SubagentDefinition } from '../contracts/config.ts';
import type { PreparedInstance } from './instance.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type {
  SubagentTask,
  StreamedChunk,
  StepReport,
  CallInDoubt,
  AskedInput,
} from '../contracts/task.ts';

/** A subagent, as its host sees it. Reading the view does not wake a parked subagent. */
export interface SubagentHandle {
  readonly id: string;
  readonly definition: SubagentDefinition;
  readonly task: SubagentTask;
  readonly state: SubagentState;
  /** The number of the current model step, from 1; 0 before the first step. */
  readonly step: number;
  /** The progress that running tools report; null if none does. */
  readonly progress: string | null;
  readonly outcome: Outcome | null;
  /** Returns whether the user denied the subagent this same call. */
  hasDenied(toolName: string, input: unknown): boolean;
}

/** A tool's return value, as JSON. */
export interface ReturnedValue {
  readonly callId: string;
  readonly toolName: string;
  /** `read`: the value for the model that the tool's `toModelOutput` returned. */
  readonly part: 'output' | 'read';
  readonly value: JSONValue;
  /** Aborts when the call has ended. */
  readonly signal: AbortSignal;
}

/** Facts about the first messages that an earlier process wrote. */
export interface PreparedBefore {
  /** The secret of the note marks; undefined if an earlier version wrote the messages, without marks. */
  readonly marks: string | undefined;
}

/** The news that a subagent sends its host. */
export type SubagentNews =
  /** A sign of life: an event was applied, or a tool or the model produced output. */
  | { readonly type: 'alive' }
  /** The state, step or progress changed. */
  | { readonly type: 'changed' }
  | { readonly type: 'streamed'; readonly chunk: StreamedChunk }
  | { readonly type: 'stepped'; readonly report: StepReport }
  /**
   * The subagent asks the user. The host sends `question.answered`, `.expired` or `.withdrawn`, with the `requestId`.
   */
  | { readonly type: 'question.asked'; readonly question: AskedQuestion }
  /** `reason`: for the user; absent if the answer is no longer needed. */
  | { readonly type: 'question.withdrawn'; readonly requestId: string; readonly reason?: string }
  /**
   * The subagent asks its parent. The host replies as to a question, with `{ userResponse }` as the answer, and sends
   * `question.expired` after `timeoutMs`.
   */
  | { readonly type: 'input.requested'; readonly asked: AskedInput }
  | { readonly type: 'input.withdrawn'; readonly requestId: string }
  /** The message is in the journal, or arrived too late. */
  | { readonly type: 'message.taken'; readonly messageId: string }
  /** The model call of this step reads these messages. */
  | { readonly type: 'message.applied'; readonly ids: readonly string[]; readonly step: number }
  /** No model call will read these messages. */
  | { readonly type: 'message.refused'; readonly ids: readonly string[]; readonly reason: string }
  /** A call that the app must reconcile; the model is told too. */
  | { readonly type: 'call.in_doubt'; readonly call: CallInDoubt }
  /** This process lacks something that an earlier process had, such as `no tool "pay" for rides`. */
  | { readonly type: 'lacks'; readonly what: string }
  /** The last news. `disposed` settles when the instance is disposed; it never rejects. */
  | { readonly type: 'ended'; readonly outcome: Outcome; readonly disposed: Promise<void> };

/** The properties that a subagent inherits from its ancestors. */
export interface Standing {
  /** The budget that pays for its model calls; null for no limit. */
  readonly budget: Budget | null;
  /** The caller, as the subagent's tools receive it. */
  readonly caller: Omit<Caller, 'subagentId' | 'idempotencyKey' | 'approver'>;
  /** The identities that may answer, according to its configuration; undefined for all. */
  readonly answerableBy: readonly string[] | undefined;
  /** Whether another process continues the subagent if the journal refuses this process. */
  readonly isRecoverable: boolean;
  /** The ids of its children that have not ended. */
  readonly atWork: readonly string[];
  /** The approvals that last, and that the subagent's calls may rest on. */
  readonly lasting: readonly AnsweredQuestion[];
  /** Returns whether the user denied this same call to an ancestor. */
  isDenied(toolName: string, input: unknown): boolean;
}

/** The host's functions that a subagent needs. Only `prepare` may throw. */
export interface SubagentPorts {
  /** The actor's name in the inspector: `<session>/<subagent>`. */
  readonly path: string;
  /**
   * Creates the instance and its first messages; a rejection fails the run. Settles soon after the signal aborts, and
   * disposes an instance that is created later. `again` is given after a crash, if the journal contains the first messages.
   */
  prepare(
    subagent: SubagentHandle,
    signal: AbortSignal,
    again?: PreparedBefore,
  ): Promise<PreparedInstance>;
  /** Requests a run slot. `history`: the earlier conversation of an instance that runs share. */
  requestSlot(
    id: string,
    resumed: boolean,
    grant: (history?: readonly ModelMessage[]) => void,
  ): void;
  releaseSlot(id: string): void;
  /** Returns a subagent's current properties. */
  standingOf(subagent: SubagentHandle): Standing;
  /**
   * Returns the replacement of a tool's value that is too large to read. Never rejects. `tools`: the subagent's tools,
   * as their author defined them. @defaultValue the value is cut
   */
  keepLarge?(
    subagent: SubagentHandle,
    tools: Readonly<Record<string, unknown>>,
    returned: ReturnedValue,
  ): JSONValue | Promise<JSONValue>;
  /**
   * Prepares the outcome for its readers; the news of the end contains the result. A promise never rejects. Not called
   * for a killed subagent.
   */
  settle?(
    subagent: SubagentHandle,
    tools: Readonly<Record<string, unknown>>,
    outcome: Outcome,
  ): Outcome | Promise<Outcome>;
  tell(subagent: SubagentHandle, news: SubagentNews): void;
}
