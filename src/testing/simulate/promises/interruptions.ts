// P5: a barge-in stops speech, at once, and nothing else: no subagent is cancelled without a reason.

import { TICK_MS } from '../../conformance/client.ts';
import { eventsOf, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';

/** Audio that was played in this tick and the next was on its way to the ear. */
const AT_ONCE_MS = 2 * TICK_MS;

export function* interruptions(record: RunRecord): Iterable<Broken> {
  yield* speechStops(record);
  yield* workGoesOn(record);
}

function* speechStops({ log, plays, startedAt, wordsOf }: RunRecord): Iterable<Broken> {
  const changes = eventsOf(log, 'floor.changed');
  for (const [index, { at, event }] of changes.entries()) {
    if (event.floor !== 'user') continue;
    // In order, not by time: with slow words a "mm-hm" takes and gives back the floor at once.
    const until = changes.slice(index + 1).find((next) => next.event.floor !== 'user');
    const endsAt = until?.at ?? Infinity;
    for (const { itemId, firstAt, lastAt } of plays) {
      const [began, ended] = [firstAt - startedAt, lastAt - startedAt];
      if (itemId !== '' && began < at && ended > at + AT_ONCE_MS && at + AT_ONCE_MS < endsAt)
        yield {
          promise: 'P5',
          what: `${JSON.stringify(wordsOf(itemId))} went on for ${ended - at} ms after the user began to speak`,
        };
    }
  }
}

function* workGoesOn({ log, app }: RunRecord): Iterable<Broken> {
  const end = log.findIndex(({ kind }) => kind === 'closing');
  const mayEnd = new Set(
    Object.values(app.subagentConfigs ?? {}).flatMap(({ onBargeIn, onHung, name }) =>
      onBargeIn === 'cancel' || onHung === 'cancel' ? [name] : [],
    ),
  );
  const hasCancelled = log.some((entry) => entry.kind === 'step' && entry.step.do === 'cancel');
  const seen = new Set<string>();
  for (const { event } of eventsOf(log.slice(0, end < 0 ? log.length : end), 'subagent.changed')) {
    const { id, name, state, parentId, outcome } = event.subagent;
    if (state !== 'cancelled' || seen.has(id)) continue;
    seen.add(id);
    // A child is cancelled with its parent, or by it; a duplicate may be replaced.
    if (parentId !== null || hasCancelled || mayEnd.has(name)) continue;
    const replaces = app.subagentConfigs?.[name]?.duplicates === 'replace';
    if (!replaces)
      yield { promise: 'P5', what: `${id} was cancelled by nobody: ${outcome?.error?.message}` };
  }
}
