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

/** A subagent as its host sees it. Reading the view does not wake a parked subagent. */
export interface SubagentHandle {
  readonly id: string;
  readonly definition: SubagentDefinition;
  readonly task: SubagentTask;
  readonly state: SubagentState;
  /** The number of the current model step, starting at 1; 0 before the first step. */
  readonly step: number;
  /** The progress that running tools have reported, or null if none has. */
  readonly progress: string | null;
  readonly outcome: Outcome | null;
  /** Returns whether the user has denied the subagent an identical call. */
  hasDenied(toolName: string, input: unknown): boolean;
}

/** The JSON value that a tool returned. */
export interface ReturnedValue {
  readonly callId: string;
  readonly toolName: string;
  /** `read`: the value that the tool's `toModelOutput` produced for the model. */
  readonly part: 'output' | 'read';
  readonly value: JSONValue;
  /** Aborts when the call ends. */
  readonly signal: AbortSignal;
}

/** Facts about the first messages that an earlier process wrote. */
export interface PreparedBefore {
  /** The secret in the note markers, or undefined if an earlier version wrote the messages without markers. */
  readonly marks: string | undefined;
}

/** The notifications that a subagent sends to its host. */
export type SubagentNews =
  /** Shows that the subagent is active: an event was applied, or a tool or the model produced output. */
  | { readonly type: 'alive' }
  /** The state, the step or the progress has changed. */
  | { readonly type: 'changed' }
  | { readonly type: 'streamed'; readonly chunk: StreamedChunk }
  | { readonly type: 'stepped'; readonly report: StepReport }
  /**
   * The subagent asks the user. The host answers by sending `question.answered`, `.expired` or `.withdrawn` with the
   * `requestId`.
   */
  | { readonly type: 'question.asked'; readonly question: AskedQuestion }
  /** `reason`: for the user; absent if the answer is no longer needed. */
  | { readonly type: 'question.withdrawn'; readonly requestId: string; readonly reason?: string }
  /**
   * The subagent asks its parent. The host treats this like a question. It answers with `{ userResponse }`, and sends
   * `question.expired` after `timeoutMs`.
   */
  | { readonly type: 'input.requested'; readonly asked: AskedInput }
  | { readonly type: 'input.withdrawn'; readonly requestId: string }
  /** The message has been written to the journal, or arrived too late. */
  | { readonly type: 'message.taken'; readonly messageId: string }
  /** The model call of this step will read these messages. */
  | { readonly type: 'message.applied'; readonly ids: readonly string[]; readonly step: number }
  /** No model call will read these messages. */
  | { readonly type: 'message.refused'; readonly ids: readonly string[]; readonly reason: string }
  /** A call that the app must reconcile. The model is told about it too. */
  | { readonly type: 'call.in_doubt'; readonly call: CallInDoubt }
  /** This process lacks something that an earlier process had: `no tool "pay" for rides`. */
  | { readonly type: 'lacks'; readonly what: string }
  /** The last news. `disposed` settles when the instance is disposed, and never rejects. */
  | { readonly type: 'ended'; readonly outcome: Outcome; readonly disposed: Promise<void> };

/** The properties that a subagent inherits from its ancestors. */
export interface Standing {
  /** The budget that pays for the subagent's model calls, or null if there is no limit. */
  readonly budget: Budget | null;
  /** The caller that is passed to the subagent's tools. */
  readonly caller: Omit<Caller, 'subagentId' | 'idempotencyKey' | 'approver'>;
  /** The identities that the subagent's configuration allows to answer, or undefined if anyone may answer. */
  readonly answerableBy: readonly string[] | undefined;
  /** Whether another process will continue the subagent if the journal refuses writes by this process. */
  readonly isRecoverable: boolean;
  /** The ids of its children that are still running. */
  readonly atWork: readonly string[];
  /** The approvals that remain in effect and may cover the subagent's calls. */
  readonly lasting: readonly AnsweredQuestion[];
  /** Returns whether the user has denied an ancestor an identical call. */
  isDenied(toolName: string, input: unknown): boolean;
}

/** The functions that a subagent needs from its host. Only `prepare` may throw. */
export interface SubagentPorts {
  /** The actor's name in the inspector: `<session>/<subagent>`. */
  readonly path: string;
  /**
   * Creates the instance and its first messages. If it rejects, the run fails. Settles soon after the signal aborts. An
   * instance that is created later is disposed of. `again` is passed when the run resumes after a crash and the journal
   * contains the first messages.
   */
  prepare(
    subagent: SubagentHandle,
    signal: AbortSignal,
    again?: PreparedBefore,
  ): Promise<PreparedInstance>;
  /** Requests a run slot. `history`: the earlier conversation, if several runs share an instance. */
  requestSlot(
    id: string,
    resumed: boolean,
    grant: (history?: readonly ModelMessage[]) => void,
  ): void;
  releaseSlot(id: string): void;
  /** Returns the current properties of a subagent. */
  standingOf(subagent: SubagentHandle): Standing;
  /**
   * Returns a replacement for a tool's value if the value is too large for a model to read. Never rejects. `tools`: the
   * subagent's tools in the form that their author defined. @defaultValue the value is truncated
   */
  keepLarge?(
    subagent: SubagentHandle,
    tools: Readonly<Record<string, unknown>>,
    returned: ReturnedValue,
  ): JSONValue | Promise<JSONValue>;
  /**
   * Prepares the outcome for its readers. The `ended` notification contains the prepared outcome. If it returns a
   * promise, that promise never rejects. Not called for a killed subagent.
   */
  settle?(
    subagent: SubagentHandle,
    tools: Readonly<Record<string, unknown>>,
    outcome: Outcome,
  ): Outcome | Promise<Outcome>;
  tell(subagent: SubagentHandle, news: SubagentNews): void;
}
