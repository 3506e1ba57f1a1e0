// The batch of one request. It contains the background calls that the lead agent makes and the subagents that it spawns
// with a tool. The outbox delivers their results together, in one reply. This file uses "call" for both.
//
//   gathering: idle ⇄ holding ─▶ (closing) ─┬─▶ telling ─▶ trailing ─▶ over
//                                           └─ one only ────▲
//
//   idle: no call has ended    closing: late calls were told to stop
//   holding: results wait      trailing: each late result is reported by itself
//
// Owns:     which results are reported together, and how long a result waits for its siblings.
// Does not: store the results' text, speak (the outbox does) or run anything.
//
// Invariants
//   BATCH-1. Each result is reported at most once, either together with the others or on its own. A result is not
//        reported if the user has already seen or dismissed it. A call that has left the batch without a result is not
//        reported.
//   BATCH-2. A result waits only while another call is working or the lead agent may still make calls, and never longer
//        than `ceilingMs` after the first result.
//   BATCH-3. A call that is waiting for the user does not delay any result, because the wait may be of any length. The
//        same applies to a call that sleeps until a certain time, and to a call that the lead agent is waiting for.
//   BATCH-4. A single result is passed on unchanged.
//   BATCH-5. A batch is reported together only once; each later result is passed on separately. No result is discarded
//       at the ceiling.
//   BATCH-6. Each result keeps its reserved place in the outbox until it has been reported or seen.
//   BATCH-7. The batch is over when no call is working and every result has been reported.

import { and, assign, not, setup, type SnapshotFrom } from 'xstate';
import {
  activities,
  deadline,
  effect,
  machineOptions,
  stopActivity,
  type Deadline,
  type EffectsOf,
  type Stamped,
} from './effect.ts';
import { byOf, type HearingGrade } from './outbox-setup.ts';

/**
 * How the calls that are still working at the ceiling are treated: `deliver` reports their results later, `cancel`
 * stops them.
 */
export type AtCeiling = 'deliver' | 'cancel';

/** A batch: the background calls of one request, whose results are reported in one reply. */
export interface BatchInput {
  /** The id of the batch, and of its delivery. */
  readonly batchId: string;
  /** The maximum time that a result waits for its siblings, in milliseconds. */
  readonly ceilingMs: number;
  /** How the calls that are still working after `ceilingMs` are treated. */
  readonly atCeiling: AtCeiling;
  /** The maximum time that calls may take to stop after a `stop` effect, in milliseconds. */
  readonly graceMs: number;
}

interface BatchContext extends BatchInput {
  /** The lead agent is answering the request and may make more calls. */
  readonly isReplying: boolean;
  /** Calls without a result. */
  readonly working: readonly string[];
  /** The calls that wait for the user. */
  readonly asking: readonly string[];
  /** Results that will be reported together, in order of arrival. */
  readonly parts: readonly string[];
  /** The time at which the ceiling or the grace period ends, in milliseconds since 1970; 0 before the first result. */
  readonly dueAt: number;
}

type BatchFact =
  | { readonly type: 'batch.joined'; readonly callId: string }
  /** The call has ended without a result. */
  | { readonly type: 'batch.left'; readonly callId: string }
  | { readonly type: 'batch.settled'; readonly callId: string }
  | { readonly type: 'batch.asking'; readonly callId: string }
  | { readonly type: 'batch.resumed'; readonly callId: string }
  /** The lead agent has answered the request, so no more calls follow. */
  | { readonly type: 'batch.replied' }
  /** The joint delivery has reached the user. */
  | { readonly type: 'batch.told'; readonly grade: HearingGrade }
  /** One of the results was shown as a card. */
  | { readonly type: 'delivery.shown'; readonly deliveryId: string; readonly by?: string }
  | { readonly type: 'delivery.dismissed'; readonly deliveryId: string; readonly by?: string }
  /** The lead agent has read one of the results with a tool. */
  | { readonly type: 'delivery.read'; readonly deliveryId: string }
  | { readonly type: 'deadline.ceiling'; readonly dueAt: number }
  | { readonly type: 'deadline.grace'; readonly dueAt: number };

