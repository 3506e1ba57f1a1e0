// A due delivery is told while a client listens and both parties are silent. Within bounded time after the
// last fault every subagent has ended, every question is over, and every result was heard, shown or
// dismissed; and every fault was reported as itself.

import { eventsOf, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';

/** The model is told something for a second time: no session may do that. */
export const KNOWN = 'KNOWN_ALREADY';

/**
 * The time within which a due delivery is told, in milliseconds: longer than the session listens to a
 * television, a tool of the lead agent works, or a response is awaited.
 */
const TOLD_WITHIN_MS = 120_000;

/** Errors that no fault explains. */
const UNEXPECTED: ReadonlySet<string> = new Set(['INTERNAL', 'HOOK_FAILED', KNOWN]);

export function* liveness({ log, unfinished, longestSilenceMs }: RunRecord): Iterable<Broken> {
  for (const what of unfinished) yield { promise: 'LIVE', what: `at the end ${what}` };
  if (longestSilenceMs > TOLD_WITHIN_MS)
    yield {
      promise: 'LIVE',
      what: `something was due, and nothing was said for ${longestSilenceMs / 1000} s to somebody who listened`,
    };
  for (const { event } of eventsOf(log, 'error.reported'))
    if (UNEXPECTED.has(event.code))
      yield { promise: 'LIVE', what: `an error that nothing explains: ${event.message}` };
  const end = log.findIndex(({ kind }) => kind === 'closing');
  for (const { event } of eventsOf(log.slice(0, end < 0 ? log.length : end), 'session.ended'))
    yield {
      promise: 'LIVE',
      what: `the session ended by itself: ${event.error?.code} ${event.error?.message}`,
    };
}
