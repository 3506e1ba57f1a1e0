// Waits until a subagent has ended, whatever it asks on the way.
//
// A tool that stands for a subagent has one answer, its result. The agent that called it is
// not there to be asked: so a question is handed back as the result (`return`), or the
// subagent is told at once that nobody will answer (`decline`). It never waits for an answer
// that cannot come. What somebody else asks the agent that waits is not for us to answer.

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
  /** New words of the user end the wait of the lead agent. @defaultValue false */
  readonly heedsUser?: boolean;
}

/** The report of one that has ended, or (`return`) asks something, or still works (`heedsUser`). */
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
    // Refused, where it is over by now: the next look says how.
    if (request)
      service.send(id, { content: NOBODY_ANSWERS, inResponseTo: request.requestId }, requester);
  }
}
