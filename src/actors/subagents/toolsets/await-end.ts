// Waits until a subagent has ended, including its questions.
//
// A tool that stands for a subagent has one answer, its result. Its caller cannot be asked during the call:
// so a question is returned as the result (`return`), or the subagent is told at once that it gets no answer
// (`decline`). It never waits for an answer that cannot come. Questions of other subagents to the caller are
// not answered here.

import type {
  CheckResult,
  Requester,
  SubagentReport,
  SubagentService,
} from '../../contracts/service-types.ts';

const NOBODY_ANSWERS =
  'Nobody can answer now: the agent that gave you the task waits for your result. Go on without.';

export interface AwaitEndOptions {
  readonly questions: 'return' | 'decline';
  readonly signal: AbortSignal | undefined;
  /** Whether new words of the user end the wait of the lead agent. @defaultValue false */
  readonly heedsUser?: boolean;
}

/**
 * Returns the report on a subagent that has ended, asks a question (`return`), or still works (`heedsUser`).
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
    // Refused if the request is over by now: the next report shows how.
    if (request)
      service.send(id, { content: NOBODY_ANSWERS, inResponseTo: request.requestId }, requester);
  }
}