/** The events of `batchMachine`. */
export type BatchEvent = BatchFact & Stamped;

interface OfCall {
  readonly event: { readonly callId: string };
}
interface OfDelivery {
  readonly event: { readonly deliveryId: string; readonly by?: string };
}

const works = { type: 'works', params: ({ event }: OfCall) => event } as const;
const leave = { type: 'leave', params: ({ event }: OfCall) => event } as const;
const keep = { type: 'keep', params: ({ event }: OfCall) => event } as const;

const shown = {
  type: 'delivered',
  params: ({ event }: OfDelivery) => ({
    deliveryIds: [event.deliveryId],
    grade: 'shown' as const,
    ...byOf(event),
  }),
} as const;

const dismissed = {
  type: 'dismissed',
  params: ({ event }: OfDelivery) => ({ deliveryIds: [event.deliveryId], ...byOf(event) }),
} as const;

/** `reserved`: the result uses the place that was reserved for it. */
const passRead = (reserved: boolean) =>
  ({
    type: 'passRead',
    params: ({ event }: OfDelivery) => ({ callId: event.deliveryId, reserved }),
  }) as const;

const removed = {
  type: 'remove',
  params: ({ event }: OfDelivery) => event,
} as const;

const retract = {
  type: 'retract',
  params: ({ context }: { context: BatchContext }) => ({ batchId: context.batchId }),
} as const;

/** Returns whether a call is working and is not waiting for the user; only such calls delay other results. */
const someAreLate = ({ working, asking }: BatchContext): boolean => working.length > asking.length;

const lateOf = ({ working, asking }: BatchContext): readonly string[] => {
  const waiting = new Set(asking);
  return working.filter((id) => !waiting.has(id));
};

const effects = {
  /** Reports the parts together, as one item of the outbox. */
  tell: effect<{ readonly batchId: string }>(),
  /** Reports this result on its own. */
  pass: effect<{ readonly callId: string }>(),
  /** Delivers a result that the lead agent has read and may mention in its reply. */
  passRead: effect<{ readonly callId: string; readonly reserved: boolean }>(),
  /** Retracts the item, because no result is left to report. */
  retract: effect<{ readonly batchId: string }>(),
  /** Releases reserved places in the outbox that are no longer needed. */
  free: effect<{ readonly places: number }>(),
  /** The user has received these results. */
  delivered: effect<{
    readonly deliveryIds: readonly string[];
    readonly grade: HearingGrade;
    readonly by?: string;
  }>(),
  /** The user has dismissed these results. */
  dismissed: effect<{ readonly deliveryIds: readonly string[]; readonly by?: string }>(),
  /** Stops calls whose time is up. `batch.settled` or `batch.left` follows for each call. */
  stop: effect<{ readonly callIds: readonly string[] }>(),
  /** The batch is over. */
  ended: effect<{ readonly batchId: string }>(),
};

export type BatchEffects = EffectsOf<typeof effects>;

