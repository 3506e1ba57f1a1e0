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
  readonly status: 'ok' | 'error' | 'denied' | 'unanswered' | 'not_run';
  /** What the tool returned, or the message of its error. */
  readonly output: unknown;
}

export interface Outcome {
  readonly status: Ending['status'];
  /** The result: text, or the value of the output schema. Null unless completed. */
  readonly output: unknown;
  /** The result in words that can be said. Empty unless completed. */
  readonly text: string;
  /** What it had said when it did not complete. */
  readonly partial?: string;
  readonly error?: Failure;
  /** Model steps that were begun. */
  readonly steps: number;
  readonly usage: Usage;
  readonly toolLedger: readonly LedgerEntry[];
}
