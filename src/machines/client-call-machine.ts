// The life of one tool call that one of the user's clients (a page or a program) executes.
//
//   waiting ─claimed▶ claimed ─answered▶ answered | failed
//      ▲                 │ left, and the tool is idempotent ─▶ waiting
//      │                 ▼
//      └─────────────  left ─▶ claimed (the same client), in_doubt
//   waiting ─▶ absent          any before the end ─▶ timed_out | cancelled
//
// Owns:     the client that may answer the call, and the deadlines of the call.
// Does not: store the arguments and the result, manage the clients' connections, or run the tool.
//
// Invariants
//   CLIENT-CALL-1. Only one client at a time has the call, and only that client can answer it.
//   CLIENT-CALL-2. Once a client has claimed a call, the call is not offered to another client unless its tool is
//       idempotent.
//   CLIENT-CALL-3. Each call ends exactly once, at the latest when its time limit is reached. Without a client, the
//       call waits until its time limit or (with `absent: 'fail'`) for `ABSENT_MS`.
//   CLIENT-CALL-4. If a call ends without a result, it records the client that had it last, because that client may
//       have executed it.

import { assign, setup, type SnapshotFrom } from 'xstate';
import {
  activities,
  deadline,
  machineOptions,
  stopActivity,
  type Deadline,
  type Stamped,
} from './effect.ts';

/** The maximum time that a call with `absent: 'fail'` waits for a client. */
const ABSENT_MS = 5_000;

/**
 * The time for which a client that has left keeps its call; most lost connections are restored within seconds.
 */
const LEFT_MS = 30_000;

/** A call that a client executes. */
export interface ClientCallInput extends Stamped {
  /** The subagent that made the call; null if the lead agent made it. */
  readonly subagentId: string | null;
  /** The id of the call in the conversation with the model. */
  readonly callId: string;
  /** The maximum time from the call to its result, including the wait for a client, in milliseconds. */
  readonly timeoutMs: number;
  /** Whether the call waits for a client until its time limit, or fails if no client takes it for five seconds. */
  readonly absent: 'wait' | 'fail';
  /** Whether another client may execute the call after the client that had it has left. */
  readonly idempotent: boolean;
}

interface ClientCallContext extends Omit<ClientCallInput, 'at' | 'timeoutMs'> {
  /** The client that has the call or had it last; null if no client ever had it. */
  readonly by: string | null;
  /** The time at which the call times out. */
  readonly endsAt: number;
  /** The time at which the current state ends. */
  readonly dueAt: number;
}

type ClientCallFact =
  | { readonly type: 'client.claimed'; readonly by: string }
  /** `by` is null if all clients have left because the session's process has ended. */
  | { readonly type: 'client.left'; readonly by: string | null }
  /** `failed`: the client could not execute the call. @defaultValue false */
  | { readonly type: 'client.answered'; readonly by: string; readonly failed?: boolean }
  | { readonly type: 'client.cancelled' }
  | { readonly type: 'deadline.client'; readonly dueAt: number };

/** The events of `clientCallMachine`. */
export type ClientCallEvent = ClientCallFact & Stamped;

