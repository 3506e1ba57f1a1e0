// The end of a subagent, with all the work that it did. Plain JSON.

import type { Ending, Failure } from '../../machines/index.ts';
import type { Usage } from './usage.ts';

/** One tool call as the runtime saw it, against which a model's claims are verified. */
export interface LedgerEntry {
  /** The model step that made the call, from 1. */
  readonly step: number;
  /** The id of the call, as the model or the relay gave it. */
  readonly callId: string;
  /** The name of the called tool. */
  readonly toolName: string;
  /** The arguments of the call. */
  readonly input: unknown;
  /** `in_flight`: the subagent or the process ended during the call, which may have had effects. */
  readonly status: 'ok' | 'error' | 'denied' | 'unanswered' | 'not_run' | 'in_flight';
  /** The return value of the tool, or the message of its error. */
  readonly output: unknown;
  /** For a call that needed approval: the source of the approval, or the reason for its absence. */
  readonly approval?: ApprovalGrade;
  /**
   * True if the user permitted a third-party agent this call and later ones, by the button of that offer. The property
   * `lasting` of `input` has the words of the offer.
   */
  readonly lasting?: true;
  /** For a question or an approval: the identity that answered, if the app vouched for one. */
  readonly answeredBy?: string;
  /** When the model made the call, and when the call was settled (absent: it was not), in milliseconds since 1970. */
  readonly calledAt?: number;
  /** When its result came, in milliseconds since 1970. @defaultValue absent while it has none */
  readonly settledAt?: number;
}

/** A product of a subagent: content, or a reference to it. */
export interface Artifact {
  /** A media type, or a word that the application knows. */
  readonly type: string;
  /** The name that its maker gave it. */
  readonly name: string;
  /** Plain JSON. */
  readonly content: unknown;
}

/** Replaces an output that is too large to be read at once. */
export interface LargeOutput {
  /** Marks a shortened value. */
  readonly truncated: true;
  /** The size in UTF-8 bytes: of the text itself if the output is a text, otherwise of its JSON. */
  readonly originalBytes: number;
  /** The full key of the whole output in working memory; null if it is not stored. */
  readonly reference: string | null;
  /** Tells a model how to read the rest. */
  readonly howToRead: string;
  /** The beginning of the output. */
  readonly excerpt: string;
}

/**
 * The end of a subagent; `status` tells whether it completed. `Output`: the type of the output schema, if the compiler
 * knows it.
 */
export type Outcome<Output = unknown> = CompletedOutcome<Output> | UnfinishedOutcome;

/** The end of a subagent with a result. */
export interface CompletedOutcome<Output = unknown> extends OutcomeFacts {
  /** The subagent completed its task. */
  readonly status: 'completed';
  /**
   * The result: text, or the value of the output schema; `LargeOutput` if it was too large to pass on and was stored in
   * working memory or cut.
   */
  readonly output: Output | LargeOutput;
  readonly error?: undefined;
}

/** The end of a subagent without a result. */
export interface UnfinishedOutcome extends OutcomeFacts {
  /** The subagent failed, or was cancelled. */
  readonly status: Exclude<Ending['status'], 'completed'>;
  /** A subagent that did not complete has no output. */
  readonly output: null;
  /** The reason. */
  readonly error: Failure;
}

/** The properties of every end. */
interface OutcomeFacts {
  /** The result as text that can be said aloud. Empty unless completed. */
  readonly text: string;
  /** The result in one or two sentences that can be said aloud, if the subagent gave a summary. */
  readonly summary?: string;
  /** Products of the subagent in addition to the result. */
  readonly artifacts?: readonly Artifact[];
  /** The last text of a subagent that did not complete. */
  readonly partial?: string;
  /** The number of model steps begun. */
  readonly steps: number;
  /** The tokens that the subagent used, without those of its children. */
  readonly usage: Usage;
  /** The tool calls of the subagent, in their order. */
  readonly toolLedger: readonly LedgerEntry[];
  /** The subagent's claims about its work, checked against the ledger; absent if it makes none. */
  readonly verification?: ClaimVerification;
  /** Why the subagent did not complete, and its state at that point. `reference`: its key in working memory. */
  readonly diagnostics?: FailureDetails & { readonly reference: string | null };
  /** The full keys of entries that the subagent left in working memory, at most 20. */
  readonly notes?: readonly string[];
}

