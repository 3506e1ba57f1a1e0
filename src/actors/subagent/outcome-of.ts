// Builds the outcome of a subagent from the ending of its machine and the content of its log.

import { CancelledError, CapacityError, OffstageError, TimeoutError } from '../../values/errors.ts';
import type { Ending, Failure } from '../../machines/index.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { SubagentLog } from './subagent-log.ts';

/** Returns the reason with which this end aborts the work, as its `AbortSignal` gives it. */
export function endReason(status: Ending['status'], { code, message }: Failure): Error {
  if (status === 'timed_out') return new TimeoutError(message, { code });
  if (status === 'cancelled' || code === 'KILLED')
    return new CancelledError(message.replace(/^(Cancelled|Killed): /, ''));
  if (code === 'BUDGET_EXHAUSTED') return new CapacityError(code, message);
  return new OffstageError(code, message);
}

/** Returns the abort reason of an event that does not end the subagent. */
export function interruption(eventType: string): Error {
  switch (eventType) {
    case 'subagent.message':
      return new CancelledError('a message to the subagent interrupted it');
    case 'budget.exhausted':
      return new CapacityError('BUDGET_EXHAUSTED', 'The budget is used up');
    default:
      return new CancelledError('its result is no longer needed');
  }
}

/** Closes the log and builds the outcome from it. */
export function outcomeOf(ending: Ending, log: SubagentLog): Outcome {
  const { status, error, steps } = ending;
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
