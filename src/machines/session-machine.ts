// One conversation: five parallel regions.
//
//   connection  created → connecting → active ⇄ reconnecting / resting / refused / transferring → closing → closed
//   client      detached ⇄ attached            is a client attached?
//   user        silent → speaking → settling → silent
//   model       idle ⇄ generating ⇄ waiting    waiting: for a tool, in the middle of its turn
//   playout     drained ⇄ playing              playing: audio still leaves the speaker
//
// `floorOf` derives who has the floor, which allows barge-in, backchannels and full duplex; `gateIsOpen` derives
// whether the outbox may speak.
//
// Owns:     the life of the connection, and the state of both parties.
// Does not: hold sockets, audio, transcripts, subagents or questions.
//
// Invariants
//   SESSION-1. The session never leaves `closed`. `closing` always ends, because the subagents are killed after a grace
//       period.
//   SESSION-2. The gate is open only while the session is connected, a client is attached, and both parties are quiet:
//       the user is silent, the model is idle or waiting, and the playout is drained.
//   SESSION-3. A new connection discards the old connection's generation but keeps the state of the user's device
//       (playout and speech are reported again).
//   SESSION-4. After `maxReconnects` consecutive failed reconnects, the session rests. After an error that a retry
//       cannot fix, the connection is refused. In both cases it reports the reason, and everything except the
//       connection continues. A session that has never been connected closes instead, because it has no work to
//       preserve.
//   SESSION-5. A transfer ends exactly once, successfully or not, and at the latest after `transferTimeoutMs`. The end
//       of a transfer does not close the session. A late event from another transfer has no effect.
//   SESSION-6. A connection that is not ready after `connectTimeoutMs` counts as failed.
//   SESSION-7. A turn of the model ends when the model has said everything, not when its connection is lost.
//   SESSION-8. Closing a connection to renew it is not a failure, and another connection is opened immediately.
//   SESSION-9. After a recovery, the session is in the same state as before its start: not connected, no client
//       attached, and both sides silent. A session that was closing continues to close.
//   SESSION-10. While the model waits for a tool, it keeps the floor and its turn continues. A due item may still be
//       spoken, because the gate does not wait for the tool.
//   SESSION-11. A resting session reconnects after a pause, which grows up to `MAX_REST_FACTOR` times the first pause.
//       A refused session reconnects only when asked to, or when a client attaches.

import { and, assign, setup, type SnapshotFrom } from 'xstate';
import { backoffMs } from './backoff.ts';
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
import type { Failure } from './outcome.ts';

/** The limits and pauses of a session. */
export interface SessionInput {
  /** The maximum number of attempts to reconnect after the connection is lost. */
  readonly maxReconnects: number;
  /** The maximum time for a connection to become ready, in milliseconds. @defaultValue 30000 */
  readonly connectTimeoutMs?: number;
  /** The maximum time for the next lead agent to become ready, in milliseconds. @defaultValue 30000 */
  readonly transferTimeoutMs?: number;
  /** The maximum time that transcription may take after the end of an utterance, in milliseconds. */
  readonly settleTimeoutMs: number;
  /** The maximum time that subagents may take to stop before they are killed, in milliseconds. */
  readonly closeGraceMs: number;
  /** The time without an attached client after which open questions are withdrawn, in milliseconds; null for never. */
  readonly detachGraceMs: number | null;
}

/** The default of `connectTimeoutMs`. */
export const DEFAULT_CONNECT_TIMEOUT_MS = 30_000;
/** The default of `transferTimeoutMs`. */
export const DEFAULT_TRANSFER_TIMEOUT_MS = 30_000;

/** The maximum pause of a resting session, as a multiple of its first pause. */
export const MAX_REST_FACTOR = 10;
/** The number of failures after which the pause of a resting session no longer doubles. */
const COUNTED_RESTS = 4;

