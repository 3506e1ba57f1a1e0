// The way of one delivery to a user who is gone, over the channels that the app has configured, beside the outbox.
//
//   waiting ─due─▶ taken: claiming ─claimed─▶ sending ─sent, failed─▶ waiting (for the next step) | spent
//      └───────────────┴──── heard, read, withdrawn ─────▶ over ◀───────────────────────────────────┘
//
// Owns:     the step of the way and its time, and what the channels have reported.
// Does not: know channels, steps and calendars (the events bring the next step), send, or speak.
//
// Invariants
//   REACH-1. A step is sent only while the outbox has granted its claim: the outbox does not say the delivery meanwhile.
//       A claim is given back when the sending ends.
//   REACH-2. Steps are sent one at a time, each of them only at its time.
//   REACH-3. A delivery that was heard, read or withdrawn is not sent any more. A question that was heard is sent later,
//       because it still waits for its answer.
//   REACH-4. A way waits for a time, for the outbox, or for a channel; or it has no further step; or it is over.
//   REACH-5. The receipt of a step only rises (`failed`, `sent`, `delivered`, `read`), and only a sent step has one. A
//       delivery that was read counts as heard.

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

/** One step of a way. */
export interface ReachStep {
  /** Its number in the policy. */
  readonly step: number;
  /** The name of the channel. */
  readonly by: string;
  /** When it is sent, in milliseconds since 1970. */
  readonly dueAt: number;
  /** How long the user has for a question that they have heard, in milliseconds. */
  readonly afterMs: number;
}

/** What a channel knows of a delivery. `failed`: it is not known to be sent. */
export type ReachReceipt = 'failed' | 'sent' | 'delivered' | 'read';

/** A step that a channel was told to send. */
export interface Sent {
  readonly step: number;
  readonly by: string;
  readonly receipt: ReachReceipt;
  /** When the receipt came, in milliseconds since 1970. */
  readonly at: number;
  /** Why it failed. */
  readonly error?: string;
}

/** A delivery, and the first step of its way. */
export interface ReachInput extends ReachStep {
  readonly deliveryId: string;
  /** When the delivery began to wait, in milliseconds since 1970. */
  readonly since: number;
  readonly isQuestion: boolean;
}

interface ReachContext extends ReachInput {
  /** Numbers the sendings. */
  readonly attempt: number;
  readonly sent: readonly Sent[];
}

type ReachFact =
  /** The time of the step has come. `until`: the end of the quiet hours; absent if there are none now. */
  | { readonly type: 'deadline.reach'; readonly dueAt: number; readonly until?: number }
  /** The outbox does not say the delivery until the claim is given back. */
  | { readonly type: 'reach.claimed' }
  /** The channel has answered, or is not waited for any longer. `next`: the next step; null if there is none. */
  | {
      readonly type: 'reach.ended';
      readonly attempt: number;
      readonly receipt: ReachReceipt;
      readonly error?: string;
      readonly next: ReachStep | null;
    }
  /** The channel learned more about a step. */
  | {
      readonly type: 'reach.reported';
      readonly step: number;
      readonly receipt: 'delivered' | 'read';
    }
  /** The user heard the delivery, or saw it. */
  | { readonly type: 'reach.heard' }
  /** The delivery was dismissed, dropped, answered or withdrawn. */
  | { readonly type: 'reach.over' };

/** The events of `reachMachine`. */
export type ReachEvent = ReachFact & Stamped;

export interface OfDelivery {
  readonly deliveryId: string;
}

const effects = {
  /** Claims the delivery from the outbox. `reach.claimed` follows, once it is not being said. */
  claim: effect<OfDelivery>(),
  /** Gives the claim back. */
  unclaim: effect<OfDelivery>(),
  /** The user read the delivery where a channel brought it. */
  read: effect<OfDelivery>(),
};

/** The effects of `reachMachine`. */
export type ReachEffects = EffectsOf<typeof effects>;

const RANKS: readonly ReachReceipt[] = ['failed', 'sent', 'delivered', 'read'];
const rank = (receipt: ReachReceipt): number => RANKS.indexOf(receipt);

type Args = { context: ReachContext };
const ofDelivery = ({ context: { deliveryId } }: Args): OfDelivery => ({ deliveryId });
const read = { type: 'read', params: ofDelivery } as const;

/** These events apply in every state until the way is over. */
const always = {
  'reach.over': '#reach.over',
  'reach.reported': [
    { guard: and(['rises', 'isRead']), target: '#reach.over', actions: ['raise', read] },
    { guard: 'rises', actions: 'raise' },
  ],
} as const;

/** The way of one delivery over the channels. */
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
    begin: assign(({ context }) => ({ attempt: context.attempt + 1 })),
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
                target: '#reach.over',
                actions: ['note', read],
              },
              {
                guard: and(['isAttempt', 'hasNext']),
                target: '#reach.waiting',
                actions: ['note', 'advance'],
              },
              { guard: 'isAttempt', target: '#reach.spent', actions: 'note' },
            ],
            // The user has read it before its channel answered.
            'reach.reported': {
              guard: and(['isOfCurrent', 'isRead']),
              target: '#reach.over',
              actions: ['note', read],
            },
          },
        },
      },
    },
    /** No step is left. The user may still read what was sent. */
    spent: {
      on: { ...always, 'reach.heard': { guard: not('isQuestion'), target: 'over' } },
    },
    over: { type: 'final' },
  },
});

/** Returns the index of the latest sending of a step. */
function lastOf(sent: readonly Sent[], step: number): number {
  return sent.findLastIndex((one) => one.step === step);
}

/** A snapshot of `reachMachine`. */
export type ReachSnapshot = SnapshotFrom<typeof reachMachine>;
