// How a subagent ended, with everything that it had done. Plain JSON.
import type { Ending, Failure } from '../../machines/index.ts';

/** Tokens as the provider counted them; 0 where it did not say. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
}

/** One tool call, as the runtime saw it: what a model claims can be held against it. */
export interface LedgerEntry {
  readonly step: number;
  readonly callId: string;
  readonly toolName: string;
  readonly input: unknown;
  /** `in_flight`: the subagent or the process ended while it was being done; it may have done something. */
  readonly status: 'ok' | 'error' | 'denied' | 'unanswered' | 'not_run' | 'in_flight';
  /** What the tool returned, or the message of its error. */
  readonly output: unknown;
  /** Of a call that needed consent: who gave it, or why nobody did. */
  readonly approval?: ApprovalGrade;
  /** Of a question or an approval: who answered, where the app vouched for somebody. */
  readonly answeredBy?: string;
  /** When the model called, and when it was settled (not at all: absent); milliseconds since 1970. */
  readonly calledAt?: number;
  readonly settledAt?: number;
}

/** Something that a subagent made: content, or a reference to where it is kept. */
export interface Artifact {
  /** A media type, or a word that the application knows. */
  readonly type: string;
  readonly name: string;
  /** Plain JSON. */
  readonly content: unknown;
}

export interface Outcome {
  readonly status: Ending['status'];
  /**
   * The result: text, or the value of the output schema; `LargeOutput` where it is too large to be
   * handed on and was put into working memory. Null unless completed.
   */
  readonly output: unknown;
  /** The result in words that can be said. Empty unless completed. */
  readonly text: string;
  /** The result in a sentence or two that can be said, where the subagent gave one. */
  readonly summary?: string;
  /** What it made beside the result. */
  readonly artifacts?: readonly Artifact[];
  /** What it had said when it did not complete. */
  readonly partial?: string;
  readonly error?: Failure;
  /** Model steps that were begun. */
  readonly steps: number;
  readonly usage: Usage;
  readonly toolLedger: readonly LedgerEntry[];
  /** What it says that it has done, held against the ledger; absent where it says nothing of the kind. */
  readonly verification?: ClaimVerification;
  /** Why it did not complete, and what it was doing. `reference`: the same in working memory. */
  readonly diagnostics?: FailureDetails & { readonly reference: string | null };
  /** What it left in working memory: full keys, at most 20. */
  readonly notes?: readonly string[];
}

/** How a call came to run, or not to run. */
export type ApprovalGrade =
  /** The user said yes to exactly this call. */
  | 'given'
  /** The author of the configuration said so. */
  | 'pre_authorised'
  /** The user said no. */
  | 'denied'
  /** The user said no to the same call of a subagent above. */
  | 'inherited_denial'
  /** Nobody answered in time. */
  | 'expired'
  /** The question could not be asked, or was taken back. */
  | 'withdrawn';
export interface UnverifiedClaim {
  /** The sentence, as the subagent wrote it. */
  readonly claim: string;
  /** `no_call`: no tool of that kind was called. `failed`: it was, without success. */
  readonly reason: 'no_call' | 'failed';
  /** The tool that failed. */
  readonly toolName?: string;
}

/** Plain JSON. */
export interface ClaimVerification {
  /** Nothing speaks against the report. */
  readonly verified: boolean;
  /** What it says that it has done. */
  readonly claims: readonly string[];
  readonly unverified: readonly UnverifiedClaim[];
  /** It ends where work was about to begin ("Now let me save …"). */
  readonly incomplete: boolean;
}

/** What kind of end it was. */
export type FailureReason =
  | 'timeout'
  | 'cancelled'
  | 'lost'
  | 'step_limit'
  | 'budget'
  | 'unanswered'
  | 'exception';

export interface LastTool {
  readonly name: string;
  /** Its arguments as JSON, at most 1,000 characters. */
  readonly args: string;
  /** `in_flight`: it was begun and had not ended: it may have done something. */
  readonly status: LedgerEntry['status'];
  /** Milliseconds since 1970; null: not known. */
  readonly calledAt: number | null;
  readonly settledAt: number | null;
}

/** Plain JSON of at most some 12,000 characters. */
export interface FailureDetails {
  readonly reason: FailureReason;
  readonly code: string;
  readonly message: string;
  /** What it was to do, at most 500 characters. */
  readonly description: string;
  /** Model steps that were begun. */
  readonly steps: number;
  readonly toolCalls: number;
  /** At most 2,000 characters; null: it said nothing. */
  readonly lastAssistantText: string | null;
  readonly lastTool: LastTool | null;
  /** The latest ten, oldest first. */
  readonly recentProgress: readonly ProgressLine[];
  readonly limits: { readonly maxSteps: number; readonly timeoutMs: number };
  readonly usage: Usage;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly endedAt: number;
}

export interface ProgressLine {
  readonly update: string;
  readonly percent: number | null;
  readonly at: number;
}