type SessionFact =
  | { readonly type: 'session.start' }
  | { readonly type: 'session.close' }
  /** Makes a resting or refused session connect now. */
  | { readonly type: 'session.reconnect' }
  /**
   * Another process continues the session: no client is attached, no transport is connected, and both parties are
   * silent.
   */
  | { readonly type: 'session.recovered' }
  /** A parked, idle session is loaded again: the transport is not connected, and nothing else has changed. */
  | { readonly type: 'session.woken' }
  | { readonly type: 'transport.ready' }
  /** `retryInMs` is null if another attempt is pointless. */
  | {
      readonly type: 'transport.lost';
      readonly error: Failure;
      readonly retryInMs: number | null;
    }
  /** The connection was closed intentionally, and another connection must resume it immediately. */
  | { readonly type: 'transport.renewing' }
  /** Another connection has replaced this one. */
  | { readonly type: 'transport.replaced' }
  /** Another agent will become the lead agent. `transferId` identifies this attempt. */
  | { readonly type: 'transfer.started'; readonly transferId: string; readonly to: string }
  /** The agent is now the lead agent. If `error` is set, the previous agent remains the lead agent. */
  | {
      readonly type: 'transfer.ended';
      readonly transferId: string;
      readonly error: Failure | null;
    }
  | { readonly type: 'subagents.ended' }
  | { readonly type: 'client.attached' }
  | { readonly type: 'client.detached' }
  | { readonly type: 'utterance.started' }
  | { readonly type: 'utterance.ended' }
  | { readonly type: 'utterance.settled' }
  | { readonly type: 'response.requested' }
  /**
   * The model is waiting for a tool and has been silent for a while. Its turn continues when the tool has answered.
   */
  | { readonly type: 'response.waiting' }
  | { readonly type: 'response.ended' }
  | { readonly type: 'playout.started' }
  | { readonly type: 'playout.drained' }
  | { readonly type: 'deadline.connect'; readonly dueAt: number }
  | { readonly type: 'deadline.transfer'; readonly dueAt: number }
  | { readonly type: 'deadline.reconnect'; readonly dueAt: number }
  | { readonly type: 'deadline.settle'; readonly dueAt: number }
  | { readonly type: 'deadline.detach'; readonly dueAt: number }
  | { readonly type: 'deadline.close'; readonly dueAt: number };

/** The events of `sessionMachine`. */
export type SessionMachineEvent = SessionFact & Stamped;

type Lost = Pick<
  Extract<SessionMachineEvent, { type: 'transport.lost' }>,
  'at' | 'error' | 'retryInMs'
>;

interface SessionContext extends Required<SessionInput> {
  /** The number of consecutive failures to connect, which lengthens the pause. */
  readonly failures: number;
  /** The failure that ended the session; null if there was none. */
  readonly error: Failure | null;
  /** The session has been connected, in this process or an earlier one, so it may have work to preserve. */
  readonly hasBegun: boolean;
  /** The current transfer. */
  readonly transferId: string | null;
  /** The deadline for the connection to become ready, in milliseconds since 1970; 0 before the first attempt. */
  readonly connectBy: number;
  /** The deadline for the next lead agent to become ready, in milliseconds since 1970; 0 before the first transfer. */
  readonly transferBy: number;
  /** The time of the next attempt to connect, in milliseconds since 1970; 0 before the first failure. */
  readonly reconnectAt: number;
  /**
   * The deadline for the transcript of the last utterance, in milliseconds since 1970; 0 before the first utterance.
   */
  readonly settleBy: number;
  /**
   * The time at which open questions are withdrawn if no client has attached, in milliseconds since 1970; 0 before the
   * first detachment.
   */
  readonly detachedUntil: number;
  /** The time at which subagents that have not stopped are killed, in milliseconds since 1970; 0 before the close. */
  readonly closeBy: number;
}

const countLost = {
  type: 'countFailure',
  params: ({ event }: { event: Lost }) => event,
} as const;

/**
 * Returns how long a session rests after another failure, in milliseconds; null if it reconnects immediately.
 * @param firstMs The first pause.
 * @param jitter Uniform in [0, 1): shortens the pause by up to half.
 */
