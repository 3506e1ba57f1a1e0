// Replaces a connection that is about to end with a new one while both parties are silent.
//
//   idle ─opened─▶ unlimited, limited ─due─▶ preparing ─ready─▶ prepared ─rest─▶ idle  takeOver
//                        │                    ▲   │ failed        │ failed
//                        │                    │   ▼               │
//                        │                    pausing ◀───────────┘
//                        └─due, and can resume─▶ awaiting ─rest─▶ idle  renew
//
// There are two ways. Make before break: a new connection is prepared, and then takes over (`takeOver`). Break before
// make, if the wire can resume a closed connection: the connection is closed, and then the session reconnects
// (`renew`).
//
// Owns:     when a connection is replaced, and how.
// Does not: hold connections, or determine why neither side is speaking.
//
// Invariants
//   ROTATION-1. At most one candidate exists at a time, and only in `making`. The candidate takes over, is dropped, or
//       is lost.
//   ROTATION-2. The connection is replaced while both parties are silent. It is replaced at the latest at `lastAt`, or
//        when the old connection is lost.
//   ROTATION-3. No connection is replaced during a transfer, or while there is no connection. A transfer to another
//        connection makes a rotation unnecessary. A rotation that becomes due during the transfer starts after it.
//   ROTATION-4. If a candidate fails or is not ready in time, the next one is opened after a pause. The pauses grow,
//        and the attempts continue while the old connection is open.

import { and, assign, or, setup, type SnapshotFrom } from 'xstate';
import { backoffMs, type BackoffInput } from './backoff.ts';
import {
  activities,
  deadline,
  effect,
  machineOptions,
  stopActivity,
  type Deadline,
  type EffectsOf,
} from './effect.ts';

/** The limits and pauses for rotating a connection that its provider will end after some time. */
export interface RotationInput extends BackoffInput {
  /** The time limit for a candidate to become ready, in milliseconds. */
  readonly connectTimeoutMs: number;
}

interface RotationContext extends RotationInput {
  /** The time at which a new connection is needed; null if no limit is known. */
  readonly dueAt: number | null;
  /** The time after which the rotation no longer waits for silence. */
  readonly lastAt: number;
  readonly failures: number;
  readonly attemptBy: number;
  readonly retryAt: number;
}

/** Facts, as of the time of an event, that the machine cannot determine itself. */
export interface RotationNow {
  readonly at: number;
  /** Both parties are silent, and neither is about to speak. */
  readonly isIdle: boolean;
  /** The transport can resume the connection after it has ended. */
  readonly canResume: boolean;
}

export type RotationFact =
  /** A connection is in use. */
  | { readonly type: 'connection.opened'; readonly dueAt: number | null; readonly lastAt: number }
  /** The connection will end sooner than expected. */
  | { readonly type: 'connection.expiring'; readonly lastAt: number }
  /** A fact has changed, so the connection may be replaced now. */
  | { readonly type: 'connection.rested' }
  /** The connection is lost. */
  | { readonly type: 'connection.lost' }
  /** The connection was closed intentionally. */
  | { readonly type: 'connection.closed' }
  | { readonly type: 'transfer.began' }
  /**
   * The transfer has ended, and the old connection is still in use. After a transfer to another connection,
   * `connection.opened` is sent instead.
   */
  | { readonly type: 'transfer.ended' }
  | { readonly type: 'candidate.ready' }
  /** `jitter`: uniform in [0, 1). */
  | { readonly type: 'candidate.lost'; readonly jitter: number }
  | { readonly type: 'deadline.due'; readonly dueAt: number }
  | { readonly type: 'deadline.last'; readonly dueAt: number }
  | { readonly type: 'deadline.attempt'; readonly dueAt: number }
  | { readonly type: 'deadline.retry'; readonly dueAt: number };

/** The events of `rotationMachine`. */
export type RotationEvent = RotationFact & RotationNow;

const renews = { target: '#rotation.idle', actions: { type: 'renew', params: {} } } as const;
const takesOver = { target: '#rotation.idle', actions: { type: 'takeOver', params: {} } } as const;
const drops = { type: 'drop', params: {} } as const;

/** The transitions that start a rotation. */
const begins = [
  { guard: 'isGoodMoment', ...renews },
  { guard: 'canResume', target: '#rotation.awaiting' },
  { target: '#rotation.making' },
] as const;

/** The transitions that start a rotation if the connection will end sooner than expected. */
const hurries = [
  { guard: 'isGoodMoment', ...renews },
  { guard: 'canResume', target: '#rotation.awaiting', actions: ['expires', 'isDueNow'] },
  { target: '#rotation.making', actions: ['expires', 'isDueNow'] },
] as const;

const effects = {
  /** Opens a candidate; `candidate.ready` or `candidate.lost` follows. */
  prepare: effect<object>(),
  /** Drops the candidate. */
  drop: effect<object>(),
  /** Makes the candidate the current connection; `connection.opened` follows. */
  takeOver: effect<object>(),
  /** Closes the connection and resumes the session on another one. */
  renew: effect<object>(),
};

export type RotationEffects = EffectsOf<typeof effects>;

