// The contract between a subagent and its host.

import type { JSONValue, ModelMessage } from 'ai';
import type { Caller } from '../model/caller.ts';
import type { AskedQuestion } from '../contracts/records.ts';
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

/** The view of a subagent that its host has. Reading it does not wake a parked subagent. */
export interface SubagentHandle {
  readonly id: string;
  readonly definition: SubagentDefinition;
  readonly task: SubagentTask;
  readonly state: SubagentState;
  /** Number of the model step under way, from 1; 0 before the first. */
  readonly step: number;
  /** The progress that its tools report while they work; null when none does. */
  readonly progress: string | null;
  readonly outcome: Outcome | null;
  /** Tells whether the user denied it this very call. */
  hasDenied(toolName: string, input: unknown): boolean;
}

/** A value that a tool returned, as JSON. */
export interface ReturnedValue {
  readonly callId: string;
  readonly toolName: string;
  /** `read`: the value that the tool's `toModelOutput` made for the model. */
  readonly part: 'output' | 'read';
  readonly value: JSONValue;
  /** Aborts when the call is over. */
  readonly signal: AbortSignal;
}

/** The writing of the first messages of a subagent, in an earlier process. */
export interface PreparedBefore {
  /** The secret of its marks; undefined: an earlier version wrote the messages without marks. */
  readonly marks: string | undefined;
}

/** What a subagent tells its host. */
export type SubagentNews =
  /** A sign of life: an event was applied, or a tool or the model produced output. */
  | { readonly type: 'alive' }
  /** State, step or progress changed. */
  | { readonly type: 'changed' }
  | { readonly type: 'streamed'; readonly chunk: StreamedChunk }
  | { readonly type: 'stepped'; readonly report: StepReport }
  /** It asks the user. The host reports `question.answered`, `.expired` or `.withdrawn`, with the `requestId`. */
  | { readonly type: 'question.asked'; readonly question: AskedQuestion }
  /** `reason`: for the user; absent if it no longer needs an answer. */
  | { readonly type: 'question.withdrawn'; readonly requestId: string; readonly reason?: string }
  /**
   * It asks the agent that gave the task; the host reports as for a question, and the answer as `{ userResponse }`.
   * The host keeps the time: `question.expired` after `timeoutMs`.
   */
  | { readonly type: 'input.requested'; readonly asked: AskedInput }
  | { readonly type: 'input.withdrawn'; readonly requestId: string }
  /** The message is in the journal, or came too late. */
  | { readonly type: 'message.taken'; readonly messageId: string }
  /** The model call of this step reads these messages. */
  | { readonly type: 'message.applied'; readonly ids: readonly string[]; readonly step: number }
  /** These messages will never be read. */
  | { readonly type: 'message.refused'; readonly ids: readonly string[]; readonly reason: string }
  /** A call that the app has to reconcile; the model is told so, too. */
  | { readonly type: 'call.in_doubt'; readonly call: CallInDoubt }
  /** Its process lacks something that an earlier one had, such as `no tool "pay" for rides`. */
  | { readonly type: 'lacks'; readonly what: string }
  /** The last one. `disposed` settles when the instance is disposed; it never rejects. */
  | { readonly type: 'ended'; readonly outcome: Outcome; readonly disposed: Promise<void> };

/** What a subagent has from those that it works for. */
export interface Standing {
  /** The budget that pays for its model calls; null: no limit. */
  readonly budget: Budget | null;
  /** The description of the caller that its tools receive. */
  readonly caller: Omit<Caller, 'subagentId' | 'idempotencyKey' | 'approver'>;
  /** The identities that may answer for its configuration; undefined: all. */
  readonly answerableBy: readonly string[] | undefined;
  /** Whether another process continues it, if its journal refuses this one. */
  readonly isRecoverable: boolean;
  /** Ids of its children that have not ended. */
  readonly atWork: readonly string[];
  /** Tells whether the user denied this very call to a subagent above it. */
  isDenied(toolName: string, input: unknown): boolean;
}

/** The interface of the host that a subagent needs. Only `prepare` may throw. */
export interface SubagentPorts {
  /** The name of the actor in the inspector: `<session>/<subagent>`. */
  readonly path: string;
  /**
   * Makes the instance and its first messages; a rejection fails the run. Settles soon after the signal
   * aborts; an instance that is made then is disposed. `again` is given after a crash: the first messages
   * are in the journal.
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
  /** Returns what it has at this moment. */
  standingOf(subagent: SubagentHandle): Standing;
  /**
   * Returns the replacement of a tool's value that is too large to be read. Never rejects. `tools`: its own, as their
   * author defined them. @defaultValue the value is cut
   */
  keepLarge?(
    subagent: SubagentHandle,
    tools: Readonly<Record<string, unknown>>,
    returned: ReturnedValue,
  ): JSONValue | Promise<JSONValue>;
  /**
   * Processes the outcome for its readers; the news of its end has the processed one. A promise never rejects. Not
   * called for a killed subagent.
   */
  settle?(
    subagent: SubagentHandle,
    tools: Readonly<Record<string, unknown>>,
    outcome: Outcome,
  ): Outcome | Promise<Outcome>;
  tell(subagent: SubagentHandle, news: SubagentNews): void;
}
