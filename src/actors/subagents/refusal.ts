// The refusals of the service, as errors.

import type {
  DelegationErrorCode,
  DelegationFailure,
  Refused,
} from '../contracts/service-types.ts';

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
