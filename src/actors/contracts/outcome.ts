// How a subagent ended, and all the work it did. Plain JSON.

import type { Ending, Failure } from '../../machines/index.ts';
import { propertiesOf } from '../../values/json.ts';
import { NO_USAGE, type Usage } from './usage.ts';

/** One tool call as the runtime observed it, used to verify a model's claims. */
export interface LedgerEntry {
  /** The model step that made the call, counted from 1. */
  readonly step: number;
  /** The call's id, which the model or the relay assigned. */
  readonly callId: string;
  /** The name of the tool. */
  readonly toolName: string;
  /** The arguments with which the tool was called. */
  readonly input: unknown;
  /** The model's original arguments, if the user approved the call with different ones. */
  readonly askedInput?: unknown;
  /** `in_flight`: the subagent or the process ended during the call, which may have had effects. */
  readonly status: 'ok' | 'error' | 'denied' | 'unanswered' | 'not_run' | 'in_flight';
  /** The tool's return value or error message. */
  readonly output: unknown;
  /** For a call that needed approval: who approved it, or why it was not approved. */
  readonly approval?: ApprovalGrade;
  /**
   * True if the user pressed the button that permits a third-party agent to make this call and later ones. The
   * `lasting` property of `input` contains the agent's text for that button.
   */
  readonly lasting?: true;
  /** If the approval is `lasting`: the question (`requestId`) that the user answered to give it. */
  readonly approvalId?: string;
  /** For a question or an approval: the identity of the user who answered, if the app vouched for one. */
  readonly answeredBy?: string;
  /** When the model made the call, and when the call was settled (absent if unsettled), in milliseconds since 1970. */
  readonly calledAt?: number;
  /** When its result arrived, in milliseconds since 1970. @defaultValue absent without a result */
  readonly settledAt?: number;
}

/** A product of a subagent's work: content, or a reference to it. */
export interface Artifact {
  /** A media type, or a name that the app understands. */
  readonly type: string;
  /** The name that the author chose. */
  readonly name: string;
  /** Plain JSON. */
  readonly content: unknown;
}

/** Stands in for an output that is too large to read in one piece. */
export interface LargeOutput {
  /** Indicates that the value was shortened. */
  readonly truncated: true;
  /** The size in UTF-8 bytes: of the text itself if the output is a string, otherwise of the output's JSON. */
  readonly originalBytes: number;
  /** The full key of the output in working memory; null if it is not stored. */
  readonly reference: string | null;
  /** The instruction with which a model can read the rest. */
  readonly howToRead: string;
  /** The beginning of the output. */
  readonly excerpt: string;
}

/**
 * How a subagent ended; `status` says whether it completed. `Output`: the type of the output schema, if known at
 * compile time.
 */
export type Outcome<Output = unknown> = CompletedOutcome<Output> | UnfinishedOutcome;

/** The outcome of a subagent that completed its task. */
export interface CompletedOutcome<Output = unknown> extends OutcomeFacts {
  /** The subagent completed its task. */
  readonly status: 'completed';
  /**
   * The result: text, or the value of the output schema. If it was too large to pass on, a `LargeOutput`: the result
   * was stored in working memory or cut.
   */
  readonly output: Output | LargeOutput;
  /** Always absent; an unfinished subagent's outcome has an error instead of an output. */
  readonly error?: undefined;
}

/** The outcome of a subagent that did not complete its task. */
export interface UnfinishedOutcome extends OutcomeFacts {
  /** The subagent failed or was cancelled. */
  readonly status: Exclude<Ending['status'], 'completed'>;
  /** A subagent that did not complete has no output. */
  readonly output: null;
  /** The reason. */
  readonly error: Failure;
}

/** The properties that all outcomes share. */
interface OutcomeFacts {
  /** The result as text that can be spoken. Empty unless completed. */
  readonly text: string;
  /** The result in one or two sentences that can be spoken, if the subagent gave a summary. */
  readonly summary?: string;
  /** The products of the subagent's work, in addition to the result. */
  readonly artifacts?: readonly Artifact[];
  /** The last text that the subagent wrote, if it did not complete. */
  readonly partial?: string;
  /** The number of model steps that were started. */
  readonly steps: number;
  /** The tokens that the subagent used, excluding its children's tokens. */
  readonly usage: Usage;
  /** The subagent's tool calls, in order. */
  readonly toolLedger: readonly LedgerEntry[];
  /** The verification of the subagent's claims against the ledger; absent if it made no claims. */
  readonly verification?: ClaimVerification;
  /**
   * Why the subagent did not complete its task, and its state at that time. `reference`: the key of this report in
   * working memory.
   */
  readonly diagnostics?: FailureDetails & { readonly reference: string | null };
  /** The full keys of the subagent's remaining entries in working memory, at most 20. */
  readonly notes?: readonly string[];
}

/**
 * An outcome in the form that journals and engines store; earlier versions stored unsuccessful outcomes without an
 * error.
 */
