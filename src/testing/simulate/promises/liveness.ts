// Within bounded time after the last fault everybody has ended, every question is over, and every
// result was heard, shown or dismissed; and what went wrong was told as what it was.

import { eventsOf, type RunRecord } from '../log.ts';
import { KNOWN } from '../voice-model.ts';
import type { Broken } from './broken.ts';

/** Errors that no fault explains. */
const UNEXPECTED: ReadonlySet<string> = new Set(['INTERNAL', 'HOOK_FAILED', KNOWN]);

export function* liveness({ log, unfinished }: RunRecord): Iterable<Broken> {
  for (const what of unfinished) yield { promise: 'LIVE', what: `at the end ${what}` };
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
