// P9: nothing lost in a crash. State that was shown before is there after it, unchanged or further on; the
// journal has no gaps, and each process continues from it.
import { eventsOf, type LogEntry, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';

const OVER: ReadonlySet<string> = new Set(['answered', 'expired', 'withdrawn', 'superseded']);
const SETTLED: ReadonlySet<string> = new Set(['delivered', 'dismissed', 'dropped']);

export function* keeping(record: RunRecord): Iterable<Broken> {
  yield* noGaps(record.log);
  yield* nothingForgotten(record);
}

function* noGaps(log: readonly LogEntry[]): Iterable<Broken> {
  const last = new Map<string, number>();
  for (const entry of log) {
    if (entry.kind !== 'kept') continue;
    const { scope, unit, seq } = entry.entry;
    const key = `${scope}/${unit}`;
    const expected = (last.get(key) ?? 0) + 1;
    if (seq !== expected)
      yield {
        promise: 'P9',
        what: `the journal has entry ${seq} of ${unit} where ${expected} was due`,
      };
    last.set(key, seq);
  }
}

/** Checks the state that any process showed against the final state. */
function* nothingForgotten({ log, state }: RunRecord): Iterable<Broken> {
  if (!state || !log.some(({ kind }) => kind === 'crashed')) return;
  const end = log.findIndex(({ kind }) => kind === 'closing');
  const seen = end < 0 ? log : log.slice(0, end);
  const subagents = new Set(state.subagents.map(({ id }) => id));
  const questions = new Set(state.questions.map(({ requestId }) => requestId));
  const deliveries = new Set(state.deliveries.map(({ deliveryId }) => deliveryId));
  const items = new Set(state.transcript.map(({ id }) => id));
  const lost = new Set<string>();
  for (const { event } of eventsOf(seen, 'subagent.changed'))
    // A subagent that was never born cannot be lost.
    if (event.subagent.state !== 'spawning' && !subagents.has(event.subagent.id))
      lost.add(`the subagent ${event.subagent.id}`);
  for (const requestId of stillOpen(seen))
    if (!questions.has(requestId)) lost.add(`the question ${requestId}`);
  for (const [deliveryId, kind] of stillDue(seen))
    if (!deliveries.has(deliveryId)) lost.add(`the ${kind} ${deliveryId}`);
  for (const { event } of eventsOf(seen, 'transcript.changed'))
    if (event.item.role === 'user' && event.item.final && !items.has(event.item.id))
      lost.add(`what the user said (${JSON.stringify(event.item.text)})`);
  for (const what of lost)
    yield { promise: 'P9', what: `${what} was there before a crash, and is not known after it` };
}

/** Returns the questions that were shown, and not shown as over. */
function stillOpen(log: readonly LogEntry[]): ReadonlySet<string> {
  const open = new Set<string>();
  for (const { event } of eventsOf(log, 'question.changed')) {
    const { requestId, state } = event.question;
    if (OVER.has(state)) open.delete(requestId);
    else open.add(requestId);
  }
  return open;
}

/** Returns the deliveries that were shown as due, and not settled, as far as that was shown or kept. */
function stillDue(log: readonly LogEntry[]): ReadonlyMap<string, string> {
  const due = new Map<string, string>();
  const underWay = new Set<string>();
  for (const entry of log) {
    if (entry.kind === 'event' && entry.event.type === 'delivery.changed') {
      const { deliveryId, kind, state } = entry.event.delivery;
      if (kind === 'question') continue;
      if (SETTLED.has(state)) due.delete(deliveryId);
      else due.set(deliveryId, kind);
      if (state === 'offered' || state === 'playing') underWay.add(deliveryId);
      else underWay.delete(deliveryId);
    } else if (entry.kind === 'kept') {
      // The process may die after an entry is kept and before its effects are shown.
      const event = entry.entry.event as { readonly type: string; readonly deliveryId?: string };
      if (event.type === 'delivery.heard')
        for (const deliveryId of underWay) due.delete(deliveryId);
      else if (event.type === 'delivery.shown' || event.type === 'delivery.dismissed')
        due.delete(event.deliveryId ?? '');
    }
  }
  return due;
}