export type StoredOutcome =
  | Outcome
  | (Omit<UnfinishedOutcome, 'error'> & { readonly error?: Failure | null });

/** Reads an outcome from a journal or an engine. */
export function readOutcome(stored: StoredOutcome): Outcome {
  if (stored.status === 'completed') return stored;
  return { ...stored, output: null, error: stored.error ?? unnamedFailure(stored.status) };
}

/** Returns the outcome of a tool that ran in the background. */
export function outcomeOfTool(output: unknown, failed: boolean): Outcome {
  const facts = { steps: 0, usage: NO_USAGE, toolLedger: [] };
  if (!failed)
    return {
      status: 'completed',
      output,
      text: typeof output === 'string' ? output : JSON.stringify(output ?? null),
      ...facts,
    };
  const { error, code } = propertiesOf(output);
  const failure = {
    code: typeof code === 'string' ? code : 'FAILED',
    message: String(error),
    retryable: false,
  };
  return { status: 'failed', output: null, text: '', error: failure, ...facts };
}

/** Returns the error for an outcome that was stored without one. */
export function unnamedFailure(status: UnfinishedOutcome['status']): Failure {
  const code = status === 'cancelled' ? 'CANCELLED' : 'INTERNAL';
  return { code, message: `It ended as ${status}`, retryable: false };
}

/** How the approval of a call was decided. */
export type ApprovalGrade =
  /** The user approved exactly this call. */
  | 'given'
  /** The author of the configuration approved the call. */
  | 'pre_authorised'
  /** An earlier, lasting approval from the user covers the call. */
  | 'lasting'
  /** The user denied the call. */
  | 'denied'
  /** The user denied the same call to an ancestor. */
  | 'inherited_denial'
  /** The author denied the call: `toolApproval` in the agent's settings. */
  | 'author_denied'
  /** No answer arrived in time. */
  | 'expired'
  /** The question could not be asked, or was withdrawn. */
  | 'withdrawn';
/** A sentence in a result that claims an action for which there was no successful tool call. */
export interface UnverifiedClaim {
  /** The sentence as the subagent wrote it. */
  readonly claim: string;
  /**
   * `no_call`: no tool that could have performed the action was called. `failed`: such a tool was called, but failed.
   */
  readonly reason: 'no_call' | 'failed';
  /** The tool that failed. */
  readonly toolName?: string;
}

/** The verification of a report against the ledger. Plain JSON. */
export interface ClaimVerification {
  /** True if the ledger contradicts no claim. */
  readonly verified: boolean;
  /** The subagent's claims about its work. */
  readonly claims: readonly string[];
  /** The claims that no tool call supports. */
  readonly unverified: readonly UnverifiedClaim[];
  /** Whether the report ends by announcing further work ("Now let me save …"). */
  readonly incomplete: boolean;
}

/** The kind of failure. */
export type FailureReason =
  | 'timeout'
  | 'cancelled'
  | 'lost'
  | 'step_limit'
  | 'budget'
  | 'unanswered'
  | 'exception';

/** A subagent's last tool call, as stated in the report on its failure. */
export interface LastTool {
  /** The name of the tool. */
  readonly name: string;
  /** The arguments as JSON, at most 1,000 characters. */
  readonly args: string;
  /** `in_flight`: the call had started but not finished; it may have had effects. */
  readonly status: LedgerEntry['status'];
  /** Milliseconds since 1970; null if unknown. */
  readonly calledAt: number | null;
  /** When its result arrived, in milliseconds since 1970; null if there is no result. */
  readonly settledAt: number | null;
}

/**
 * The circumstances of a failure, as plain JSON of at most about 12,000 characters.
 */
export interface FailureDetails {
  /** The kind of the failure. */
  readonly reason: FailureReason;
  /** The code of the failure. */
  readonly code: string;
  /** The cause, as text. */
  readonly message: string;
  /** The task, at most 500 characters. */
  readonly description: string;
  /** The number of model steps that were started. */
  readonly steps: number;
  /** The number of tool calls. */
  readonly toolCalls: number;
  /** The last text, at most 2,000 characters; null if the model wrote none. */
  readonly lastAssistantText: string | null;
  /** The last tool that was called; null if there was no call. */
  readonly lastTool: LastTool | null;
  /** The latest ten progress notes, oldest first. */
  readonly recentProgress: readonly ProgressLine[];
  /** The limits that applied: model steps, and time in milliseconds. */
  readonly limits: { readonly maxSteps: number; readonly timeoutMs: number };
  /** The tokens used. */
  readonly usage: Usage;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** When the subagent ended, in milliseconds since 1970. */
  readonly endedAt: number;
}

export interface ProgressLine {
  /** The reported words. */
  readonly update: string;
  /** The percentage of work done, from 0 to 100; null if the report contained no percentage. */
  readonly percent: number | null;
  /** When it was reported, in milliseconds since 1970. */
  readonly at: number;
}
