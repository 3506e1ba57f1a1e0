// The service's refusals as errors, and the outcome of a run that could not be executed.
//
// Invariants
//   REFUSAL-1. An id identifies one request, which consists of the subagent's name and its task. A different request
//       with this id is refused (`ID_REUSED`). A request without a digest in the journal is treated as the same
//       request, because an earlier version wrote it or its secrets were removed.

import { callKey } from '../../values/json.ts';
import type {
  DelegationErrorCode,
  DelegationFailure,
  Refused,
} from '../contracts/service-types.ts';
import { codeOf, messageOf, OffstageError } from '../../values/errors.ts';
import { shortHashOf } from '../../values/storable.ts';
import type { SubagentTask } from '../contracts/task.ts';
import type { Outcome } from '../contracts/outcome.ts';
import { outcomeOf } from '../subagent/outcome-of.ts';
import { SubagentLog } from '../subagent/subagent-log.ts';

/** Codes of temporary errors, after which a later call may succeed. */
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

/** Returns the outcome of a run that could not be executed. */
export function lostBy(error: unknown): Outcome {
  const code = codeOf(error);
  const lost = { code, message: messageOf(error), retryable: code !== 'ID_REUSED' };
  return outcomeOf({ status: 'lost', steps: 0, error: lost }, new SubagentLog());
}

export function wholeTask(
  toolName: string,
  task: string | (Pick<SubagentTask, 'description'> & Partial<SubagentTask>),
): SubagentTask {
  return { toolName, args: {}, ...(typeof task === 'string' ? { description: task } : task) };
}

/** Returns a digest of a request, without its defaults and its user. */
export function requestDigest(name: string, task: Parameters<typeof wholeTask>[1]): string {
  const { toolName, args, description } = wholeTask(name, task);
  return shortHashOf(callKey(JSON.stringify([name, toolName, description]), args));
}

/** Returns whether the id belongs to another request (REFUSAL-1). `known`: the digest of the request with this id. */
export function isOther(known: string | undefined, digest: string): boolean {
  return known !== digest && known?.length === digest.length;
}

export function idReused(id: string): OffstageError {
  return new OffstageError(
    'ID_REUSED',
    `"${id}" is the id of another request: expected the same subagent and task, or a new id`,
  );
}
