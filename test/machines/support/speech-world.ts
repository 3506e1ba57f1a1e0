// A situation in `speech-system.ts`, with its contents, its possible events, and its key.
//
// Time stands still (`at: 0`), and a deadline may fire whenever it is armed. The key omits times. Instead of the
// generation, it only records whether a report concerns the current attempt.

import type {
  BatchSnapshot,
  Gate,
  OutboxItem,
  OutboxSnapshot,
  QuestionSnapshot,
  SessionSnapshot,
  ToolCallSnapshot,
} from '../../../src/machines/index.ts';
import type { Machines, Step, World } from '../../../src/testing/check/index.ts';
import type { LeadContext, Letter } from './lead-machine.ts';

export const at = 0;
/** The id of the question. */
export const q = 'q';
/** The ids in the batch and the id of its joint item. */
export const batchId = 'b';

export const mishaps = [
  'bargeIn',
  'detach',
  'loss',
  'urgent',
  'failure',
  'timeout',
  'reply',
] as const;
export type Mishap = (typeof mishaps)[number];

/** The history variables. */
export interface Ghost {
  /** The last message about the gate that was sent to the outbox. */
  readonly told: Gate;
  readonly happened: readonly Mishap[];
  /** The first result was interrupted while it was being spoken. */
  readonly interrupted: boolean;
  /** The items that have been heard, seen or dismissed. */
  readonly over: readonly string[];
  /** The item that the lead agent started to speak last, if a question is asked. */
  readonly last: 'question' | 'other' | null;
}

export type Situation = World<Machines, Ghost>;

const urgent: OutboxItem = {
  deliveryId: 'u',
  kind: 'notice',
  priority: 'urgent',
  replaces: null,
  reserved: false,
  expiresAt: null,
};

export const sessionOf = ({ actors }: Situation) => actors['session'] as SessionSnapshot;
export const outboxOf = ({ actors }: Situation) => actors['outbox'] as OutboxSnapshot;
export const questionOf = (world: Situation) => world.actors['question:q'] as QuestionSnapshot;
export const callOf = (world: Situation, id: string) =>
  world.actors[`call:${id}`] as ToolCallSnapshot;
export const itemsIn = (world: Situation) => {
  const { current, pending } = outboxOf(world).context;
  return current === null ? pending : [current, ...pending];
};
export const isInOutbox = (world: Situation, id: string): boolean =>
  itemsIn(world).some(({ deliveryId }) => deliveryId === id);
export const batchIn = ({ actors }: Situation) =>
  actors[`batch:${batchId}`] as BatchSnapshot | undefined;
/** Returns whether the item is waiting to be spoken, in the outbox or in its batch. */
export const isIn = (world: Situation, id: string): boolean =>
  isInOutbox(world, id) || batchIn(world)?.context.parts.includes(id) === true;
export const isOnItsWay = (world: Situation, to: string, type: string, id?: string): boolean =>
  world.inFlight.some(
    ({ to: receiver, event }) =>
      receiver === to &&
      event.type === type &&
      (id === undefined || (event['item'] as OutboxItem | undefined)?.deliveryId === id),
  );

export const leadOf = ({ actors }: Situation) =>
  actors['lead'] as unknown as { readonly value: string; readonly context: LeadContext };
export const lettersOf = ({ actors }: Situation) =>
  (actors['mailbox'] as unknown as { context: { letters: readonly Letter[] } }).context.letters;

/** Returns whether the lead agent is working on the current attempt. */
export const isSaying = (world: Situation): boolean =>
  ['asked', 'speaking'].includes(leadOf(world).value) &&
  leadOf(world).context.generation === outboxOf(world).context.generation;

export function mishapOf({ actor, event: { type } }: Step, says: boolean): Mishap | null {
  if (actor === 'outbox' && says && ['deadline.offer', 'deadline.play'].includes(type))
    return 'timeout';
  const names: Readonly<Record<string, Mishap>> = {
    'session utterance.started': 'bargeIn',
    'session client.detached': 'detach',
    'lead lose': 'loss',
    'lead fail': 'failure',
    'lead reply': 'reply',
    'outbox outbox.add': 'urgent',
  };
  return names[`${actor} ${type}`] ?? null;
}

export function leadEvents(may: (mishap: Mishap) => boolean) {
  return [
    { type: 'begin' },
    { type: 'finish' },
    { type: 'return' },
    ...(may('failure') ? [{ type: 'fail' }] : []),
    ...(may('loss') ? [{ type: 'lose' }] : []),
    ...(may('reply') ? [{ type: 'reply' }] : []),
  ];
}