/** An outcome as journals and engines store it: an older version stored ends without an error. */
export type StoredOutcome =
  | Outcome
  | (Omit<UnfinishedOutcome, 'error'> & { readonly error?: Failure | null });

/** Reads an outcome from a journal or an engine. */
export function readOutcome(stored: StoredOutcome): Outcome {
  if (stored.status === 'completed') return stored;
  return { ...stored, output: null, error: stored.error ?? unnamedFailure(stored.status) };
}

/** Returns the error of an end that was stored without one. */
export function unnamedFailure(status: UnfinishedOutcome['status']): Failure {
  const code = status === 'cancelled' ? 'CANCELLED' : 'INTERNAL';
  return { code, message: `It ended as ${status}`, retryable: false };
}

/** The reason why a call was run or not run. */
export type ApprovalGrade =
  /** The user approved exactly this call. */
  | 'given'
  /** The author of the configuration approved it. */
  | 'pre_authorised'
  /** The user denied it. */
  | 'denied'
  /** The user denied the same call to a subagent above. */
  | 'inherited_denial'
  /** The author denied it: `toolApproval` of the agent's settings. */
  | 'author_denied'
  /** No answer arrived in time. */
  | 'expired'
  /** The question could not be asked, or was withdrawn. */
  | 'withdrawn';
/** A sentence of a result that claims an action without a successful tool call. */
export interface UnverifiedClaim {
  /** The sentence as the subagent wrote it. */
  readonly claim: string;
  /** `no_call`: no tool of that kind was called. `failed`: such a call failed. */
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

/** The last tool call of a subagent, for the report on its end. */
export interface LastTool {
  /** The name of the tool. */
  readonly name: string;
  /** The arguments as JSON, at most 1,000 characters. */
  readonly args: string;
  /** `in_flight`: the call had begun and not ended; it may have had effects. */
  readonly status: LedgerEntry['status'];
  /** Milliseconds since 1970; null if unknown. */
  readonly calledAt: number | null;
  /** When its result came, in milliseconds since 1970; null: it has none. */
  readonly settledAt: number | null;
}

/** The circumstances of a failure. Plain JSON of at most about 12,000 characters. */
export interface FailureDetails {
  /** The kind of the failure. */
  readonly reason: FailureReason;
  /** The code of the failure. */
  readonly code: string;
  /** The cause, in words. */
  readonly message: string;
  /** The task, at most 500 characters. */
  readonly description: string;
  /** The number of model steps begun. */
  readonly steps: number;
  /** The number of its tool calls. */
  readonly toolCalls: number;
  /** At most 2,000 characters; null if the model wrote no text. */
  readonly lastAssistantText: string | null;
  /** The last tool that it called; null: it called none. */
  readonly lastTool: LastTool | null;
  /** The latest ten, oldest first. */
  readonly recentProgress: readonly ProgressLine[];
  /** The limits that applied: model steps, and time in milliseconds. */
  readonly limits: { readonly maxSteps: number; readonly timeoutMs: number };
  /** The tokens that it used. */
  readonly usage: Usage;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** When the subagent ended, in milliseconds since 1970. */
  readonly endedAt: number;
}

export interface ProgressLine {
  /** The reported words. */
  readonly update: string;
  /** The share of the work that is done, from 0 to 100; null: the report had none. */
  readonly percent: number | null;
  /** When it was reported, in milliseconds since 1970. */
  readonly at: number;
}
