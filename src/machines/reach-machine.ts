// The plan for sending one delivery, which stays in the outbox, to an absent user through the channels that the app has
// configured.
//
//   waiting ─due─▶ taken: claiming ─claimed─▶ sending ─sent, failed─▶ waiting (for the next step) | spent
//      ├───────────────┴──── read ──────────────────────────────────▶ spent
//      └──────────────────── heard, withdrawn ────▶ over ◀──────────────┘
//
// Owns:     the current step, its time, and the receipts that the channels have reported.
// Does not: know the channels, steps and calendars (the events contain the next step), send, or speak.
//
// Invariants
//   REACH-1. A step is sent only while the outbox has granted a claim to the delivery. During this time, the outbox
//       does not speak the delivery. The claim is released when the channel has finished sending.
//   REACH-2. Steps are sent one at a time, each only when it is due.
//   REACH-3. A delivery is no longer sent after the user has heard or read it, or after it was withdrawn. A question is
//       still sent after the user has heard it, because it is waiting for an answer, but not after it was read.
//   REACH-4. In every state, the machine is waiting for a time, the outbox or a channel, has no further step, or is
//       over.
//   REACH-5. The receipt of a step only advances (`failed`, `sent`, `delivered`, `read`), and a step has a receipt only
//       if it was sent. A delivery that the user has read counts as heard.
//   REACH-6. The plan of a question ends with the question, so that a question that is asked again is not planned again.

import { and, assign, not, setup, type SnapshotFrom } from 'xstate';
import {
  activities,
  activity,
  effect,
  machineOptions,
  stopActivity,
  type Activity,
  type Deadline,
  type EffectsOf,
  type Stamped,
} from './effect.ts';

/** One step of sending a delivery. */
export interface ReachStep {
  /** The number of the step in the policy. */
  readonly step: number;
  /** The name of the channel. */
  readonly by: string;
  /** The time at which the step is sent, in milliseconds since 1970. */
  readonly dueAt: number;
  /** The time that the user has to answer a question after hearing it, in milliseconds. */
  readonly afterMs: number;
}

/** The state of a delivery as reported by a channel. `failed`: the delivery was not sent, or may not have been. */
export type ReachReceipt = 'failed' | 'sent' | 'delivered' | 'read';

/** A step that a channel has been asked to send. */
export interface Sent {
  /** The index of the step. */
  readonly step: number;
  /** The name of the channel. */
  readonly by: string;
  /** The highest receipt so far. */
  readonly receipt: ReachReceipt;
  /** The time of the receipt, in milliseconds since 1970. */
  readonly at: number;
  /** Why it failed. */
  readonly error?: string;
}

/** A delivery and its first step. */
export interface ReachInput extends ReachStep {
  /** The id of the delivery. */
  readonly deliveryId: string;
  /** The time at which the delivery started to wait, in milliseconds since 1970. */
  readonly since: number;
  /** Whether the delivery is a subagent's question. */
  readonly isQuestion: boolean;
}

interface ReachContext extends ReachInput {
  /** Numbers the sendings. */
  readonly attempt: number;
  /** The time of the first attempt to send the step; 0 before it. */
  readonly begunAt: number;
  /** The steps sent so far, oldest first. */
  readonly sent: readonly Sent[];
}

type ReachFact =
  /** The step is due. `until`: the end of the current quiet hours; absent outside quiet hours. */
  | { readonly type: 'deadline.reach'; readonly dueAt: number; readonly until?: number }
  /** The outbox has granted the claim and does not speak the delivery until the claim is released. */
  | { readonly type: 'reach.claimed' }
  /** The channel has responded, or its time limit has expired. `next`: the next step; null if there is none. */
  | {
      readonly type: 'reach.ended';
      readonly attempt: number;
      readonly receipt: ReachReceipt;
      readonly error?: string;
      readonly next: ReachStep | null;
    }
  /** The channel has a newer receipt for a step. */
  | {
      readonly type: 'reach.reported';
      readonly step: number;
      readonly receipt: 'delivered' | 'read';
    }
  /** The user has heard or seen the delivery. */
  | { readonly type: 'reach.heard' }
  /** The delivery was dismissed, dropped, answered or withdrawn. */
  | { readonly type: 'reach.over' };

/** The events of `reachMachine`. */
export type ReachEvent = ReachFact & Stamped;

export interface OfDelivery {
  readonly deliveryId: string;
}

const effects = {
  /** Claims the delivery from the outbox. `reach.claimed` follows as soon as the delivery is not being spoken. */
  claim: effect<OfDelivery>(),
  /** Releases the claim. */
  unclaim: effect<OfDelivery>(),
  /** The user has read the delivery in a channel. */
  read: effect<OfDelivery>(),
};

/** The effects of `reachMachine`. */
export type ReachEffects = EffectsOf<typeof effects>;

const RANKS: readonly ReachReceipt[] = ['failed', 'sent', 'delivered', 'read'];
const rank = (receipt: ReachReceipt): number => RANKS.indexOf(receipt);

type Args = { context: ReachContext };
const ofDelivery = ({ context: { deliveryId } }: Args): OfDelivery => ({ deliveryId });
const read = { type: 'read', params: ofDelivery } as const;

/** These events apply in every state that is not final. */
const always = {
  'reach.over': '#reach.over',
  'reach.reported': [
    { guard: and(['rises', 'isRead']), target: '#reach.spent', actions: ['raise', read] },
    { guard: 'rises', actions: 'raise' },
  ],
} as const;

