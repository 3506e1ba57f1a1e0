// The deliveries in a check of the outbox, and the possible events.

import type {
  OutboxEvent,
  OutboxInput,
  OutboxItem,
  OutboxSnapshot,
} from '../../../src/machines/index.ts';

export const outboxInput: OutboxInput = {
  capacity: 2,
  quietMs: 1,
  answerMs: 3,
  offerTimeoutMs: 2,
  playTimeoutMs: 4,
  maxAttempts: 2,
};

const item = (deliveryId: string, kind: OutboxItem['kind'], more: Partial<OutboxItem> = {}) => ({
  deliveryId,
  kind,
  priority: 'normal' as const,
  replaces: null,
  reserved: kind === 'result',
  expiresAt: null,
  ...more,
});

/** The result that the lead agent reads. */
const READ = 'read';

/** The items in each exploration. */
export const outboxScopes: Readonly<Record<string, readonly OutboxItem[]>> = {
  'two results and a question': [
    item('r1', 'result'),
    item('r2', 'result'),
    item('q', 'question', { priority: 'high' }),
  ],
  'a result, a question and something urgent': [
    item('r1', 'result'),
    item('q', 'question', { priority: 'high' }),
    item('u', 'notice', { priority: 'urgent' }),
  ],
  'a result and the progress of one subagent': [
    item('r1', 'result'),
    item('p1', 'progress', { replaces: 'progress of a' }),
    item('p2', 'progress', { replaces: 'progress of a' }),
  ],
  'results that are silent, or skip when busy': [
    item('s', 'result', { rests: 'always' }),
    item('b', 'result', { rests: 'if_busy' }),
    item('q', 'question', { priority: 'high' }),
  ],
  'a result that the lead agent reads, and a question': [
    item(READ, 'result'),
    item('q', 'question', { priority: 'high' }),
  ],
  'more notices than rest as told': [
    item('n1', 'notice'),
    item('n2', 'notice'),
    item('n3', 'notice'),
  ],
  'notices that expire': [
    item('n1', 'notice', { expiresAt: 0 }),
    item('n2', 'notice'),
    item('u', 'notice', { priority: 'urgent', expiresAt: 0 }),
  ],
};

/** Returns when the pause ends. The pause is longer after a question that the user may still answer. */
export const pauseEnds = ({ context: { quietSince, asked } }: OutboxSnapshot): number =>
  quietSince + (typeof asked === 'string' ? 3 : 1);

export function outboxEvents(items: readonly OutboxItem[]) {
  return (snapshot: OutboxSnapshot): readonly OutboxEvent[] => {
    const { quietSince } = snapshot.context;
    const mayBeQuiet = snapshot.matches({ gate: 'open', slot: 'empty' });
    return (mayBeQuiet ? [quietSince, pauseEnds(snapshot)] : [quietSince]).flatMap((at) =>
      eventsAt(at, items, snapshot),
    );
  };
}

function eventsAt(
  at: number,
  items: readonly OutboxItem[],
  { context: { generation, dueAt, reserved, pending } }: OutboxSnapshot,
): readonly OutboxEvent[] {
  const events: OutboxEvent[] = [
    { type: 'outbox.reserve', at },
    { type: 'outbox.unreserve', at },
    { type: 'gate.opened', at },
    { type: 'gate.closed', at, interruptible: true },
    { type: 'gate.closed', at, interruptible: false },
    { type: 'client.attached', at },
    { type: 'client.detached', at },
    { type: 'utterance.ended', at },
    { type: 'deadline.quiet', at: dueAt, dueAt },
    { type: 'deadline.offer', at: dueAt, dueAt },
    { type: 'deadline.play', at: dueAt, dueAt },
    { type: 'deadline.quiet', at: dueAt + 1, dueAt: dueAt + 1 },
    { type: 'deadline.offer', at: dueAt + 1, dueAt: dueAt + 1 },
    { type: 'deadline.play', at: dueAt + 1, dueAt: dueAt + 1 },
  ];
  const told = pending.flatMap(({ toldIn }) => toldIn ?? []);
  for (const about of new Set([generation, generation - 1, ...told])) {
    events.push({ type: 'delivery.playing', at, generation: about });
    events.push({ type: 'delivery.heard', at, generation: about, grade: 'played' });
    events.push({ type: 'delivery.told', at, generation: about });
    events.push({ type: 'delivery.interrupted', at, generation: about });
    events.push({ type: 'delivery.interrupted', at, generation: about, begun: true });
    events.push({ type: 'delivery.failed', at, generation: about });
  }
  for (const each of items) {
    const { deliveryId } = each;
    // A place for each result was reserved on admission.
    if (!each.reserved || reserved > 0) events.push({ type: 'outbox.add', at, item: each });
    events.push({ type: 'delivery.shown', at, deliveryId });
    events.push({ type: 'delivery.dismissed', at, deliveryId });
    if (each.replaces !== null || each.kind === 'result')
      events.push({ type: 'outbox.outdate', at, deliveryId });
    if (each.kind === 'question') events.push({ type: 'outbox.retract', at, deliveryId });
    events.push({ type: 'outbox.rest', at, deliveryId });
    if (deliveryId === READ)
      events.push(
        { type: 'delivery.read', at, deliveryId },
        { type: 'delivery.unread', at, deliveryId },
      );
  }
  return events;
}
