// The service and the requester of a tool call: the context of the call contains them in a session or a
// subagent; a program passes them when it creates the tool.

import { callerOf } from '../../model/caller.ts';
import { THE_LEAD, type Requester, type SubagentService } from '../../contracts/service-types.ts';
import {
  isToolFailure,
  thrownFailure,
  toolFailure,
  type ToolFailure,
} from '../../model/tool-failure.ts';

/** One call, with its requester. */
export interface ToolScope {
  readonly service: SubagentService;
  readonly requester: Requester;
  /** The same for every attempt at the call; undefined if there is none. */
  readonly idempotencyKey: string | undefined;
}

/**
 * The caller in the context takes precedence over the options of the tool: a tool may be used in both ways.
 */
export function scopeOfCall(
  options: object,
  service: SubagentService | undefined,
): ToolScope | ToolFailure {
  const caller = callerOf(options);
  if (caller)
    return { service: caller.service, requester: caller, idempotencyKey: caller.idempotencyKey };
  if (service) return { service, requester: THE_LEAD, idempotencyKey: undefined };
  return toolFailure(
    'NO_SERVICE',
    'There are no subagents here: expected to be called in a session, by a subagent, or with a `service` among the options',
  );
}

/** Runs the work of one call. Errors, and a call without a service, become results, too. */
export async function inScope<T>(
  options: object,
  service: SubagentService | undefined,
  work: (scope: ToolScope) => T | Promise<T>,
): Promise<T | ToolFailure> {
  const scope = scopeOfCall(options, service);
  if (isToolFailure(scope)) return scope;
  try {
    return await work(scope);
  } catch (error) {
    return thrownFailure(error);
  }
}
