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

/** The tools of the subagent, as their author defined them. */
type OwnTools = Readonly<Record<string, unknown>>;

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
  /**
   * Asks the user. The host reports `question.answered`, `.expired` or `.withdrawn`, with the `requestId`.
   */
  ask(question: AskedQuestion): void;
  /** `reason`: for the user; absent if the subagent no longer needs an answer. */
  withdraw(requestId: string, subagent: SubagentHandle, reason?: string): void;
  /** Returns the identities that may answer for its configuration; undefined: all. */
  answerableBy(subagent: SubagentHandle): readonly string[] | undefined;
  /**
   * Asks the agent that gave the task; the host reports as for `ask`, and the answer as `{ userResponse }`.
   * The host keeps the time: `question.expired` after `timeoutMs`.
   */
  requestInput(asked: AskedInput): void;
  withdrawInput(requestId: string, subagent: SubagentHandle): void;
  /** Returns the budget that pays for its model calls; null: no limit. */
  budgetOf(subagent: SubagentHandle): Budget | null;
  /** Tells whether the user denied this very call to a subagent above it. */
  deniedAbove(subagent: SubagentHandle, toolName: string, input: unknown): boolean;
  /** Returns the description of the caller that its tools receive. */
  callerOf(subagent: SubagentHandle): Omit<Caller, 'subagentId' | 'idempotencyKey' | 'approver'>;
  /** Reports that the model call of this step reads these messages. */
  messageApplied(subagent: SubagentHandle, messageIds: readonly string[], step: number): void;
  /** Reports that the message is in the journal, or came too late. */
  messageTaken(messageId: string): void;
  /** Reports that these messages will never be read. */
  messageRefused(subagent: SubagentHandle, messageIds: readonly string[], reason: string): void;
  /** Reports a sign of life: an event was applied, or a tool or the model produced output. */
  activity(subagent: SubagentHandle): void;
  streamed(subagent: SubagentHandle, chunk: StreamedChunk): void;
  /**
   * Returns the replacement of a tool's value that is too large to be read. Never rejects. Absent: the value
   * is cut.
   */
  keepLarge?(
    subagent: SubagentHandle,
    tools: OwnTools,
    returned: ReturnedValue,
  ): JSONValue | Promise<JSONValue>;
  /**
   * Processes the outcome for its readers; `ended` receives the processed one. A promise never rejects. Not
   * called for a killed subagent.
   */
  settle?(subagent: SubagentHandle, tools: OwnTools, outcome: Outcome): Outcome | Promise<Outcome>;
  /** Reports that state, step or progress changed. */
  changed(subagent: SubagentHandle): void;
  stepped(subagent: SubagentHandle, report: StepReport): void;
  /** Tells whether another process continues it, if its journal refuses this one. @defaultValue true */
  goesOn?(subagent: SubagentHandle): boolean;
  /** Reports a call that the app has to reconcile; the model is told so, too. */
  inDoubt?(subagent: SubagentHandle, call: CallInDoubt): void;
  /** Returns the ids of its children that have not ended. @defaultValue none */
  atWork?(subagent: SubagentHandle): readonly string[];
  /** Reports something that its process lacks, and that an earlier one had, such as `no tool "pay" for rides`. */
  lacks?(subagent: SubagentHandle, what: string): void;
  /** The last call of a subagent. `disposed` settles when the instance is disposed; it never rejects. */
  ended(subagent: SubagentHandle, outcome: Outcome, disposed: Promise<void>): void;
}
