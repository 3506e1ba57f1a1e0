// The items that are to be said to the user, and the moment at which each is said.
//
//   gate: closed ⇄ open            may an item be said now?
//   slot: empty ─▶ (dwelling) ─▶ offered ─▶ playing ─▶ empty …   the item that is being said
//
//   an item: pending ─▶ offered ─▶ playing ─▶ heard | shown | dismissed | dropped
//               ▲          └──────────┴── interrupted, failed, no audio, detached
//               └─────────────────────┘
//      told, and not acknowledged: the item rests, and is not said again
//
// Owns:     the order of the items, the item that is being said, and the number of the attempt.
// Does not: hold the text of items, speak, or decide when the gate opens.
//
// Invariants
//   OUTBOX-1. One item at a time, and only from an open gate after a pause: `quietMs` since the gate opened
//       and since the last attempt ended. An item that comes later than that is offered at once; an urgent
//       item does not wait for the pause.
//   OUTBOX-2. An item that ends as heard was offered in this very attempt (`generation`), or in the one that
//       told it in full.
//   OUTBOX-3. An item leaves by being heard, shown, dismissed, retracted, or dropped with a reason; no other
//       event removes it. Results and questions are never dropped.
//   OUTBOX-4. Urgent before high before normal; first come, first served within each. An item
//       that was interrupted goes back to the front of its own class.
//   OUTBOX-5. After `maxAttempts` an item rests as a card on the screen until the user speaks or a client
//       attaches, so that a wire that always fails is not tried for ever.
//   OUTBOX-6. At most `capacity` items and reservations of results; a reserved result always fits.
//   OUTBOX-7. Of each subagent only the latest progress waits.
//   OUTBOX-8. A silent item is never offered: it rests until it was shown or dismissed. An item with
//       `skip_if_busy` is silent if it comes while it cannot be said; else it is like any other.
//   OUTBOX-9. An item that was told in full and not acknowledged leaves the slot at once and rests as a card
//       until it is acknowledged: nothing wakes it, and it holds no room. Of more than `capacity` such items
//       the one that was told first ends with the grade `told`. A question that is added again is put again.
import { and, assign, type SnapshotFrom } from 'xstate';
import { machineOptions } from './effect.ts';
import { byOf } from './outbox-events.ts';
import { hasRoom, next, replaces } from './outbox-queue.ts';
import { oldestTold, outboxSetup, type OutboxContext } from './outbox-setup.ts';
import { outboxSlot } from './outbox-slot.ts';

const interruptForNext = {
  type: 'interrupt',
  params: ({ context }: { context: OutboxContext }) => ({
    deliveryId: next(context)?.deliveryId ?? '',
  }),
} as const;

export const outboxMachine = outboxSetup.createMachine({
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
    quietSince: 0,
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
    // The client that received the item in that attempt acknowledges it now.
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
    'client.attached': { actions: 'wake' },
    'utterance.ended': { actions: 'wake' },
    'outbox.retract': {
      guard: { type: 'isPending', params: ({ event }) => event },
      actions: { type: 'remove', params: ({ event }) => event },
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
    'delivery.shown': {
      guard: { type: 'isPending', params: ({ event }) => event },
      actions: [
        { type: 'remove', params: ({ event }) => event },
        {
          type: 'delivered',
          params: ({ event }) => ({ deliveryId: event.deliveryId, grade: 'shown', ...byOf(event) }),
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
  always: {
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
            // Without a client no urgent item can be heard, whatever the session reports next.
            'client.detached': 'closed',
          },
        },
      },
    },
    slot: outboxSlot,
  },
});

export type OutboxSnapshot = SnapshotFrom<typeof outboxMachine>;
