// Services. P6: one agent examines an event. P4: its findings are told, and no news is not; an event that was
// accepted is never lost silently. And programs beside the session: each result of theirs is taken once.

import { deliveryAbout } from '../../../actors/contracts/records.ts';
import type { DeliveryView, SubagentView } from '../../../actors/contracts/session-views.ts';
import type { JournalEntry } from '../../../actors/ports/journal.ts';
import { tellingOf, type CheckedEvent } from '../../../actors/services/service-events.ts';
import { SPAWNED, type SpawnedEvent } from '../../../actors/subagent/subagent-events.ts';
import { eventsOf, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';

const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);

export function* services({ log }: RunRecord): Iterable<Broken> {
  const end = log.findIndex(({ kind }) => kind === 'closing');
  const seen = end < 0 ? log : log.slice(0, end);
  const kept = seen.flatMap((entry) => (entry.kind === 'kept' ? [entry.entry] : []));
  yield* resultsHad(kept);
  const arrived = kept.filter(({ event }) => event.type === 'event.arrived');
  if (arrived.length === 0) return;
  const agents = new Map<string, SubagentView>();
  for (const { event } of eventsOf(seen, 'subagent.changed'))
    agents.set(event.subagent.id, event.subagent);
  const told = new Map<string, DeliveryView>();
  for (const { event } of eventsOf(seen, 'delivery.changed'))
    told.set(event.delivery.deliveryId, event.delivery);
  const dropped = new Set(
    eventsOf(seen, 'service.dropped').map(({ event }) => event.event.eventId),
  );
  for (const { scope, event } of arrived) {
    const { eventId, event: happened } = event as Arrived;
    const looking = kept.filter(
      (entry) => birthIn(entry)?.idempotencyKey === `${scope}:${eventId}`,
    );
    const [first] = looking;
    if (looking.length > 1)
      yield {
        promise: 'P6',
        what: `${looking.map(({ unit }) => unit).join(' and ')} looked at the event ${eventId}`,
      };
    const agent = first && agents.get(first.unit);
    if (!agent) {
      if (!dropped.has(eventId))
        yield { promise: 'P4', what: `nobody looked at the event ${eventId}, and nobody said so` };
      continue;
    }
    yield* tells(agent, eventId, happened, told.get(deliveryAbout(eventId)));
  }
}

interface Arrived {
  readonly type: string;
  readonly eventId: string;
  readonly event: CheckedEvent;
}

function* tells(
  { id, state, outcome }: SubagentView,
  eventId: string,
  { priority }: CheckedEvent,
  delivery: DeliveryView | undefined,
): Iterable<Broken> {
  if (!ENDED.has(state) || !outcome || state === 'cancelled') return;
  const broken = (what: string): Broken => ({
    promise: 'P4',
    what: `${id}, which looked at the event ${eventId}, is ${state}: ${what}`,
  });
  const text = outcome.status === 'completed' ? tellingOf(outcome) : null;
  const isOwed = outcome.status === 'completed' ? text !== null : priority === 'urgent';
  if (isOwed && !delivery) yield broken('the user was not told');
  else if (!isOwed && delivery) yield broken(`the user was told ${JSON.stringify(delivery.text)}`);
  else if (text !== null && delivery && delivery.text !== text)
    yield broken(`it found ${JSON.stringify(text)}, and told ${JSON.stringify(delivery.text)}`);
}

/** Checks programs: scopes of their own, which record the results that they were given. */
function* resultsHad(kept: readonly JournalEntry[]): Iterable<Broken> {
  const had = new Map<string, number>();
  for (const { scope, event } of kept)
    if (event.type === 'result.had') {
      const key = `${scope}/${String((event as { readonly subagentId?: unknown }).subagentId)}`;
      had.set(key, (had.get(key) ?? 0) + 1);
    }
  const programs = new Set(kept.flatMap(({ scope, unit }) => (scope === unit ? [scope] : [])));
  for (const entry of kept) {
    const { scope, unit } = entry;
    const birth = birthIn(entry);
    if (!birth || birth.worksFor !== 'program' || birth.parentId !== null) continue;
    // A run with an id keeps its result for good (RUN-SUBAGENT-KR-1), and every repeated run returns it
    // again.
    const isKeptRun = birth.idempotencyKey === scope;
    if (!programs.has(scope) || isKeptRun) continue;
    const times = had.get(`${scope}/${unit}`) ?? 0;
    if (times !== 1)
      yield {
        promise: 'P4',
        what: `the program ${scope} had the result of ${unit} ${times} times`,
      };
  }
}

function birthIn({ event }: JournalEntry): SpawnedEvent | null {
  return event.type === SPAWNED ? (event as SpawnedEvent) : null;
}
