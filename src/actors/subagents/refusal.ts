// The refusals of the service as errors, and the outcome of a run that could not be played.

import type {
  DelegationErrorCode,
  DelegationFailure,
  Refused,
} from '../contracts/service-types.ts';
import { codeOf, messageOf } from '../../values/errors.ts';
import type { Outcome } from '../contracts/outcome.ts';
import { outcomeOf } from '../subagent/outcome-of.ts';
import { SubagentLog } from '../subagent/subagent-log.ts';

/** Codes of errors that may not occur again if the call is repeated later. */
const passing: ReadonlySet<DelegationErrorCode> = new Set([
  'SESSION_LIMIT',
  'GLOBAL_LIMIT',
  'REQUEST_PENDING',
  'WAIT_CYCLE',
]);

export function failure(code: DelegationErrorCode, message: string): DelegationFailure {
  return { code, message, retryable: passing.has(code) };
}

export function refusal(code: DelegationErrorCode, message: string): Refused {
  return { ok: false, error: failure(code, message) };
}

/** Returns the outcome of a run that could not be played. */
export function lostBy(error: unknown): Outcome {
  const code = codeOf(error);
  const lost = { code, message: messageOf(error), retryable: true };
  return outcomeOf({ status: 'lost', steps: 0, error: lost }, new SubagentLog());
}
