// Stores the items for the user, and decides when each one is spoken.
//
//   gate: closed ⇄ open            may an item be said now?
//   slot: empty ─▶ (dwelling) ─▶ offered ─▶ playing ─▶ empty …   the item that is being said
//
//   an item: pending ─▶ offered ─▶ playing ─▶ heard | shown | dismissed | dropped
//               ▲          └──────────┴── interrupted, failed, no audio, detached
//               └─────────────────────┘
//    told in full, without an acknowledgement: the item rests, and is not said again
//
// Owns:     the order of the items, the item that is being spoken, and the number of the attempt.
// Does not: store the text of items, speak, or decide when the gate opens.
//
// Invariants
//   OUTBOX-1. Only one item is spoken at a time, and only while the gate is open and after a pause: `quietMs` since the
//       gate opened and since the last attempt ended. An item that arrives after the pause is offered immediately, and
//       an urgent item skips the pause. After a question the pause is `answerMs`; it ends early if the user speaks or
//       the question is answered.
//   OUTBOX-2. An item counts as heard only if the current attempt (`generation`), or the attempt that spoke it in full,
//       reports this.
//   OUTBOX-3. An item leaves the outbox when it is heard, shown, dismissed, retracted, or dropped with a reason; no
//       other event removes it. Results and questions are never dropped.
//   OUTBOX-4. Urgent items precede high items, which precede normal items; within each class, the order is first come,
//       first served. An interrupted item returns to the front of its class.
//   OUTBOX-5. After `maxAttempts`, an item rests as a card on the screen until the user speaks or a client attaches.
//       This prevents endless attempts on a failing connection. If the user speaks while an item is offered but not yet
//       playing, that offer counts as the first attempt.
//   OUTBOX-6. The outbox contains at most `capacity` items and reserved results; a reserved result always fits.
//   OUTBOX-7. Only the latest progress item of each subagent waits.
//   OUTBOX-8. A silent item is not offered; it rests until it is shown or dismissed. An item with `skip_if_busy` is
//       silent if it cannot be spoken when it arrives. Otherwise, it is treated like any other item.
//   OUTBOX-9. An item that was spoken in full but not acknowledged frees the slot immediately. It rests as a card until
//       it is acknowledged. It is not offered again, and it does not count towards `capacity`. If there are more than
//       `capacity` such items, the earliest spoken one leaves the outbox with the grade `told`. A question that is
//       added again is offered again.
//   OUTBOX-10. A postponed item is treated like a silent one. If it is being spoken, the attempt is abandoned.
//       Questions cannot be postponed here, nor can an item that was spoken in full, because it is already resting.
//   OUTBOX-11. An offer states whether the user heard the beginning of the item in an earlier attempt. The item keeps
//       this information until the item leaves the outbox.
//   OUTBOX-12. An item that the lead agent has read is offered only if the reply does not report it.
//   OUTBOX-13. A claim to an item is granted only when the item is not being spoken. The item is not offered until the
//       claim is released.

import { and, assign, not, type SnapshotFrom } from 'xstate';
import { deadline, machineOptions, stopActivity } from './effect.ts';
import {
  byOf,
  grantable,
  hasRoom,
  isExpired,
  next,
  oldestTold,
  outboxSetup,
  replaces,
  type OutboxContext,
  type OutboxEvent,
} from './outbox-setup.ts';

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
type RestEvent = Extract<OutboxEvent, { type: 'outbox.rest' }>;

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

const restNow = [
  { type: 'rest', params: ({ event }: { event: RestEvent }) => event },
  {
    type: 'rested',
    params: ({ event }: { event: RestEvent }) => ({ deliveryId: event.deliveryId }),
  },
] as const;