/** Collects the results of one request's calls and passes them on as one item. The output is the id of the batch. */
export const batchMachine = setup({
  types: {
    input: {} as BatchInput,
    context: {} as BatchContext,
    events: {} as BatchEvent,
    output: {} as { readonly batchId: string },
  },
  actions: {
    ...activities<Deadline>(),
    ...effects,
    join: assign(({ context }, { callId }: { callId: string }) => ({
      working: [...context.working, callId],
    })),
    leave: assign(({ context }, { callId }: { callId: string }) => ({
      working: context.working.filter((id) => id !== callId),
      asking: context.asking.filter((id) => id !== callId),
    })),
    keep: assign(({ context }, { callId }: { callId: string }) => ({
      parts: [...context.parts, callId],
    })),
    markAsking: assign(({ context }, { callId }: { callId: string }) => ({
      asking: [...context.asking, callId],
    })),
    markResumed: assign(({ context }, { callId }: { callId: string }) => ({
      asking: context.asking.filter((id) => id !== callId),
    })),
    remove: assign(({ context }, { deliveryId }: { deliveryId: string }) => ({
      parts: context.parts.filter((id) => id !== deliveryId),
    })),
    clear: assign({ parts: [] }),
    startCeiling: assign(({ context }, { at }: Stamped) => ({ dueAt: at + context.ceilingMs })),
    startGrace: assign(({ context }, { at }: Stamped) => ({ dueAt: at + context.graceMs })),
  },
  guards: {
    works: ({ context }, { callId }: { callId: string }) => context.working.includes(callId),
    isNew: ({ context }, { callId }: { callId: string }) =>
      !context.working.includes(callId) && !context.parts.includes(callId),
    asks: ({ context }, { callId }: { callId: string }) => context.asking.includes(callId),
    beginsToAsk: ({ context }, { callId }: { callId: string }) =>
      context.working.includes(callId) && !context.asking.includes(callId),
    isPart: ({ context }, { deliveryId }: { deliveryId: string }) =>
      context.parts.includes(deliveryId),
    isLastPart: ({ context }, { deliveryId }: { deliveryId: string }) =>
      context.parts.length === 1 && context.parts[0] === deliveryId,
    hasParts: ({ context }) => context.parts.length > 0,
    hasOnePart: ({ context }) => context.parts.length === 1,
    hasNoWork: ({ context }) => context.working.length === 0,
    /** No working call is left, so results have nothing to wait for. */
    isComplete: ({ context }) => !context.isReplying && !someAreLate(context),
    isNoneLate: ({ context }) => !someAreLate(context),
    isThisDeadline: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.dueAt,
  },
}).createMachine({
  id: 'batch',
  context: ({ input }) => ({
    batchId: input?.batchId ?? '',
    ceilingMs: input?.ceilingMs ?? 0,
    atCeiling: input?.atCeiling ?? 'deliver',
    graceMs: input?.graceMs ?? 0,
    // The lead agent makes the first call of a batch during a reply.
    isReplying: true,
    working: [],
    asking: [],
    parts: [],
    dueAt: 0,
  }),
  initial: 'gathering',
  options: machineOptions,
  output: ({ context: { batchId } }) => ({ batchId }),
  on: {
    'batch.left': {
      guard: works,
      actions: leave,
    },
    // The other results were reported without this result.
    'batch.settled': {
      guard: works,
      actions: [leave, { type: 'pass', params: ({ event }) => ({ callId: event.callId }) }],
    },
    // The result was shown while it waited or while all results were being reported, so the others are reported without
    // it.
    'delivery.shown': {
      guard: { type: 'isPart', params: ({ event }) => event },
      actions: [shown, { type: 'free', params: { places: 1 } }, removed],
    },
    'delivery.dismissed': {
      guard: { type: 'isPart', params: ({ event }) => event },
      actions: [dismissed, { type: 'free', params: { places: 1 } }, removed],
    },
    'delivery.read': {
      guard: { type: 'isPart', params: ({ event }) => event },
      actions: [passRead(true), removed],
    },
  },
  states: {
    gathering: {
      initial: 'idle',
      on: {
        'batch.joined': {
          guard: { type: 'isNew', params: ({ event }) => event },
          actions: { type: 'join', params: ({ event }) => event },
        },
        'batch.asking': {
          guard: { type: 'beginsToAsk', params: ({ event }) => event },
          actions: { type: 'markAsking', params: ({ event }) => event },
        },
        'batch.resumed': {
          guard: { type: 'asks', params: ({ event }) => event },
          actions: { type: 'markResumed', params: ({ event }) => event },
        },
        'batch.replied': {
          guard: ({ context }) => context.isReplying,
          actions: assign({ isReplying: false }),
        },
        'batch.settled': {
          guard: works,
          target: '.arriving',
          actions: [leave, keep],
        },
      },
      states: {
        idle: {
          // Every call was refused or cancelled, so there is nothing to report.
          always: { guard: and(['hasNoWork', 'isComplete']), target: '#batch.over' },
        },
        // The ceiling's clock starts with the first result, and only if another call is still working.
        arriving: {
          always: [{ guard: 'isComplete', target: '#batch.releasing' }, { target: 'holding' }],
        },
        holding: {
          entry: [
            { type: 'startCeiling', params: ({ event }) => event },
            {
              type: 'startActivity',
              params: ({ context }) => deadline('deadline.ceiling', context.dueAt),
            },
          ],
          exit: stopActivity('deadline'),
          always: [
            { guard: not('hasParts'), target: 'idle' },
            { guard: 'isComplete', target: '#batch.releasing' },
          ],
          on: {
            'batch.settled': {
              guard: works,
              actions: [leave, keep],
            },
            'deadline.ceiling': [
              {
                guard: ({ context, event }) =>
                  event.dueAt === context.dueAt &&
                  context.atCeiling === 'cancel' &&
                  someAreLate(context),
                target: '#batch.closing',
                actions: {
                  type: 'stop',
                  params: ({ context }) => ({ callIds: lateOf(context) }),
                },
              },
              {
                guard: { type: 'isThisDeadline', params: ({ event }) => event },
                target: '#batch.releasing',
              },
            ],
          },
        },
      },
    },
    closing: {
      entry: [
        { type: 'startGrace', params: ({ event }) => event },
        {
          type: 'startActivity',
          params: ({ context }) => deadline('deadline.grace', context.dueAt),
        },
      ],
      exit: stopActivity('deadline'),
      always: { guard: 'isNoneLate', target: 'releasing' },
      on: {
        'batch.settled': {
          guard: works,
          actions: [leave, keep],
        },
        'deadline.grace': {
          guard: { type: 'isThisDeadline', params: ({ event }) => event },
          target: 'releasing',
        },
      },
    },
    releasing: {
      always: [
        { guard: not('hasParts'), target: 'trailing' },
        {
          guard: 'hasOnePart',
          target: 'trailing',
          actions: [
            { type: 'pass', params: ({ context }) => ({ callId: context.parts[0] ?? '' }) },
            'clear',
          ],
        },
        {
          target: 'telling',
          actions: { type: 'tell', params: ({ context }) => ({ batchId: context.batchId }) },
        },
      ],
    },
    telling: {
      on: {
        'batch.told': {
          target: 'trailing',
          actions: [
            {
              type: 'delivered',
              params: ({ context, event }) => ({
                deliveryIds: context.parts,
                grade: event.grade,
              }),
            },
            // When the joint item was delivered, one of the places was released.
            { type: 'free', params: ({ context }) => ({ places: context.parts.length - 1 }) },
            'clear',
          ],
        },
        'delivery.shown': {
          guard: { type: 'isLastPart', params: ({ event }) => event },
          target: 'trailing',
          actions: [shown, retract, 'clear'],
        },
        'delivery.dismissed': {
          guard: { type: 'isLastPart', params: ({ event }) => event },
          target: 'trailing',
          actions: [dismissed, retract, 'clear'],
        },
        // The joint item had the last reserved place.
        'delivery.read': {
          guard: { type: 'isLastPart', params: ({ event }) => event },
          target: 'trailing',
          actions: [retract, passRead(false), 'clear'],
        },
      },
    },
    trailing: {
      always: { guard: 'hasNoWork', target: 'over' },
    },
    over: {
      type: 'final',
      entry: { type: 'ended', params: ({ context }) => ({ batchId: context.batchId }) },
    },
  },
});

/** A snapshot of `batchMachine`. */
export type BatchSnapshot = SnapshotFrom<typeof batchMachine>;
