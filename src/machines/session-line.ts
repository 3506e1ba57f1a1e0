// The session's connection to the lead model: the machine's memory of it, and the transitions that several of
// its states share.

import type { Stamped } from './effect.ts';
import type { Failure } from './outcome.ts';
import type { Lost, SessionInput } from './session-events.ts';

export interface SessionContext extends Required<SessionInput> {
  /** Failed connections in a row. */
  readonly failures: number;
  readonly error: Failure | null;
  /** The transfer under way. */
  readonly transferId: string | null;
  readonly connectBy: number;
  readonly transferBy: number;
  readonly reconnectAt: number;
  readonly settleBy: number;
  readonly detachedUntil: number;
  readonly closeBy: number;
}

const countLost = {
  type: 'countFailure',
  params: ({ event }: { event: Lost }) => event,
} as const;

/** A connection that is not ready in time has failed; that took long enough to try again at once. */
export const countNotReady = {
  type: 'countFailure',
  params: ({ context, event }: { context: SessionContext; event: Stamped }): Lost => ({
    at: event.at,
    error: {
      code: 'CONNECT_TIMEOUT',
      message: `The connection was not ready after ${context.connectTimeoutMs} ms`,
      retryable: true,
    },
    retryInMs: 0,
  }),
} as const;

/** The transitions after the connection is lost, in every state that has one. */
export const lost = [
  {
    guard: { type: 'mayReconnect', params: ({ event }: { event: Lost }) => event },
    target: 'reconnecting',
    actions: countLost,
  },
  { target: 'closing', actions: countLost },
] as const;

/** Connections and clients of an earlier process are gone. */
export const backToStart = { target: 'created', actions: 'forgetFailures' } as const;

/** Reports how the transfer under way has ended. */
export function transferEnded<E>(
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