/** Speaks one item at a time, while the gate is open and after a pause. */
const outboxSlot = outboxSetup.createStateConfig({
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
      entry: [
        'awaitQuiet',
        {
          type: 'startActivity',
          params: ({ context }) => deadline('deadline.quiet', context.dueAt),
        },
      ],
      exit: stopActivity('deadline'),
      always: [
        { guard: not(and(['gateIsOpen', 'hasNext'])), target: 'empty' },
        { guard: 'isUrgent', target: 'empty' },
        { guard: 'waitsForNoAnswer', target: 'empty' },
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
                ...(context.current?.begunIn !== undefined && {
                  begunIn: context.current.begunIn,
                }),
              }),
            },
            {
              type: 'startActivity',
              params: ({ context }) => deadline('deadline.offer', context.dueAt),
            },
          ],
          exit: stopActivity('deadline'),
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
            // The user spoke during the offer. A report that the item was not heard may still follow.
            'utterance.ended': { actions: ['wake', 'countAnew'] },
          },
        },
        playing: {
          entry: [
            { type: 'startPlayClock', params: ({ event }) => event },
            {
              type: 'begun',
              params: ({ context }) => ({ deliveryId: context.current?.deliveryId ?? '' }),
            },
            {
              type: 'startActivity',
              params: ({ context }) => deadline('deadline.play', context.dueAt),
            },
          ],
          exit: stopActivity('deadline'),
          on: {
            'delivery.interrupted': {
              guard: { type: 'isAttempt', params: ({ event }) => event },
              target: '#outbox.slot.returning',
              actions: { type: 'markInterrupted', params: ({ event }) => event },
            },
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
                ...(event.heardAt !== undefined && { heardAt: event.heardAt }),
              }),
            },
            'noteAsked',
            'clear',
          ],
        },
        'delivery.told': [
          // Later progress of the same subagent is waiting, so the outbox stops waiting for an acknowledgement of the
          // current item.
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
              'noteAsked',
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
        'outbox.rest': [
          // Later progress of the same subagent is waiting, so the current item is out of date.
          {
            guard: { type: 'isOutdoneItem', params: ({ event }) => event },
            target: 'empty',
            actions: [abandonCurrent, droppedCurrent, 'clear'],
          },
          {
            guard: { type: 'mayRestCurrent', params: ({ event }) => event },
            target: 'empty',
            actions: [abandonCurrent, ...restNow],
          },
        ],
        // The audio continues, although the user has already received the item.
        'delivery.shown': {
          guard: { type: 'isCurrent', params: ({ event }) => event },
          target: 'empty',
          actions: [
            'clear',
            {
              type: 'delivered',
              params: ({ event }) => ({
                deliveryId: event.deliveryId,
                grade: event.grade ?? 'shown',
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
        // Later progress of the same subagent is waiting, so the current item is out of date.
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

const interruptForNext = {
  type: 'interrupt',
  params: ({ context }: { context: OutboxContext }) => ({
    deliveryId: next(context)?.deliveryId ?? '',
  }),
} as const;

/** Stores the items for the user, offers each one while the gate is open, and keeps it until the user has heard it. */
export const outboxMachine = outboxSetup.createMachine({
  id: 'outbox',
  context: ({ input }) => ({
    capacity: input?.capacity ?? 0,
    quietMs: input?.quietMs ?? 0,
    answerMs: input?.answerMs ?? 0,
    offerTimeoutMs: input?.offerTimeoutMs ?? 0,
    playTimeoutMs: input?.playTimeoutMs ?? 0,
    maxAttempts: input?.maxAttempts ?? 1,
    pending: [],
    current: null,
    generation: 0,
    reserved: 0,
    quietSince: 0,
    asked: null,
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
      {
        guard: { type: 'isToldQuestion', params: ({ event }) => event },
        actions: { type: 'addAgain', params: ({ event }) => event },
      },
      // The outbox already has the item, because its message arrived twice.
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
        guard: { type: 'isSilent', params: ({ event }) => event },
        actions: [
          { type: 'addSilent', params: ({ event }) => event },
          { type: 'rested', params: ({ event }) => ({ deliveryId: event.item.deliveryId }) },
        ],
      },
      {
        guard: and([({ event }) => event.item.rests === 'if_busy', 'isBusy']),
        actions: [
          { type: 'addSilent', params: ({ event }) => event },
          { type: 'rested', params: ({ event }) => ({ deliveryId: event.item.deliveryId }) },
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
    // The client that received the item in that attempt has acknowledged it.
    'delivery.heard': {
      guard: { type: 'isToldAttempt', params: ({ event }) => event },
      actions: [
        {
          type: 'delivered',
          params: ({ context, event }) => ({
            deliveryId:
              context.pending.find(({ toldIn }) => toldIn === event.generation)?.deliveryId ?? '',
            grade: event.grade,
          }),
        },
        { type: 'removeTold', params: ({ event }) => event },
      ],
    },
    'outbox.claim': [
      { guard: { type: 'isClaimed', params: ({ event }) => event } },
      { actions: { type: 'claim', params: ({ event }) => event } },
    ],
    'outbox.unclaim': {
      guard: { type: 'isClaimed', params: ({ event }) => event },
      actions: { type: 'unclaim', params: ({ event }) => event },
    },
    'client.attached': { actions: 'wake' },
    'utterance.ended': { actions: 'wake' },
    'outbox.retract': {
      guard: { type: 'isPendingOrAsked', params: ({ event }) => event },
      actions: { type: 'remove', params: ({ event }) => event },
    },
    'outbox.rest': {
      guard: { type: 'mayRestPending', params: ({ event }) => event },
      actions: restNow,
    },
    'outbox.outdate': {
      guard: { type: 'isPendingNews', params: ({ event }) => event },
      actions: [
        { type: 'remove', params: ({ event }) => event },
        {
          type: 'dropped',
          params: ({ event }) => ({ deliveryIds: [event.deliveryId], reason: 'replaced' }),
        },
      ],
    },
    'delivery.read': {
      guard: { type: 'isPending', params: ({ event }) => event },
      actions: { type: 'markRead', params: ({ event }) => ({ ...event, read: true }) },
    },
    'delivery.unread': {
      guard: { type: 'isPending', params: ({ event }) => event },
      actions: { type: 'markRead', params: ({ event }) => ({ ...event, read: false }) },
    },
    'delivery.shown': {
      guard: { type: 'isPending', params: ({ event }) => event },
      actions: [
        { type: 'remove', params: ({ event }) => event },
        {
          type: 'delivered',
          params: ({ event }) => ({
            deliveryId: event.deliveryId,
            grade: event.grade ?? 'shown',
            ...byOf(event),
          }),
        },
      ],
    },
    'delivery.dismissed': {
      guard: { type: 'isPending', params: ({ event }) => event },
      actions: [
        { type: 'remove', params: ({ event }) => event },
        {
          type: 'dismissed',
          params: ({ event }) => ({ deliveryId: event.deliveryId, ...byOf(event) }),
        },
      ],
    },
  },
  always: [
    {
      guard: 'hasTooManyTold',
      actions: [
        {
          type: 'delivered',
          params: ({ context }) => ({
            deliveryId: oldestTold(context)?.deliveryId ?? '',
            grade: 'told',
          }),
        },
        'removeOldestTold',
      ],
    },
    {
      guard: 'isGrantable',
      actions: [
        {
          type: 'claimed',
          params: ({ context }) => ({ deliveryId: grantable(context)?.deliveryId ?? '' }),
        },
        'grant',
      ],
    },
  ],
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
          entry: [
            { type: 'keepInterruptible', params: { interruptible: false } },
            { type: 'beginQuiet', params: ({ event }) => event },
          ],
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
            // No client is attached, so an urgent item cannot be heard, whatever the session reports next.
            'client.detached': 'closed',
          },
        },
      },
    },
    slot: outboxSlot,
  },
});

/** A snapshot of `outboxMachine`. */
export type OutboxSnapshot = SnapshotFrom<typeof outboxMachine>;
