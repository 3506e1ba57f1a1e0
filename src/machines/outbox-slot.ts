// The slot of the outbox: says one item at a time, from an open gate after a pause.
//
//   empty ──────────────▶ speaking: offered ─▶ playing ─▶ empty
//    ▲  │ ▲                             └── returning ◀──┘   not heard: it waits again; told: it rests
//    ▲  │ ▲                             └── returning ◀──┘   not heard: waits again; told: rests
//    └─────────────────────────────────────────────┘
//
// Owns:     the attempt under way, and its clocks.
// Does not: add items, or remove waiting ones (outbox-machine).

import { and, not } from 'xstate';
import { isExpired } from './outbox-queue.ts';
import { outboxSetup, type OutboxContext } from './outbox-setup.ts';
import { byOf, type OutboxEvent } from './outbox-events.ts';

const attemptOf = ({ context }: { context: OutboxContext }) => ({
  deliveryId: context.current?.deliveryId ?? '',
  generation: context.generation,
  attempts: context.current?.attempts ?? 0,
});

const abandonCurrent = { type: 'abandon', params: attemptOf } as const;

const droppedCurrent = {
  type: 'dropped',
  params: ({ context }: { context: OutboxContext }) => ({
    deliveryIds: [context.current?.deliveryId ?? ''],
    reason: 'replaced' as const,
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

export const outboxSlot = outboxSetup.createStateConfig({
  initial: 'empty',
  states: {
    empty: {
      always: [
        { guard: and(['gateIsOpen', 'isDue', 'isAnyExpired']), actions: dropExpired },
        { guard: and(['gateIsOpen', 'isDue']), target: 'speaking' },
        { guard: and(['gateIsOpen', 'hasNext']), target: 'dwelling' },
      ],
    },
    dwelling: {
      entry: 'awaitQuiet',
      invoke: {
        id: 'deadline',
        src: 'deadline',
        input: ({ context }) => ({ dueAt: context.dueAt, event: 'deadline.quiet' }),
      },
      always: [
        { guard: not(and(['gateIsOpen', 'hasNext'])), target: 'empty' },
        { guard: 'isUrgent', target: 'empty' },
      ],
      on: {
        'deadline.quiet': {
          guard: { type: 'isThisDeadline', params: ({ event }) => event },
          target: 'empty',
        },
      },
    },
    speaking: {
      initial: 'offered',
      exit: { type: 'beginQuiet', params: ({ event }) => event },
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
        'delivery.told': [
          // Later progress of the same subagent waits: this item needs no acknowledgement any more.
          {
            guard: { type: 'isOutdoneAttempt', params: ({ event }) => event },
            target: 'empty',
            actions: [droppedCurrent, 'clear'],
          },
          {
            guard: { type: 'isAttempt', params: ({ event }) => event },
            target: 'empty',
            actions: [
              {
                type: 'told',
                params: ({ context }) => ({
                  deliveryId: context.current?.deliveryId ?? '',
                  generation: context.generation,
                }),
              },
              'keepTold',
            ],
          },
        ],
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
        // The audio continues, but is no longer needed: the item has reached the user.
        'delivery.shown': {
          guard: { type: 'isCurrent', params: ({ event }) => event },
          target: 'empty',
          actions: [
            'clear',
            {
              type: 'delivered',
              params: ({ event }) => ({
                deliveryId: event.deliveryId,
                grade: 'shown',
                ...byOf(event),
              }),
            },
          ],
        },
        'delivery.dismissed': {
          guard: { type: 'isCurrent', params: ({ event }) => event },
          target: 'empty',
          actions: [
            abandonCurrent,
            'clear',
            {
              type: 'dismissed',
              params: ({ event }) => ({ deliveryId: event.deliveryId, ...byOf(event) }),
            },
          ],
        },
      },
    },
    returning: {
      always: [
        // Later progress of the same subagent waits: this item is out of date.
        {
          guard: 'isOutdone',
          target: 'empty',
          actions: [droppedCurrent, 'clear'],
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
});