/** Renews a connection before its provider ends it, while both parties are silent. */
export const rotationMachine = setup({
  types: {
    input: {} as RotationInput,
    context: {} as RotationContext,
    events: {} as RotationEvent,
  },
  actions: {
    ...activities<Deadline>(),
    ...effects,
    opened: assign(({ event }) =>
      event.type === 'connection.opened'
        ? { dueAt: event.dueAt, lastAt: event.lastAt, failures: 0 }
        : {},
    ),
    expires: assign(({ event }) =>
      event.type === 'connection.expiring' ? { lastAt: event.lastAt } : {},
    ),
    isDueNow: assign({ dueAt: ({ event }) => event.at }),
    begun: assign(({ context, event }) => ({ attemptBy: event.at + context.connectTimeoutMs })),
    failed: assign(({ context, event }) => {
      const failures = context.failures + 1;
      const jitter = event.type === 'candidate.lost' ? event.jitter : 0;
      return { failures, retryAt: event.at + backoffMs(context, failures, jitter) };
    }),
  },
  guards: {
    isIdle: ({ event }) => event.isIdle,
    canResume: ({ event }) => event.canResume,
    isGoodMoment: ({ event }) => event.isIdle && event.canResume,
    isLate: ({ context, event }) => event.at >= context.lastAt,
    isLimited: ({ context }) => context.dueAt !== null,
    isDue: ({ context, event }) => context.dueAt !== null && event.at >= context.dueAt,
  },
}).createMachine({
  id: 'rotation',
  context: ({ input }) => ({
    baseDelayMs: input?.baseDelayMs ?? 0,
    maxDelayMs: input?.maxDelayMs ?? 0,
    connectTimeoutMs: input?.connectTimeoutMs ?? 0,
    dueAt: null,
    lastAt: 0,
    failures: 0,
    attemptBy: 0,
    retryAt: 0,
  }),
  initial: 'idle',
  options: machineOptions,
  on: {
    'connection.opened': [
      { guard: ({ event }) => event.dueAt !== null, target: '.limited', actions: 'opened' },
      { target: '.unlimited', actions: 'opened' },
    ],
    'connection.closed': '.idle',
    'connection.lost': '.idle',
    'transfer.began': '.held',
  },
  states: {
    // Without a connection, there is nothing to replace.
    idle: { on: { 'connection.closed': {}, 'connection.lost': {}, 'transfer.began': {} } },
    unlimited: { on: { 'connection.expiring': hurries } },
    limited: {
      entry: {
        type: 'startActivity',
        params: ({ context }) => deadline('deadline.due', context.dueAt ?? 0, 'due'),
      },
      exit: stopActivity('deadline', 'due'),
      on: { 'deadline.due': begins, 'connection.expiring': hurries },
    },
    // Another agent is about to become the lead agent, perhaps on another connection.
    held: {
      on: {
        'connection.expiring': { actions: ['expires', 'isDueNow'] },
        'transfer.began': {},
        'transfer.ended': [
          { guard: and(['isDue', 'isGoodMoment']), ...renews },
          { guard: and(['isDue', 'canResume']), target: 'awaiting' },
          { guard: 'isDue', target: 'making' },
          { guard: 'isLimited', target: 'limited' },
          { target: 'unlimited' },
        ],
      },
    },
    // Break before make.
    awaiting: {
      entry: {
        type: 'startActivity',
        params: ({ context }) => deadline('deadline.last', context.lastAt, 'last'),
      },
      exit: stopActivity('deadline', 'last'),
      on: {
        'connection.rested': { guard: 'isGoodMoment', ...renews },
        'deadline.last': renews,
        'connection.expiring': { target: 'awaiting', reenter: true, actions: 'expires' },
      },
    },
    // Make before break.
    making: {
      initial: 'preparing',
      states: {
        preparing: {
          entry: [
            'begun',
            { type: 'prepare', params: {} },
            {
              type: 'startActivity',
              params: ({ context }) => deadline('deadline.attempt', context.attemptBy, 'attempt'),
            },
          ],
          exit: stopActivity('deadline', 'attempt'),
          on: {
            'candidate.ready': [
              { guard: or(['isIdle', 'isLate']), ...takesOver },
              { target: 'prepared' },
            ],
            'deadline.attempt': { target: '#rotation.pausing', actions: [drops, 'failed'] },
            'connection.expiring': { actions: 'expires' },
          },
        },
        prepared: {
          entry: {
            type: 'startActivity',
            params: ({ context }) => deadline('deadline.last', context.lastAt, 'last'),
          },
          exit: stopActivity('deadline', 'last'),
          on: {
            'connection.rested': { guard: 'isIdle', ...takesOver },
            'deadline.last': takesOver,
            'connection.lost': takesOver,
            'connection.expiring': { target: 'prepared', reenter: true, actions: 'expires' },
          },
        },
      },
      on: {
        'candidate.lost': { target: 'pausing', actions: 'failed' },
        'connection.closed': { target: 'idle', actions: drops },
        'connection.lost': { target: 'idle', actions: drops },
        'transfer.began': { target: 'held', actions: drops },
      },
    },
    pausing: {
      entry: {
        type: 'startActivity',
        params: ({ context }) => deadline('deadline.retry', context.retryAt, 'retry'),
      },
      exit: stopActivity('deadline', 'retry'),
      on: { 'deadline.retry': begins, 'connection.expiring': { actions: 'expires' } },
    },
  },
});

/** A snapshot of `rotationMachine`. */
export type RotationSnapshot = SnapshotFrom<typeof rotationMachine>;
