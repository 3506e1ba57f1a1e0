// P7: bounded. The numbers of working, living and total subagents never exceed the limits, nor do the steps
// of a subagent; and a closed session leaves nothing behind.

import { sessionLimits } from '../../../actors/admission/limits.ts';
import type { RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';

const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);

export function* bounded(record: RunRecord): Iterable<Broken> {
  yield* counted(record);
  yield* steps(record);
  const { timersLeft } = record;
  if (timersLeft > 0)
    yield { promise: 'P7', what: `${timersLeft} timers are left of a session that is closed` };
}

/** Counts at rest: a subagent that appears and disappears within one moment is between two states. */
function* counted({ log, app }: RunRecord): Iterable<Broken> {
  const limits = sessionLimits(app.limits);
  const states = new Map<string, string>();
  const told = new Set<string>();
  for (const [index, entry] of log.entries()) {
    if (entry.kind === 'event' && entry.event.type === 'subagent.changed') {
      const { id, state } = entry.event.subagent;
      states.set(id, state);
    }
    if (entry.at === log[index + 1]?.at) continue;
    const all = [...states.values()];
    const counts = [
      ['run', all.filter((one) => one === 'running').length, limits.maxConcurrentPerSession],
      ['live', all.filter((one) => !ENDED.has(one)).length, limits.maxLivePerSession],
      ['came to be', all.length, limits.maxTotalPerSession],
    ] as const;
    for (const [what, count, most] of counts)
      if (count > most && !told.has(what)) {
        told.add(what);
        yield { promise: 'P7', what: `${count} subagents ${what}, at most ${most} may` };
      }
  }
}

function* steps({ log, app }: RunRecord): Iterable<Broken> {
  const { maxDepth } = sessionLimits(app.limits);
  const told = new Set<string>();
  for (const entry of log) {
    if (entry.kind !== 'event' || entry.event.type !== 'subagent.changed') continue;
    const { id, step, maxSteps, depth } = entry.event.subagent;
    // One more call hands in the work done when a budget is exhausted.
    const isBounded = step <= maxSteps + 1 && depth <= maxDepth;
    if (isBounded || told.has(id)) continue;
    told.add(id);
    yield { promise: 'P7', what: `${id} is at step ${step} of ${maxSteps}, depth ${depth}` };
  }
}
