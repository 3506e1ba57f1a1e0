// P6: nothing twice. One call has one idempotency key and one answer; a tool runs once for a key, unless it
// declares that it may run again.

import { eventsOf, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';

export function* nothingTwice({ log, effects }: RunRecord): Iterable<Broken> {
  const runs = new Map<string, number>();
  for (const { key, tool, isIdempotent, process } of effects) {
    const times = (runs.get(key) ?? 0) + 1;
    runs.set(key, times);
    if (times > 1 && !isIdempotent)
      yield {
        promise: 'P6',
        what: `${tool} (${key}) ran ${times} times, the last time in process ${process}`,
      };
  }
  const calls = new Set<string>();
  for (const { subagentId, callId, tool, key, isIdempotent } of effects) {
    const call = `${subagentId}/${callId}/${key}`;
    if (subagentId !== null && calls.has(call) && !isIdempotent)
      yield { promise: 'P6', what: `the call ${callId} of ${subagentId} ran ${tool} twice` };
    calls.add(call);
  }
  yield* twice(eventsOf(log, 'tool.called'), 'was taken');
  yield* twice(
    eventsOf(log, 'tool.answered').filter(({ event }) => event.status !== 'pending'),
    'was answered',
  );
  yield* twice(eventsOf(log, 'subagent.delegated'), 'was delegated');
}

interface OfCall {
  readonly process: number;
  readonly event: { readonly callId: string };
}

/** Within one process: the next one cannot know the last events of the one before, and repeats them. */
function* twice(events: readonly OfCall[], what: string): Iterable<Broken> {
  const seen = new Set<string>();
  for (const { process, event } of events) {
    const key = `${process}/${event.callId}`;
    if (seen.has(key)) yield { promise: 'P6', what: `the call ${event.callId} ${what} twice` };
    seen.add(key);
  }
}
