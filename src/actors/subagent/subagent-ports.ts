// What a subagent and whoever runs it are to each other.

import type { JSONValue, ModelMessage } from 'ai';
import type { Caller } from '../model/caller.ts';
import type { UnitEvent } from '../runtime/commit-unit.ts';
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

/** What the machine's events carry beyond what the machine reads. */
export type SubagentUnitEvent = UnitEvent & Record<string, unknown>;

/** A subagent, as whoever runs it sees it. Reading it wakes nobody. */
export interface SubagentFace {
  readonly id: string;
  readonly definition: SubagentDefinition;
  readonly task: SubagentTask;
  readonly state: SubagentState;
  /** The model step it is in, from 1; 0 before the first. */
  readonly step: number;
  /** What its tools say of themselves while they work; null when none does. */
  readonly progress: string | null;
  readonly outcome: Outcome | null;
  /** Has the user denied it this very call? */
  hasDenied(toolName: string, input: unknown): boolean;
}

/** Its tools, as their author wrote them. */
type OwnTools = Readonly<Record<string, unknown>>;

/** A value that a tool returned, as JSON. */
export interface ReturnedValue {
  readonly callId: string;
  readonly toolName: string;
  /** `read`: what the tool's `toModelOutput` made of it for the model. */
  readonly part: 'output' | 'read';
  readonly value: JSONValue;
  /** The call is over. */
  readonly signal: AbortSignal;
}

/** What a subagent needs of whoever runs it. Nothing here may throw but `prepare`. */
export interface SubagentPorts {
  /** Names the actor in the inspector: `<session>/<subagent>`. */
  readonly path: string;
  /**
   * Makes the instance and its first messages; may reject, then the run fails. Settles soon
   * after the signal aborts, and what it made is disposed then.
   */
  prepare(subagent: SubagentFace, signal: AbortSignal): Promise<PreparedInstance>;
  /** `history`: what was said before in an instance that runs share. */
  requestSlot(
    id: string,
    resumed: boolean,
    grant: (history?: readonly ModelMessage[]) => void,
  ): void;
  releaseSlot(id: string): void;
  /** Asks the user: `question.answered`, `.expired` or `.withdrawn` comes back, with the `requestId`. */
  ask(question: AskedQuestion): void;
  withdraw(requestId: string, subagent: SubagentFace): void;
  /**
   * Asks the agent that gave the task; what comes back is as of `ask`, the answer as
   * `{ userResponse }`. Whoever takes it keeps its time: `question.expired` after `timeoutMs`.
   */
  requestInput(asked: AskedInput): void;
  withdrawInput(requestId: string, subagent: SubagentFace): void;
  /** What its model calls are held against; null: nothing limits it. */
  budgetOf(subagent: SubagentFace): Budget | null;
  /** Has the user denied this very call to one of those above it? */
  deniedAbove(subagent: SubagentFace, toolName: string, input: unknown): boolean;
  /** What its tools learn of who calls them. */
  callerOf(subagent: SubagentFace): Omit<Caller, 'subagentId' | 'idempotencyKey' | 'approver'>;
  /** The model call of this step reads these messages. */
  messageApplied(subagent: SubagentFace, messageIds: readonly string[], step: number): void;
  /** It is in the journal, or came too late. */
  messageTaken(messageId: string): void;
  /** It will never read them. */
  messageRefused(subagent: SubagentFace, messageIds: readonly string[], reason: string): void;
  /** It shows a sign of life: it took in an event, or a tool or the model said something. */
  activity(subagent: SubagentFace): void;
  streamed(subagent: SubagentFace, chunk: StreamedChunk): void;
  /**
   * What stands for a value that a tool returned, where it is too large to be read. Never
   * rejects. Absent: such a value is cut.
   */
  keepLarge?(subagent: SubagentFace, tools: OwnTools, returned: ReturnedValue): Promise<JSONValue>;
  /**
   * The outcome as others shall read it; what it gives is what `ended` is told. A promise of it
   * never rejects. Not asked for one that is killed.
   */
  settle?(subagent: SubagentFace, tools: OwnTools, outcome: Outcome): Outcome | Promise<Outcome>;
  /** State, step or progress is not what it was. */
  changed(subagent: SubagentFace): void;
  stepped(subagent: SubagentFace, report: StepReport): void;
  /** Does another process go on with it, if its journal refuses this one? @defaultValue true */
  goesOn?(subagent: SubagentFace): boolean;
  /** Somebody has to find out whether it was done; the model is told so, too. */
  inDoubt?(subagent: SubagentFace, call: CallInDoubt): void;
  /** The last call. `disposed` settles when the instance is disposed; it never rejects. */
  ended(subagent: SubagentFace, outcome: Outcome, disposed: Promise<void>): void;
}
