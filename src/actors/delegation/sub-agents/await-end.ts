// Waits until a subagent has ended, whatever it asks on the way.
//
// A tool that stands for a subagent has one answer, its result. The agent that called it is
// not there to be asked: so a question is handed back as the result (`return`), or the
// subagent is told at once that nobody will answer (`decline`). It never waits for an answer
// that cannot come.

import { filter, firstValueFrom, fromEvent, take, takeUntil } from 'rxjs';
import type { CheckResult, Requester, SubagentReport, SubagentService } from '../service-types.ts';

const NOBODY_ANSWERS =
  'Nobody can answer now: the agent that gave you the task waits for your result. Go on without.';

export interface AwaitEndOptions {
  readonly questions: 'return' | 'decline';
  readonly signal: AbortSignal | undefined;
}

/** The report of one that has ended, or (`return`) asks something. */
export async function awaitEnd(
  service: SubagentService,
  id: string,
  requester: Requester,
  { questions, signal }: AwaitEndOptions,
): Promise<CheckResult> {
  for (;;) {
    const waited = await service.await([id], requester, signal ? { signal } : {});
    if (!waited.ok) return waited;
    const report = waited.reports[0] as SubagentReport;
    if (report.endedAt !== null) return { ok: true, report };
    if (waited.why === 'timeout') continue;
    const request = report.pendingRequest;
    if (request && questions === 'return') return { ok: true, report };
    // Somebody else asks the agent that waits: it is not for us to answer.
    const next = nextNews(service, id, signal);
    if (request)
      service.send(id, { content: NOBODY_ANSWERS, inResponseTo: request.requestId }, requester);
    await next;
  }
}

const news: ReadonlySet<string> = new Set(['ended', 'input.requested', 'input.settled']);

/** The next thing that is worth another look at this subagent. */
function nextNews(service: SubagentService, id: string, signal: AbortSignal | undefined) {
  const heard = service.events.pipe(
    filter(({ subagentId, type }) => subagentId === id && news.has(type)),
    take(1),
  );
  const until = signal ? heard.pipe(takeUntil(fromEvent(signal, 'abort'))) : heard;
  return firstValueFrom(until, { defaultValue: null });
}