/** A call that one of the user's clients executes. */
export const clientCallMachine = setup({
  types: {
    input: {} as ClientCallInput,
    context: {} as ClientCallContext,
    events: {} as ClientCallEvent,
  },
  actions: {
    ...activities<Deadline>(),
    wait: assign(({ context }, { at }: Stamped) => ({
      by: null,
      dueAt: context.absent === 'fail' ? Math.min(context.endsAt, at + ABSENT_MS) : context.endsAt,
    })),
    claim: assign(({ context }, { by }: { by: string }) => ({ by, dueAt: context.endsAt })),
    keep: assign(({ context }, { at }: Stamped) => ({
      dueAt: Math.min(context.endsAt, at + LEFT_MS),
    })),
  },
  guards: {
    isHolder: ({ context }, { by }: { by: string | null }) => by === null || by === context.by,
    isEveryone: (_, { by }: { by: string | null }) => by === null,
    isReleased: ({ context }, { by }: { by: string | null }) =>
      context.idempotent && (by === null || by === context.by),
    isFailure: ({ context }, { by, failed }: { by: string; failed?: boolean }) =>
      failed === true && by === context.by,
    isDue: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.dueAt,
    isAbsent: ({ context }, { dueAt }: { dueAt: number }) =>
      context.absent === 'fail' && dueAt === context.dueAt,
  },
}).createMachine({
  id: 'clientCall',
  context: ({ input }) => {
    const absent = input?.absent ?? 'wait';
    const at = input?.at ?? 0;
    const endsAt = at + (input?.timeoutMs ?? 0);
    return {
      subagentId: input?.subagentId ?? null,
      callId: input?.callId ?? '',
      absent,
      idempotent: input?.idempotent ?? false,
      by: null,
      endsAt,
      dueAt: absent === 'fail' ? Math.min(endsAt, at + ABSENT_MS) : endsAt,
    };
  },
  initial: 'waiting',
  options: machineOptions,
  states: {
    waiting: {
      entry: untilDue(),
      exit: stopActivity('deadline'),
      on: {
        'client.claimed': {
          target: 'claimed',
          actions: { type: 'claim', params: ({ event }) => event },
        },
        'client.cancelled': 'cancelled',
        'deadline.client': [
          { guard: { type: 'isAbsent', params: ({ event }) => event }, target: 'absent' },
          { guard: { type: 'isDue', params: ({ event }) => event }, target: 'timed_out' },
        ],
      },
    },
    claimed: {
      entry: untilDue(),
      exit: stopActivity('deadline'),
      on: {
        ...answered(),
        'client.left': [
          {
            guard: { type: 'isReleased', params: ({ event }) => event },
            target: 'waiting',
            actions: { type: 'wait', params: ({ event }) => event },
          },
          {
            guard: { type: 'isHolder', params: ({ event }) => event },
            target: 'left',
            actions: { type: 'keep', params: ({ event }) => event },
          },
        ],
        'client.cancelled': 'cancelled',
        'deadline.client': {
          guard: { type: 'isDue', params: ({ event }) => event },
          target: 'timed_out',
        },
      },
    },
    left: {
      entry: untilDue(),
      exit: stopActivity('deadline'),
      on: {
        ...answered(),
        // While no process was running the session, the client could not return.
        'client.left': {
          guard: { type: 'isEveryone', params: ({ event }) => event },
          target: 'left',
          reenter: true,
          actions: { type: 'keep', params: ({ event }) => event },
        },
        'client.claimed': {
          guard: { type: 'isHolder', params: ({ event }) => event },
          target: 'claimed',
          actions: { type: 'claim', params: ({ event }) => event },
        },
        'client.cancelled': 'cancelled',
        'deadline.client': {
          guard: { type: 'isDue', params: ({ event }) => event },
          target: 'in_doubt',
        },
      },
    },
    answered: { type: 'final' },
    failed: { type: 'final' },
    absent: { type: 'final' },
    timed_out: { type: 'final' },
    in_doubt: { type: 'final' },
    cancelled: { type: 'final' },
  },
});

/** A snapshot of `clientCallMachine`. */
export type ClientCallSnapshot = SnapshotFrom<typeof clientCallMachine>;

function untilDue() {
  return {
    type: 'startActivity',
    params: ({ context }: { context: ClientCallContext }) =>
      deadline('deadline.client', context.dueAt),
  } as const;
}

function answered() {
  return {
    'client.answered': [
      { guard: { type: 'isFailure', params: answerIn }, target: 'failed' },
      { guard: { type: 'isHolder', params: answerIn }, target: 'answered' },
    ],
  } as const;
}

type Answer = Extract<ClientCallEvent, { readonly type: 'client.answered' }>;

function answerIn({ event }: { readonly event: Answer }): Answer {
  return event;
}
