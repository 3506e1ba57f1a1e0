// One call of a tool that uses subagents: its service, its requester, and the wait until a subagent ends.
//
// In a session or a subagent, the call's context contains the service and the requester. A program passes the service
// when it creates the tool. A tool that represents a subagent returns only a result. Its caller cannot be asked during
// the call. Therefore, a question is returned as the result (`return`), or the subagent is told immediately that it
// will get no answer (`decline`). The call never waits for an answer that cannot come. Questions from other subagents
// to the caller are not handled here.

import {
  type CheckResult,
  type Requester,
  type SubagentReport,
  type SubagentService,
  THE_LEAD,
} from '../../contracts/service-types.ts';
import { callerOf } from '../../model/caller.ts';
import {
  isToolFailure,
  thrownFailure,
  toolFailure,
  type ToolFailure,
} from '../../model/tool-results.ts';

/** One call and its requester. */
export interface ToolScope {
  readonly service: SubagentService;
  readonly requester: Requester;
  /** The same for every attempt at the call, or undefined if the call has no id. */
  readonly idempotencyKey: string | undefined;
}

/**
 * Returns the scope of a call. The caller in the context takes precedence over the tool's options, because the same
 * tool may be used inside and outside a session.
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

/** Runs the work of one call. An error, or a missing service, becomes the result of the call. */
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

const UNANSWERABLE =
  'Nobody can answer now: the agent that gave you the task waits for your result. Go on without.';

export interface AwaitEndOptions {
  readonly questions: 'return' | 'decline';
  readonly signal: AbortSignal | undefined;
  /** Whether new input from the user ends the wait of the lead agent. @defaultValue false */
  readonly heedsUser?: boolean;
}

/**
 * Returns the report on the subagent when it has ended, has asked a question (`return`), or is still running when the
 * user speaks (`heedsUser`).
 */
export async function awaitEnd(
  service: SubagentService,
  id: string,
  requester: Requester,
  { questions, signal, heedsUser = false }: AwaitEndOptions,
): Promise<CheckResult> {
  const options = { alsoAsking: false, heedsUser, ...(signal ? { signal } : {}) };
  for (;;) {
    const waited = await service.await([id], requester, options);
    if (!waited.ok) return waited;
    const report = waited.reports[0] as SubagentReport;
    const { pendingRequest: request } = report;
    if (waited.why === 'user') return { ok: true, report };
    if (report.endedAt !== null || (request && questions === 'return')) return { ok: true, report };
    // The service refuses the call if the request is already over. The next report then shows how the request ended.
    if (request)
      service.send(id, { content: UNANSWERABLE, inResponseTo: request.requestId }, requester);
  }
}
