// How a subagent ended, with everything that it had done. Plain JSON.

import type { ApprovalGrade } from '../approvals/approval.ts';
import type { ClaimVerification } from '../claims/verify-claims.ts';
import type { FailureDetails } from '../outcomes/failure-details.ts';
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