export function sessionEvents(snapshot: SessionSnapshot, may: (mishap: Mishap) => boolean) {
  const { settleBy, reconnectAt } = snapshot.context;
  const attached = snapshot.matches({ client: 'attached' });
  const speaking = snapshot.matches({ user: 'speaking' });
  const connecting = snapshot.matches({ connection: 'connecting' });
  return [
    ...(attached && may('bargeIn') ? [{ type: 'utterance.started', at }] : []),
    ...(speaking ? [{ type: 'utterance.ended', at }] : []),
    ...(snapshot.matches({ user: 'settling' })
      ? [
          { type: 'utterance.settled', at },
          { type: 'deadline.settle', at: settleBy, dueAt: settleBy },
        ]
      : []),
    ...(attached && may('detach') ? [{ type: 'client.detached', at }] : []),
    ...(attached ? [] : [{ type: 'client.attached', at }]),
    ...(connecting ? [{ type: 'transport.ready', at }] : []),
    ...(snapshot.matches({ connection: 'reconnecting' })
      ? [{ type: 'deadline.reconnect', at: reconnectAt, dueAt: reconnectAt }]
      : []),
  ];
}

export function outboxEvents(
  { context }: OutboxSnapshot,
  may: (mishap: Mishap) => boolean,
  says: boolean,
) {
  const { dueAt, pending } = context;
  const late = !says || may('timeout') ? ['deadline.offer', 'deadline.play'] : [];
  return [
    ...['deadline.quiet', ...late].map((type) => ({ type, at: dueAt, dueAt })),
    ...(may('urgent') ? [{ type: 'outbox.add', at, item: urgent }] : []),
    // An item that could not be spoken is a card, which the user sees or dismisses.
    ...pending
      .filter(({ resting, deliveryId }) => resting && deliveryId !== q && deliveryId !== batchId)
      .map(({ deliveryId }) => ({
        type: deliveryId === 'r1' ? 'delivery.dismissed' : 'delivery.shown',
        at,
        deliveryId,
      })),
  ];
}

/**
 * Returns the events of the batch's timeout, and of the cards of those parts that are waiting or could not be spoken.
 */
export function batchEvents(batch: BatchSnapshot | undefined, { context }: OutboxSnapshot) {
  const { dueAt = 0, parts = [] } = batch?.context ?? {};
  const isCard = context.pending.some(
    ({ deliveryId, resting }) => deliveryId === batchId && resting,
  );
  const canSee = isCard || batch?.matches({ gathering: 'holding' }) === true;
  return [
    { type: 'deadline.ceiling', at: dueAt, dueAt },
    ...parts
      .filter(() => canSee)
      .map((deliveryId) => ({
        type: deliveryId === 'r1' ? 'delivery.dismissed' : 'delivery.shown',
        at,
        deliveryId,
      })),
  ];
}

export function questionEvents(
  { context: { dueAt, followedAt = null, readBack = null } }: QuestionSnapshot,
  { context }: OutboxSnapshot,
) {
  const isCard = context.pending.some(({ deliveryId, resting }) => deliveryId === q && resting);
  return [
    { type: 'question.granted', at, epoch: 1 },
    { type: 'deadline.answer', at: dueAt, dueAt },
    ...(isCard ? [{ type: 'question.shown', at, startsClock: true }] : []),
    { type: 'question.answer', at, channel: 'speech', utteranceStartedAt: at, decisive: true },
    ...(followedAt !== null && readBack === null
      ? [{ type: 'question.readBack', at, after: 'reply' }]
      : []),
    { type: 'question.withdraw', at, reason: 'cancelled' },
  ];
}

const texts = new WeakMap<object, string>();

/** Returns the text of a value that does not change. The text is computed once. */
function textOf(it: object, make: () => unknown): string {
  let text = texts.get(it);
  if (text === undefined) texts.set(it, (text = JSON.stringify(make())));
  return text;
}

/** Returns the whole situation as text, which makes comparisons cheap. */
export function keyOf(world: Situation, results: readonly string[]): string {
  const session = sessionOf(world);
  const outbox = outboxOf(world);
  const question = questionOf(world);
  const lead = leadOf(world);
  const { generation } = outbox.context;
  const said = lead.context.generation === generation;
  const textOfMessage = ({ to, event }: Letter[number]): string => {
    const about = 'generation' in event ? event['generation'] === generation : '';
    return `${to}:${about}${textOf(event, () => ({ ...event, generation: 0 }))}`;
  };
  const batch = batchIn(world);
  const parts = [
    batch ? textOf(batch, () => [batch.value, batch.context.parts, batch.context.working]) : '',
    textOf(session, () => session.value),
    textOf(outbox, () => {
      const { current, pending, interruptible } = outbox.context;
      const items = [...pending, ...(current ? [current] : [])];
      return [
        outbox.value,
        interruptible,
        current?.deliveryId,
        items.map(({ deliveryId, attempts, resting }) => [deliveryId, attempts, resting]),
      ];
    }),
    textOf(question, () => {
      const { playingSince, heard, shownAt, followedAt = null, readBack } = question.context;
      const said = [playingSince !== null, heard, followedAt !== null, readBack];
      return [question.value, shownAt !== null, ...said];
    }),
    ...results.map((id) => JSON.stringify(callOf(world, id).value)),
    `${lead.value}${said ? '' : '!'}`,
    textOf(world.ghost, () => world.ghost),
    ...lettersOf(world).map((letter) => letter.map(textOfMessage).join('&')),
    ...world.inFlight.map((message) => `${message.from}>${textOfMessage(message)}`),
  ];
  return parts.join('|');
}
