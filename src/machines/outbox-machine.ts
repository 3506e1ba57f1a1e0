// What wants to be said to the user, and when it is said.
//
//   gate: closed ⇄ open            may something be said now?
//   slot: empty ─▶ dwelling ─▶ offered ─▶ playing ─▶ empty …     what is being said
//
//   an item: pending ─▶ offered ─▶ playing ─▶ heard | shown | dismissed | dropped
//               ▲          └──────────┴── interrupted, failed, no audio, detached
//               └─────────────────────┘
//
// Owns:     the order of the items, which one is being said, and the number of the attempt.
// Does not: hold what is said, speak, or decide when the gate opens.
//
// Invariants
//   O1. One item at a time, and only from an open gate that stayed open for `quietMs`;
//       what is urgent does not wait for the pause.
//   O2. What ends as heard was offered, in this very attempt (`generation`).
//   O3. An item leaves by being heard, shown, dismissed, retracted, or dropped with a reason;
//       nothing else loses it. Results and questions are never dropped.
//   O4. Urgent before high before normal; first come, first served within each. An item
//       that was interrupted goes back to the front of its own class.
//   O5. After `maxAttempts` it rests as a card on the screen until the user speaks or
//       somebody attaches, so that a wire that always fails is not tried for ever.
//   O6. At most `capacity` items and reservations of results; a reserved result always fits.
//   O7. Of each subagent only the latest progress waits.

import { and, assign, not, setup, stateIn, type SnapshotFrom } from 'xstate';
import { activity, effect, machineOptions, type DeadlineInput, type Stamped } from './effect.ts';
import type { OutboxEvent, OutboxInput } from './outbox-events.ts';
import {
  hasRoom,
  insert,
  isExpired,
  isUrgent,
  keeps,
  next,
  replaces,
  type DropReason,
  type HearingGrade,
  type OutboxItem,
  type Waiting,
} from './outbox-queue.ts';

interface OutboxContext extends OutboxInput {
  readonly pending: readonly Waiting[];
  readonly current: Waiting | null;
  /** Numbers the attempts. */
  readonly generation: number;
  readonly reserved: number;
  readonly dueAt: number;
  /** The transport can stop what it says: urgent items may interrupt. */
  readonly interruptible: boolean;
}

const attemptOf = ({ context }: { context: OutboxContext }) => ({
  deliveryId: context.current?.deliveryId ?? '',
  generation: context.generation,
  attempts: context.current?.attempts ?? 0,
});

const abandonCurrent = { type: 'abandon', params: attemptOf } as const;

const interruptForNext = {
  type: 'interrupt',
  params: ({ context }: { context: OutboxContext }) => ({
    deliveryId: next(context)?.deliveryId ?? '',
  }),
} as const;

type Args = { context: OutboxContext; event: OutboxEvent };

const dropExpired = [
  {
    type: 'dropped',
    params: ({ context, event }: Args) => ({
      deliveryIds: context.pending
        .filter((item) => isExpired(item, event.at))
        .map((item) => item.deliveryId),
      reason: 'expired' as const,
    }),
  },
  { type: 'removeExpired', params: ({ event }: Args) => event },
] as const;

