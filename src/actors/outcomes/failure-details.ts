// Why a subagent did not complete, for whoever has to find out: what it was doing, how far it
// had come, and within which limits. Small, whatever the run was like.

import { asJson } from '../ai/json.ts';
import { clip } from '../clip.ts';
import type { LedgerEntry, Outcome, Usage } from '../subagent/outcome.ts';

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

/** What is known of a run beside its outcome. */
export interface RunFacts {
  readonly description: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly maxSteps: number;
  readonly timeoutMs: number;
  /** Oldest first. */
  readonly progress: readonly ProgressLine[];
}

const reasonOfCode: ReadonlyMap<string, FailureReason> = new Map([
  ['STEP_LIMIT', 'step_limit'],
  ['BUDGET_EXHAUSTED', 'budget'],
  ['INPUT_TIMEOUT', 'unanswered'],
]);

const RECENT = 10;

/** The record of an end that was no success. */
export function failureDetails(outcome: Outcome, facts: RunFacts): FailureDetails {
  const { error, steps, toolLedger, partial, usage } = outcome;
  const last = toolLedger.at(-1);
  return {
    reason: reasonOf(outcome),
    code: error?.code ?? outcome.status.toUpperCase(),
    message: clip(error?.message ?? `It ended as ${outcome.status}`, 1000),
    description: clip(facts.description, 500),
    steps,
    toolCalls: toolLedger.length,
    lastAssistantText: partial === undefined ? null : clip(partial, 2000),
    lastTool: last ? lastTool(last) : null,
    recentProgress: facts.progress
      .slice(-RECENT)
      .map(({ update, percent, at }) => ({ update: clip(update, 300), percent, at })),
    limits: { maxSteps: facts.maxSteps, timeoutMs: facts.timeoutMs },
    usage,
    startedAt: facts.startedAt,
    endedAt: facts.endedAt,
  };
}

function reasonOf({ status, error }: Outcome): FailureReason {
  if (status === 'timed_out') return 'timeout';
  if (status === 'cancelled' || status === 'lost') return status;
  return reasonOfCode.get(error?.code ?? '') ?? 'exception';
}

function lastTool({ toolName, input, status, calledAt, settledAt }: LedgerEntry): LastTool {
  const json = asJson(input);
  return {
    name: toolName,
    args: clip(json.ok ? json.text : '', 1000),
    status,
    calledAt: calledAt ?? null,
    settledAt: settledAt ?? null,
  };
}