export function restMs(
  { failures, maxReconnects }: Pick<SessionContext, 'failures' | 'maxReconnects'>,
  firstMs: number,
  jitter: number,
): number | null {
  if (failures < maxReconnects) return null;
  const pauses = { baseDelayMs: firstMs, maxDelayMs: firstMs * MAX_REST_FACTOR };
  return backoffMs(pauses, failures - maxReconnects + 1, jitter);
}

/**
 * The connection was not ready in time, which counts as a failure. The attempt took so long that the next one may start
 * immediately. A resting session waits for as long as the attempt took, and longer each time.
 */
const countNotReady = {
  type: 'countFailure',
  params: ({ context, event }: { context: SessionContext; event: Stamped }): Lost => ({
    at: event.at,
    error: {
      code: 'CONNECT_TIMEOUT',
      message: `The connection was not ready after ${context.connectTimeoutMs} ms`,
      retryable: true,
    },
    retryInMs: restMs(context, context.connectTimeoutMs, 0) ?? 0,
  }),
} as const;

const byLoss = ({ event }: { event: Lost }): Lost => event;

/** The transitions when the connection is lost, for every state that has a connection. */
const lost = [
  {
    guard: { type: 'mayReconnect', params: byLoss },
    target: 'reconnecting',
    actions: countLost,
  },
  {
    guard: { type: 'mayRetry', params: byLoss },
    target: 'resting',
    actions: countLost,
  },
  { guard: 'hasBegun', target: 'refused', actions: countLost },
  { target: 'closing', actions: countLost },
] as const;

/** The connections and clients of an earlier process are gone. */
const backToStart = { target: 'created', actions: ['forgetFailures', 'begin'] } as const;

/** The transitions of a session that has no connection and is not opening one. */
const whileResting = {
  // The user has returned, or the app has new information.
  'client.attached': 'connecting',
  'session.reconnect': 'connecting',
  'session.close': { target: 'closing', actions: 'forgetFailures' },
  'session.recovered': backToStart,
  // The pauses continue to grow from the previous one.
  'session.woken': 'created',
} as const;

function transferEnded<E>(
  errorOf: (args: { context: SessionContext; event: E }) => Failure | null,
) {
  return {
    type: 'transferEnded',
    params: (args: { context: SessionContext; event: E }) => ({
      transferId: args.context.transferId ?? '',
      error: errorOf(args),
    }),
  } as const;
}

const effects = {
  /** Opens a connection; `transport.ready` or `transport.lost` follows. */
  connect: effect<{ readonly attempt: number }>(),
  disconnect: effect<object>(),
  /** Closes the connection that is being opened, because it is no longer needed. */
  hangUp: effect<object>(),
  /** Makes another agent the lead agent; `transfer.ended` follows. */
  transfer: effect<{ readonly transferId: string; readonly to: string }>(),
  /** The transfer is over; if it failed, the previous agent is still the lead agent. */
  transferEnded: effect<{ readonly transferId: string; readonly error: Failure | null }>(),
  /** The model has said everything that it has to say. */
  turnEnded: effect<object>(),
  /** No client has been attached for `detachGraceMs`, so open questions are withdrawn. */
  giveUpOnUser: effect<object>(),
  /** Cancels every subagent; `subagents.ended` follows. */
  stopSubagents: effect<object>(),
  /** Kills the subagents, because the grace period is over. */
  killSubagents: effect<object>(),
  ended: effect<{ readonly error: Failure | null }>(),
};

export type SessionEffects = EffectsOf<typeof effects>;