export const outboxMachine = setup({
  types: {
    input: {} as OutboxInput,
    context: {} as OutboxContext,
    events: {} as OutboxEvent,
  },
  actors: { deadline: activity<DeadlineInput>('deadline') },
  actions: {
    /** Say it now. One of the `delivery.*` events comes back with this generation. */
    offer: effect<{
      readonly deliveryId: string;
      readonly generation: number;
      readonly attempt: number;
    }>(),
    /** The user begins to hear it. */
    begun: effect<{ readonly deliveryId: string }>(),
    /** Stop what is being said: something urgent waits. */
    interrupt: effect<{ readonly deliveryId: string }>(),
    /** The attempt under way is off: its item was answered, shown or withdrawn meanwhile. */
    abandon: effect<{ readonly deliveryId: string; readonly generation: number }>(),
    /** It reached the user. */
    delivered: effect<{ readonly deliveryId: string; readonly grade: HearingGrade }>(),
    /** The user waved it away. */
    dismissed: effect<{ readonly deliveryId: string }>(),
    /** These will not be said, and why. */
    dropped: effect<{ readonly deliveryIds: readonly string[]; readonly reason: DropReason }>(),
    /** It could not be said `attempts` times; show it as a card. */
    card: effect<{ readonly deliveryId: string; readonly attempts: number }>(),
    /** It was not heard and waits again. */
    returned: effect<{ readonly deliveryId: string; readonly attempts: number }>(),
    startQuiet: assign(({ context }, { at }: Stamped) => ({ dueAt: at + context.quietMs })),
    take: assign(({ context }, { at }: Stamped) => {
      const item = next(context) ?? null;
      return {
        current: item && { ...item, attempts: item.attempts + 1 },
        pending: context.pending.filter((other) => other !== item),
        generation: context.generation + 1,
        dueAt: at + context.offerTimeoutMs,
      };
    }),
    startPlayClock: assign(({ context }, { at }: Stamped) => ({
      dueAt: at + context.playTimeoutMs,
    })),
    returnToQueue: assign(({ context }) => {
      const item = context.current;
      if (item === null) return {};
      const resting = item.attempts >= context.maxAttempts;
      return { current: null, pending: insert(context.pending, { ...item, resting }, 'front') };
    }),
    /** Nobody could have heard this attempt: that is not the wire's fault. */
    forgiveAttempt: assign(({ context }) => ({
      current: context.current && { ...context.current, attempts: context.current.attempts - 1 },
    })),
    remove: assign(({ context }, { deliveryId }: { deliveryId: string }) => ({
      pending: context.pending.filter((item) => item.deliveryId !== deliveryId),
    })),
    removeExpired: assign(({ context }, { at }: Stamped) => ({
      pending: context.pending.filter((item) => !isExpired(item, at)),
    })),
    add: assign(({ context }, { item }: { item: OutboxItem }) => ({
      reserved: item.reserved ? Math.max(0, context.reserved - 1) : context.reserved,
      pending: insert(
        context.pending.filter((other) => !replaces(item, other)),
        { ...item, attempts: 0, resting: false },
        'back',
      ),
    })),
    keepInterruptible: assign((_, { interruptible }: { interruptible: boolean }) => ({
      interruptible,
    })),
    clear: assign({ current: null }),
    wake: assign(({ context }) => ({
      pending: context.pending.map((item) =>
        item.resting ? { ...item, resting: false, attempts: 0 } : item,
      ),
    })),
  },
  guards: {
    gateIsOpen: stateIn({ gate: 'open' }),
    hasNext: ({ context }) => next(context) !== undefined,
    isUrgent: ({ context }) => isUrgent(next(context)),
    nextIsExpired: ({ context, event }) => {
      const item = next(context);
      return item !== undefined && isExpired(item, event.at);
    },
    isOutdone: ({ context: { current, pending } }) =>
      current !== null && pending.some((other) => replaces(current, other)),
    isExhausted: ({ context }) =>
      context.current !== null && context.current.attempts >= context.maxAttempts,
    replacesOther: ({ context }, { item }: { item: OutboxItem }) =>
      context.pending.some((other) => replaces(item, other)),
    interruptsNow: ({ context }, { item }: { item: OutboxItem }) =>
      item.priority === 'urgent' && context.interruptible && !isUrgent(context.current),
    urgentMayInterrupt: ({ context }, { interruptible }: { interruptible: boolean }) =>
      interruptible && isUrgent(next(context)) && !isUrgent(context.current),
    isAttempt: ({ context }, { generation }: { generation: number }) =>
      generation === context.generation,
    isThisDeadline: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.dueAt,
    isCurrent: ({ context }, { deliveryId }: { deliveryId: string }) =>
      context.current?.deliveryId === deliveryId,
    isPending: ({ context }, { deliveryId }: { deliveryId: string }) =>
      context.pending.some((item) => item.deliveryId === deliveryId),
    isKnown: ({ context }, { item }: { item: OutboxItem }) =>
      context.current?.deliveryId === item.deliveryId ||
      context.pending.some((other) => other.deliveryId === item.deliveryId),
    doesNotFit: ({ context }, { item }: { item: OutboxItem }) =>
      !item.reserved &&
      !keeps(item) &&
      !context.pending.some((other) => replaces(item, other)) &&
      !hasRoom(context),
  },
}).createMachine({
  id: 'outbox',
  context: ({ input }) => ({
    capacity: input?.capacity ?? 0,
    quietMs: input?.quietMs ?? 0,
    offerTimeoutMs: input?.offerTimeoutMs ?? 0,
    playTimeoutMs: input?.playTimeoutMs ?? 0,
    maxAttempts: input?.maxAttempts ?? 1,
    pending: [],
    current: null,
    generation: 0,
    reserved: 0,
    dueAt: 0,
    interruptible: false,
  }),
  type: 'parallel',
  options: machineOptions,
  on: {
    'outbox.reserve': {
      guard: ({ context }) => hasRoom(context),
      actions: assign({ reserved: ({ context }) => context.reserved + 1 }),
    },
    'outbox.unreserve': {
      guard: ({ context }) => context.reserved > 0,
      actions: assign({ reserved: ({ context }) => context.reserved - 1 }),
    },
    'outbox.add': [
      // Known already: a message that arrived twice.
      { guard: { type: 'isKnown', params: ({ event }) => event } },
      {
        guard: { type: 'doesNotFit', params: ({ event }) => event },
        actions: {
          type: 'dropped',
          params: ({ event }) => ({ deliveryIds: [event.item.deliveryId], reason: 'full' }),
        },
      },
      {
        guard: { type: 'replacesOther', params: ({ event }) => event },
        actions: [
          {
            type: 'dropped',
            params: ({ context, event }) => ({
              deliveryIds: context.pending
                .filter((other) => replaces(event.item, other))
                .map((other) => other.deliveryId),
              reason: 'replaced',
            }),
          },
          { type: 'add', params: ({ event }) => event },
        ],
      },
      {
        guard: { type: 'interruptsNow', params: ({ event }) => event },
        actions: [
          { type: 'add', params: ({ event }) => event },
          { type: 'interrupt', params: ({ event }) => event.item },
        ],
      },
      { actions: { type: 'add', params: ({ event }) => event } },
    ],
    'client.attached': { actions: 'wake' },
    'utterance.ended': { actions: 'wake' },
    'outbox.retract': {
      guard: { type: 'isPending', params: ({ event }) => event },
      actions: { type: 'remove', params: ({ event }) => event },
    },
    'delivery.shown': {
      guard: { type: 'isPending', params: ({ event }) => event },
      actions: [
        { type: 'remove', params: ({ event }) => event },
        {
          type: 'delivered',
          params: ({ event }) => ({ deliveryId: event.deliveryId, grade: 'shown' }),
        },
      ],
    },
    'delivery.dismissed': {
      guard: { type: 'isPending', params: ({ event }) => event },
      actions: [
        { type: 'remove', params: ({ event }) => event },
        { type: 'dismissed', params: ({ event }) => ({ deliveryId: event.deliveryId }) },
      ],
    },
  },
  states: {
    gate: {
      initial: 'closed',
      states: {
        closed: {
          on: {
            'gate.opened': 'open',
            'gate.closed': [
              {
                guard: { type: 'urgentMayInterrupt', params: ({ event }) => event },
                actions: [
                  { type: 'keepInterruptible', params: ({ event }) => event },
                  interruptForNext,
                ],
              },
              { actions: { type: 'keepInterruptible', params: ({ event }) => event } },
            ],
          },
        },
        open: {
          entry: { type: 'keepInterruptible', params: { interruptible: false } },
          on: {
            'gate.closed': [
              {
                guard: { type: 'urgentMayInterrupt', params: ({ event }) => event },
                target: 'closed',
                actions: [
                  { type: 'keepInterruptible', params: ({ event }) => event },
                  interruptForNext,
                ],
              },
              {
                target: 'closed',
                actions: { type: 'keepInterruptible', params: ({ event }) => event },
              },
            ],
            // Nobody is there to hear what is urgent, whatever the session says next.
            'client.detached': 'closed',
          },
        },
      },
    },
    slot: {
      initial: 'empty',
      states: {
        empty: {
          always: { guard: and(['gateIsOpen', 'hasNext']), target: 'dwelling' },
        },
        dwelling: {
          entry: { type: 'startQuiet', params: ({ event }) => event },
          invoke: {
            id: 'deadline',
            src: 'deadline',
            input: ({ context }) => ({ dueAt: context.dueAt, event: 'deadline.quiet' }),
          },
          // What is urgent does not wait for a pause to settle.
          always: [
            { guard: not(and(['gateIsOpen', 'hasNext'])), target: 'empty' },
            {
              guard: and(['isUrgent', 'nextIsExpired']),
              target: 'empty',
              actions: dropExpired,
            },
            { guard: 'isUrgent', target: 'speaking' },
          ],
          on: {
            'deadline.quiet': [
              {
                guard: ({ context, event }) =>
                  event.dueAt === context.dueAt &&
                  context.pending.some((item) => isExpired(item, event.at)),
                target: 'choosing',
                actions: dropExpired,
              },
              {
                guard: { type: 'isThisDeadline', params: ({ event }) => event },
                target: 'choosing',
              },
            ],
          },
        },
        choosing: {
          always: [{ guard: 'hasNext', target: 'speaking' }, { target: 'empty' }],
        },
        speaking: {
          initial: 'offered',
          states: {
            offered: {
              entry: [
                { type: 'take', params: ({ event }) => event },
                {
                  type: 'offer',
                  params: ({ context }) => ({
                    deliveryId: context.current?.deliveryId ?? '',
                    generation: context.generation,
                    attempt: context.current?.attempts ?? 0,
                  }),
                },
              ],
              invoke: {
                id: 'deadline',
                src: 'deadline',
                input: ({ context }) => ({ dueAt: context.dueAt, event: 'deadline.offer' }),
              },
              on: {
                'delivery.playing': {
                  guard: { type: 'isAttempt', params: ({ event }) => event },
                  target: 'playing',
                },
                'deadline.offer': {
                  guard: { type: 'isThisDeadline', params: ({ event }) => event },
                  target: '#outbox.slot.returning',
                  actions: abandonCurrent,
                },
              },
            },
            playing: {
              entry: [
                { type: 'startPlayClock', params: ({ event }) => event },
                {
                  type: 'begun',
                  params: ({ context }) => ({ deliveryId: context.current?.deliveryId ?? '' }),
                },
              ],
              invoke: {
                id: 'deadline',
                src: 'deadline',
                input: ({ context }) => ({ dueAt: context.dueAt, event: 'deadline.play' }),
              },
              on: {
                'deadline.play': {
                  guard: { type: 'isThisDeadline', params: ({ event }) => event },
                  target: '#outbox.slot.returning',
                  actions: abandonCurrent,
                },
              },
            },
          },
          on: {
            'delivery.heard': {
              guard: { type: 'isAttempt', params: ({ event }) => event },
              target: 'empty',
              actions: [
                {
                  type: 'delivered',
                  params: ({ context, event }) => ({
                    deliveryId: context.current?.deliveryId ?? '',
                    grade: event.grade,
                  }),
                },
                'clear',
              ],
            },
            'delivery.interrupted': {
              guard: { type: 'isAttempt', params: ({ event }) => event },
              target: 'returning',
            },
            'delivery.failed': {
              guard: { type: 'isAttempt', params: ({ event }) => event },
              target: 'returning',
            },
            'client.detached': {
              target: 'returning',
              actions: [abandonCurrent, 'forgiveAttempt'],
            },
            'outbox.retract': {
              guard: { type: 'isCurrent', params: ({ event }) => event },
              target: 'empty',
              actions: [abandonCurrent, 'clear'],
            },
            // It goes on being said, but need not be: it has reached the user.
            'delivery.shown': {
              guard: { type: 'isCurrent', params: ({ event }) => event },
              target: 'empty',
              actions: [
                'clear',
                {
                  type: 'delivered',
                  params: ({ event }) => ({ deliveryId: event.deliveryId, grade: 'shown' }),
                },
              ],
            },
            'delivery.dismissed': {
              guard: { type: 'isCurrent', params: ({ event }) => event },
              target: 'empty',
              actions: [
                abandonCurrent,
                'clear',
                { type: 'dismissed', params: ({ event }) => ({ deliveryId: event.deliveryId }) },
              ],
            },
          },
        },
        returning: {
          always: [
            // A later word of the same subagent waits: this one is old news.
            {
              guard: 'isOutdone',
              target: 'empty',
              actions: [
                {
                  type: 'dropped',
                  params: ({ context }) => ({
                    deliveryIds: [context.current?.deliveryId ?? ''],
                    reason: 'replaced',
                  }),
                },
                'clear',
              ],
            },
            {
              guard: 'isExhausted',
              target: 'empty',
              actions: [{ type: 'card', params: attemptOf }, 'returnToQueue'],
            },
            {
              target: 'empty',
              actions: [{ type: 'returned', params: attemptOf }, 'returnToQueue'],
            },
          ],
        },
      },
    },
  },
});

export type OutboxSnapshot = SnapshotFrom<typeof outboxMachine>;
