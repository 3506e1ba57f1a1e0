// Records why a subagent did not complete, for the person who investigates: its activity, its progress, and
// its limits. Small, whatever the run was like.

import { asJson } from '../values/json.ts';
import { clip } from '../values/clip.ts';
import type {
  LedgerEntry,
  Outcome,
  FailureReason,
  LastTool,
  FailureDetails,
  ProgressLine,
} from '../actors/contracts/outcome.ts';

/** The facts of a run beside its outcome. */
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

/** Builds the record of a run that did not succeed. */
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