/** A session's connection, client and turn, as parallel regions. A session that has ended stays in `connection.closed`. */
export const sessionMachine = setup({
  types: {
    input: {} as SessionInput,
    context: {} as SessionContext,
    events: {} as SessionMachineEvent,
    tags: {} as 'connected' | 'ended',
  },
  actions: {
    ...activities<Deadline>(),
    ...effects,
    countFailure: assign(({ context }, { at, error, retryInMs }: Lost) => ({
      failures: Math.min(context.failures + 1, context.maxReconnects + COUNTED_RESTS),
      error,
      reconnectAt: at + (retryInMs ?? 0),
    })),
    forgetFailures: assign({ failures: 0, error: null }),
    begin: assign({ hasBegun: true }),
    beginToCount: assign(({ context, event }) => ({
      detachedUntil: event.at + (context.detachGraceMs ?? 0),
    })),
  },
  guards: {
    isPatient: ({ context }) => context.detachGraceMs === null,
    mayReconnect: ({ context }, { retryInMs }: Lost) =>
      retryInMs !== null && context.failures < context.maxReconnects,
    mayRetry: ({ context }, { retryInMs }: Lost) => retryInMs !== null && context.hasBegun,
    hasBegun: ({ context }) => context.hasBegun,
    isNotReady: ({ context, event }) =>
      event.type === 'deadline.connect' && event.dueAt === context.connectBy,
    mayReconnectNow: ({ context }) => context.failures < context.maxReconnects,
  },
}).createMachine({
  id: 'session',
  context: ({ input }) => ({
    maxReconnects: input?.maxReconnects ?? 0,
    connectTimeoutMs: input?.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS,
    transferTimeoutMs: input?.transferTimeoutMs ?? DEFAULT_TRANSFER_TIMEOUT_MS,
    settleTimeoutMs: input?.settleTimeoutMs ?? 0,
    closeGraceMs: input?.closeGraceMs ?? 0,
    detachGraceMs: input?.detachGraceMs ?? null,
    failures: 0,
    error: null,
    hasBegun: false,
    transferId: null,
    connectBy: 0,
    transferBy: 0,
    reconnectAt: 0,
    settleBy: 0,
    detachedUntil: 0,
    closeBy: 0,
  }),
  type: 'parallel',
  options: machineOptions,
  states: {
    connection: {
      initial: 'created',
      states: {
        created: {
          on: {
            'session.start': 'connecting',
            // A resting session that was parked and loaded again is also in this state.
            'session.close': { target: 'closing', actions: 'forgetFailures' },
          },
        },
        connecting: {
          entry: [
            { type: 'connect', params: ({ context }) => ({ attempt: context.failures + 1 }) },
            assign(({ context, event }) => ({ connectBy: event.at + context.connectTimeoutMs })),
            {
              type: 'startActivity',
              params: ({ context }) => deadline('deadline.connect', context.connectBy, 'connect'),
            },
          ],
          exit: stopActivity('deadline', 'connect'),
          on: {
            'transport.ready': 'active',
            'transport.lost': lost,
            'deadline.connect': [
              {
                guard: and(['isNotReady', 'mayReconnectNow']),
                target: 'reconnecting',
                actions: [{ type: 'hangUp', params: {} }, countNotReady],
              },
              {
                guard: and(['isNotReady', 'hasBegun']),
                target: 'resting',
                actions: [{ type: 'hangUp', params: {} }, countNotReady],
              },
              {
                guard: 'isNotReady',
                target: 'closing',
                actions: [{ type: 'hangUp', params: {} }, countNotReady],
              },
            ],
            'session.close': { target: 'closing', actions: 'forgetFailures' },
            'session.recovered': backToStart,
          },
        },
        active: {
          tags: ['connected'],
          entry: ['forgetFailures', 'begin'],
          on: {
            'transport.lost': lost,
            'transport.renewing': 'connecting',
            'transfer.started': {
              target: 'transferring',
              actions: [
                assign(({ context, event }) => ({
                  transferId: event.transferId,
                  transferBy: event.at + context.transferTimeoutMs,
                })),
                {
                  type: 'transfer',
                  params: ({ event: { transferId, to } }) => ({ transferId, to }),
                },
              ],
            },
            'session.close': 'closing',
            'session.recovered': backToStart,
            'session.woken': backToStart,
          },
        },
        // The lead agent is being replaced, and neither side speaks in the meantime.
        transferring: {
          entry: {
            type: 'startActivity',
            params: ({ context }) => deadline('deadline.transfer', context.transferBy, 'transfer'),
          },
          exit: stopActivity('deadline', 'transfer'),
          on: {
            'transfer.ended': {
              guard: ({ context, event }) => event.transferId === context.transferId,
              target: 'active',
              actions: transferEnded(({ event }) => event.error),
            },
            'deadline.transfer': {
              guard: ({ context, event }) => event.dueAt === context.transferBy,
              target: 'active',
              actions: transferEnded(({ context }) => ({
                code: 'TRANSFER_TIMEOUT',
                message: `The other agent was not ready after ${context.transferTimeoutMs} ms`,
                retryable: true,
              })),
            },
            'transport.lost': lost.map(({ actions, ...to }) => ({
              ...to,
              actions: [transferEnded(({ event }: { event: Lost }) => event.error), actions],
            })),
            'transport.renewing': {
              target: 'connecting',
              actions: transferEnded(() => ({
                code: 'TRANSPORT_RENEWING',
                message: 'The connection was about to end and was opened anew',
                retryable: true,
              })),
            },
            'session.close': {
              target: 'closing',
              actions: transferEnded(() => ({
                code: 'SESSION_CLOSED',
                message: 'The session was closed',
                retryable: false,
              })),
            },
            'session.recovered': backToStart,
          },
        },
        reconnecting: {
          entry: {
            type: 'startActivity',
            params: ({ context }) =>
              deadline('deadline.reconnect', context.reconnectAt, 'reconnect'),
          },
          exit: stopActivity('deadline', 'reconnect'),
          on: {
            'deadline.reconnect': {
              guard: ({ context, event }) => event.dueAt === context.reconnectAt,
              target: 'connecting',
            },
            'session.close': { target: 'closing', actions: 'forgetFailures' },
            'session.recovered': backToStart,
          },
        },
        // No connection is available. Subagents continue; results and questions have to wait.
        resting: {
          entry: {
            type: 'startActivity',
            params: ({ context }) =>
              deadline('deadline.reconnect', context.reconnectAt, 'reconnect'),
          },
          exit: stopActivity('deadline', 'reconnect'),
          on: {
            ...whileResting,
            'deadline.reconnect': {
              guard: ({ context, event }) => event.dueAt === context.reconnectAt,
              target: 'connecting',
            },
          },
        },
        // An automatic retry would fail for the same reason.
        refused: { on: whileResting },
        closing: {
          entry: [
            assign(({ context, event }) => ({ closeBy: event.at + context.closeGraceMs })),
            { type: 'stopSubagents', params: {} },
            {
              type: 'startActivity',
              params: ({ context }) => deadline('deadline.close', context.closeBy, 'close'),
            },
          ],
          exit: stopActivity('deadline', 'close'),
          on: {
            'session.recovered': { target: 'closing', reenter: true },
            'subagents.ended': 'closed',
            'deadline.close': {
              guard: ({ context, event }) => event.dueAt === context.closeBy,
              target: 'closed',
              actions: { type: 'killSubagents', params: {} },
            },
          },
        },
        closed: {
          tags: ['ended'],
          entry: [
            { type: 'disconnect', params: {} },
            { type: 'ended', params: ({ context }) => ({ error: context.error }) },
          ],
        },
      },
    },
    client: {
      initial: 'detached',
      states: {
        detached: {
          // Waits indefinitely for the first client, but only for `detachGraceMs` after a client has left.
          initial: 'patient',
          states: {
            patient: {},
            counting: {
              entry: {
                type: 'startActivity',
                params: ({ context }) =>
                  deadline('deadline.detach', context.detachedUntil, 'detach'),
              },
              exit: stopActivity('deadline', 'detach'),
              on: {
                'deadline.detach': {
                  guard: ({ context, event }) => event.dueAt === context.detachedUntil,
                  target: 'patient',
                  actions: { type: 'giveUpOnUser', params: {} },
                },
              },
            },
          },
          on: { 'client.attached': 'attached' },
        },
        attached: {
          on: {
            'client.detached': [
              { guard: 'isPatient', target: 'detached' },
              { target: 'detached.counting', actions: 'beginToCount' },
            ],
            'session.recovered': [
              { guard: 'isPatient', target: 'detached' },
              { target: 'detached.counting', actions: 'beginToCount' },
            ],
          },
        },
      },
    },
    user: {
      initial: 'silent',
      on: { 'client.detached': '.silent', 'session.recovered': '.silent' },
      states: {
        silent: { on: { 'utterance.started': 'speaking' } },
        speaking: {
          on: {
            'utterance.ended': 'settling',
            'utterance.settled': 'silent',
            // The lost connection would have reported the end of speech.
            'transport.lost': 'silent',
            'transport.renewing': 'silent',
            'transport.replaced': 'silent',
          },
        },
        // The transcript is still missing, so a response now might answer the wrong words.
        settling: {
          entry: [
            assign(({ context, event }) => ({
              settleBy: event.at + context.settleTimeoutMs,
            })),
            {
              type: 'startActivity',
              params: ({ context }) => deadline('deadline.settle', context.settleBy, 'settle'),
            },
          ],
          exit: stopActivity('deadline', 'settle'),
          on: {
            'utterance.settled': 'silent',
            'utterance.started': 'speaking',
            'deadline.settle': {
              guard: ({ context, event }) => event.dueAt === context.settleBy,
              target: 'silent',
            },
            'transport.lost': 'silent',
            'transport.renewing': 'silent',
            'transport.replaced': 'silent',
          },
        },
      },
    },
    model: {
      initial: 'idle',
      states: {
        idle: { on: { 'response.requested': 'generating' } },
        generating: {
          on: {
            'response.ended': { target: 'idle', actions: { type: 'turnEnded', params: {} } },
            'transport.lost': 'idle',
            'transport.renewing': 'idle',
            'transport.replaced': 'idle',
            'session.recovered': 'idle',
            'response.waiting': 'waiting',
          },
        },
        waiting: {
          on: {
            'response.requested': 'generating',
            'response.ended': { target: 'idle', actions: { type: 'turnEnded', params: {} } },
            'transport.lost': 'idle',
            'transport.renewing': 'idle',
            'transport.replaced': 'idle',
            'session.recovered': 'idle',
          },
        },
      },
    },
    playout: {
      initial: 'drained',
      states: {
        drained: { on: { 'playout.started': 'playing' } },
        playing: {
          on: {
            'playout.drained': 'drained',
            'client.detached': 'drained',
            'session.recovered': 'drained',
          },
        },
      },
    },
  },
});

/** A snapshot of `sessionMachine`. */
export type SessionSnapshot = SnapshotFrom<typeof sessionMachine>;

/** Returns the last failure of the connection and the time of the next attempt; null if there was no failure. */
export function outageOf(snapshot: SessionSnapshot) {
  const { error, reconnectAt } = snapshot.context;
  if (!error) return null;
  const { code, message } = error;
  const isTried = ['reconnecting', 'resting'].includes(snapshot.value.connection);
  return { code, message, retryAt: isTried ? reconnectAt : null };
}

/** Returns whether the outbox may speak now. (The outbox also waits for a pause.) */
export function gateIsOpen(snapshot: SessionSnapshot): boolean {
  const { client, user, model, playout } = snapshot.value;
  return (
    client === 'attached' &&
    user === 'silent' &&
    model !== 'generating' &&
    playout === 'drained' &&
    snapshot.hasTag('connected')
  );
}

/** Returns which side has the floor. The floor is derived and is not part of the state. */
export function floorOf(snapshot: SessionSnapshot): 'user' | 'model' | 'nobody' {
  const { user, model, playout } = snapshot.value;
  if (user !== 'silent') return 'user';
  return playout === 'playing' || model !== 'idle' ? 'model' : 'nobody';
}
