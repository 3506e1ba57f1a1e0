// Builds a subagent's outcome from its machine's final state and its log.

import type { Ending, Failure } from '../../machines/index.ts';
import {
  unnamedFailure,
  type CompletedOutcome,
  type Outcome,
  type UnfinishedOutcome,
} from '../contracts/outcome.ts';
import type { SubagentLog } from './subagent-log.ts';

/** Closes the log and builds the outcome from it. */
export function outcomeOf(ending: Ending, log: SubagentLog): Outcome {
  const { status, steps } = ending;
  const end = status === 'completed' ? completed(log) : unfinished(status, ending.error, log);
  log.abandonCalls();
  return { ...end, steps, usage: log.usage, toolLedger: log.ledger };
}

/** If the model ran out of steps because its answers were refused, adds the last refusal to the error. */
function explained(error: Failure, log: SubagentLog): Failure {
  const refusal = error.code === 'STEP_LIMIT' ? log.refusal : null;
  if (refusal === null) return error;
  return { ...error, message: `${error.message}; its answer was not accepted: ${refusal}` };
}

type Facts = 'steps' | 'usage' | 'toolLedger';

function completed(log: SubagentLog): Omit<CompletedOutcome, Facts> {
  const status = 'completed';
  const handedIn = log.complete();
  if (handedIn === null)
    return { status, output: log.result === undefined ? log.text : log.result, text: log.text };
  const { result, summary, artifacts } = handedIn;
  return {
    status,
    output: result,
    text: typeof result === 'string' ? result : (summary ?? JSON.stringify(result)),
    ...(summary === undefined ? {} : { summary }),
    ...(artifacts === undefined ? {} : { artifacts }),
  };
}

function unfinished(
  status: UnfinishedOutcome['status'],
  error: Failure | undefined,
  log: SubagentLog,
): Omit<UnfinishedOutcome, Facts> {
  const { text } = log;
  return {
    status,
    output: null,
    text: '',
    ...(text === '' ? {} : { partial: text }),
    error: error ? explained(error, log) : unnamedFailure(status),
  };
}
