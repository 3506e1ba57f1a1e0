// What is due is told while somebody listens and nobody speaks. Within bounded time after the last
// fault everybody has ended, every question is over, and every result was heard, shown or dismissed;
// and what went wrong was told as what it was.

import { eventsOf, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';

/** The model is told what it was told before: no session may do that. */
export const KNOWN = 'KNOWN_ALREADY';

/**
 * What is due is said within this time, in milliseconds: longer than a television is listened to, a
 * tool of the lead agent works, and a response is waited for.
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