/** Sends one delivery over the channels, step by step. */
export const reachMachine = setup({
  types: {
    input: {} as ReachInput,
    context: {} as ReachContext,
    events: {} as ReachEvent,
  },
  actions: {
    ...activities<Deadline | Activity<'send', { readonly attempt: number }>>(),
    ...effects,
    putOff: assign(({ context: { dueAt, afterMs }, event }) => ({
      dueAt: Math.max(dueAt, event.at + afterMs),
    })),
    putOffQuiet: assign(({ event }) => ('until' in event ? { dueAt: event.until } : {})),
    note: assign(({ context: { sent, step, by }, event }) => {
      if (!('receipt' in event)) return {};
      const { receipt, at } = event;
      const error = 'error' in event ? { error: event.error } : {};
      return { sent: [...sent, { step, by, receipt, at, ...error }] };
    }),
    raise: assign(({ context: { sent }, event }) => {
      if (event.type !== 'reach.reported') return {};
      const { step, receipt, at } = event;
      const index = lastOf(sent, step);
      return {
        sent: sent.map((one, n) => (n === index ? { step, by: one.by, receipt, at } : one)),
      };
    }),
    advance: assign(({ event }) => ('next' in event ? { ...event.next } : {})),
    begin: assign(({ context: { attempt, begunAt, sent, step }, event: { at } }) => ({
      attempt: attempt + 1,
      begunAt: lastOf(sent, step) < 0 ? at : begunAt,
    })),
  },
  guards: {
    isDue: ({ context, event }) => 'dueAt' in event && event.dueAt === context.dueAt,
    isQuiet: ({ event }) => 'until' in event && (event.until ?? 0) > event.dueAt,
    isAttempt: ({ context, event }) => 'attempt' in event && event.attempt === context.attempt,
    isRead: ({ event }) => 'receipt' in event && event.receipt === 'read',
    hasNext: ({ event }) => 'next' in event && event.next !== null,
    isQuestion: ({ context }) => context.isQuestion,
    isOfCurrent: ({ context, event }) => 'step' in event && event.step === context.step,
    rises: ({ context: { sent }, event }) => {
      if (event.type !== 'reach.reported') return false;
      const known = sent[lastOf(sent, event.step)];
      return known !== undefined && rank(event.receipt) > rank(known.receipt);
    },
  },
}).createMachine({
  id: 'reach',
  context: ({ input }) => ({
    deliveryId: input?.deliveryId ?? '',
    since: input?.since ?? 0,
    isQuestion: input?.isQuestion ?? false,
    step: input?.step ?? 0,
    by: input?.by ?? '',
    dueAt: input?.dueAt ?? 0,
    afterMs: input?.afterMs ?? 0,
    attempt: 0,
    begunAt: 0,
    sent: [],
  }),
  initial: 'waiting',
  options: machineOptions,
  states: {
    waiting: {
      entry: {
        type: 'startActivity',
        params: ({ context: { dueAt } }) => ({
          name: 'deadline',
          id: 'deadline',
          input: { dueAt, event: 'deadline.reach', byClock: true },
        }),
      },
      exit: stopActivity('deadline'),
      on: {
        ...always,
        'deadline.reach': [
          {
            guard: and(['isDue', 'isQuiet']),
            target: 'waiting',
            reenter: true,
            actions: 'putOffQuiet',
          },
          { guard: 'isDue', target: 'taken' },
        ],
        'reach.heard': [
          { guard: 'isQuestion', target: 'waiting', reenter: true, actions: 'putOff' },
          { target: 'over' },
        ],
      },
    },
    /** REACH-1 */
    taken: {
      initial: 'claiming',
      exit: { type: 'unclaim', params: ofDelivery },
      on: { ...always, 'reach.heard': { guard: not('isQuestion'), target: 'over' } },
      states: {
        claiming: {
          entry: { type: 'claim', params: ofDelivery },
          on: {
            'reach.claimed': 'sending',
            'reach.heard': { guard: 'isQuestion', target: '#reach.waiting', actions: 'putOff' },
          },
        },
        sending: {
          entry: [
            'begin',
            {
              type: 'startActivity',
              params: ({ context: { attempt } }) => activity('send', { attempt }),
            },
          ],
          exit: stopActivity('send'),
          on: {
            'reach.ended': [
              {
                guard: and(['isAttempt', 'isRead']),
                target: '#reach.spent',
                actions: ['note', read],
              },
              {
                guard: and(['isAttempt', 'hasNext']),
                target: '#reach.waiting',
                actions: ['note', 'advance'],
              },
              { guard: 'isAttempt', target: '#reach.spent', actions: 'note' },
            ],
            // The user read the delivery before the channel responded.
            'reach.reported': {
              guard: and(['isOfCurrent', 'isRead']),
              target: '#reach.spent',
              actions: ['note', read],
            },
          },
        },
      },
    },
    /** No further step is left, or the user has read the delivery, and a question is waiting for its answer. */
    spent: {
      on: { ...always, 'reach.heard': { guard: not('isQuestion'), target: 'over' } },
    },
    over: { type: 'final' },
  },
});

/** Returns the index of the most recent attempt to send a step. */
function lastOf(sent: readonly Sent[], step: number): number {
  return sent.findLastIndex((one) => one.step === step);
}

/** A snapshot of `reachMachine`. */
export type ReachSnapshot = SnapshotFrom<typeof reachMachine>;
