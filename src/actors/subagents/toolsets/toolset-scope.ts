// Whom a tool talks to: in a session or a subagent the context of the call says it; a
// program says it when it makes the tool.

import { callerOf } from '../../model/caller.ts';
import { THE_LEAD, type Requester, type SubagentService } from '../../contracts/service-types.ts';
import {
  isToolFailure,
  thrownFailure,
  toolFailure,
  type ToolFailure,
} from '../../model/tool-failure.ts';

/** One call, and on whose behalf. */
export interface ToolScope {
  readonly service: SubagentService;
  readonly requester: Requester;
  /** The same for every attempt at the call; undefined where nobody minted one. */
  readonly idempotencyKey: string | undefined;
}

/** Who called goes before what the tool was made with: a tool may be used in both places. */
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

/** The work of one call. What is thrown, and a call that nobody can serve, are results, too. */
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
