// Builds the outcome of a subagent from the ending of its machine and the content of its log.

import type { Ending, Failure } from '../../machines/index.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { SubagentLog } from './subagent-log.ts';

/** Closes the log and builds the outcome from it. */
export function outcomeOf(ending: Ending, log: SubagentLog): Outcome {
  const { status, steps } = ending;
  const error = ending.error && explained(ending.error, log);
  const result = status === 'completed' ? completed(log) : unfinished(log);
  log.abandonCalls();
  return {
    status,
    ...result,
    ...(error ? { error } : {}),
    steps,
    usage: log.usage,
    toolLedger: log.ledger,
  };
}

/** A model that has used up its steps on answers that were not accepted: the reason is the last one's. */
function explained(error: Failure, log: SubagentLog): Failure {
  const refusal = error.code === 'STEP_LIMIT' ? log.refusal : null;
  if (refusal === null) return error;
  return { ...error, message: `${error.message}; its answer was not accepted: ${refusal}` };
}

type Result = Pick<Outcome, 'output' | 'text' | 'summary' | 'artifacts' | 'partial'>;

function completed(log: SubagentLog): Result {
  const handedIn = log.complete();
  if (handedIn === null)
    return { output: log.result === undefined ? log.text : log.result, text: log.text };
  const { result, summary, artifacts } = handedIn;
  return {
    output: result,
    text: typeof result === 'string' ? result : (summary ?? JSON.stringify(result)),
    ...(summary === undefined ? {} : { summary }),
    ...(artifacts === undefined ? {} : { artifacts }),
  };
}

function unfinished({ text }: SubagentLog): Result {
  return { output: null, text: '', ...(text === '' ? {} : { partial: text }) };
}
