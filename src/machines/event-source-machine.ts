// The life of one event source of a service, across all its attempts.
//
//   created ─▶ live: starting ─▶ running        an attempt is under way
//               │ failed    ▲           │ stop
//               ▼           │           ▼
//   releasing: to_restart   │        releasing: for_good ─▶ stopped   (final)
//               └─▶ backing_off           ▲ stop, while it is being released already
//
// Owns:     whether an attempt is in progress, and when the next one starts.
// Does not: call the source, draw random numbers (the jitter comes with the event), or see the source's events.
//
// Invariants
//   EVENT-SOURCE-1. An attempt runs only in `live`, and only one at a time. Each attempt is released exactly once,
//        before the next one starts or the source is stopped.
//   EVENT-SOURCE-2. After each failure, the source is started again. The number of attempts is unlimited. The pause
//        doubles with each consecutive failure up to `maxDelayMs`, and the jitter shortens it by up to half.
//   EVENT-SOURCE-3. An attempt that has run for `stableMs` resets the failure count.
//   EVENT-SOURCE-4. Events of earlier attempts have no effect.
//   EVENT-SOURCE-5. After `source.stop`, no attempt starts. The source reaches `stopped` even if its release hangs.

import { assign, setup, type SnapshotFrom } from 'xstate';
import { backoffMs, type BackoffInput } from './backoff.ts';
import {
  activities,
  activity,
  deadline,
  effect,
  machineOptions,
  stopActivity,
  type Activity,
  type Deadline,
  type Stamped,
} from './effect.ts';

/** A service's event source and its restarts. */
export interface EventSourceInput extends BackoffInput {
  /** An attempt that runs for this long, in milliseconds, counts as a success. */
  readonly stableMs: number;
  /** The maximum time that the source may take to free its resources, in milliseconds. */
  readonly stopTimeoutMs: number;
}

interface EventSourceContext extends EventSourceInput {
  /** The number of the attempt, starting at 1. */
  readonly attempt: number;
  /** Consecutive failures. */
  readonly failures: number;
  /** The time at which the current attempt started, in milliseconds since 1970; 0 before the first attempt. */
  readonly startedAt: number;
  /**
   * The time at which a source that failed is started again, in milliseconds since 1970; 0 before the first failure.
   */
  readonly restartAt: number;
  /**
   * The time at which a source that has not stopped is abandoned, in milliseconds since 1970; 0 before the first stop.
   */
  readonly releaseBy: number;
}

type EventSourceFact =
  | { readonly type: 'source.start' }
  /** The source is running: it has said so, or its first event has arrived. */
  | { readonly type: 'source.started'; readonly attempt: number }
  /** `jitter`: uniform in [0, 1). */
  | { readonly type: 'source.failed'; readonly attempt: number; readonly jitter: number }
  | { readonly type: 'source.released'; readonly attempt: number }
  | { readonly type: 'source.stop' }
  | { readonly type: 'deadline.restart'; readonly dueAt: number }
  | { readonly type: 'deadline.release'; readonly dueAt: number };

/** The events of `eventSourceMachine`. */
export type EventSourceEvent = EventSourceFact & Stamped;

interface AttemptInput {
  readonly attempt: number;
}

type Args = { context: EventSourceContext };
const attemptOf = ({ context }: Args): AttemptInput => ({ attempt: context.attempt });

type Work =
  /** Starts the source. When this activity stops, the signal of the attempt aborts. */
  | Activity<'attempt', AttemptInput>
  /** Calls the source's `stop` function; `source.released` follows. */
  | Activity<'release', AttemptInput>
  | Deadline;

/** Starts an event source, restarts it after a failure, and releases it. */
export const eventSourceMachine = setup({
  types: {
    input: {} as EventSourceInput,
    context: {} as EventSourceContext,
    events: {} as EventSourceEvent,
  },
  actions: {
    ...activities<Work>(),
    /** The source did not stop in time and is abandoned. */
    abandoned: effect<AttemptInput>(),
    begin: assign(({ context }, { at }: Stamped) => ({
      attempt: context.attempt + 1,
      startedAt: at,
    })),
    countFailure: assign(({ context }, { at, jitter }: { at: number; jitter: number }) => {
      const isStable = at - context.startedAt >= context.stableMs;
      const failures = isStable ? 1 : context.failures + 1;
      return { failures, restartAt: at + backoffMs(context, failures, jitter) };
    }),
    startRelease: assign(({ context }, { at }: Stamped) => ({
      releaseBy: at + context.stopTimeoutMs,
    })),
  },
  guards: {
    isAttempt: ({ context }, { attempt }: AttemptInput) => attempt === context.attempt,
    isRelease: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.releaseBy,
    isRestart: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.restartAt,
  },
}).createMachine({
  id: 'eventSource',
  context: ({ input }) => ({
    baseDelayMs: input?.baseDelayMs ?? 0,
    maxDelayMs: input?.maxDelayMs ?? 0,
    stableMs: input?.stableMs ?? 0,
    stopTimeoutMs: input?.stopTimeoutMs ?? 0,
    attempt: 0,
    failures: 0,
    startedAt: 0,
    restartAt: 0,
    releaseBy: 0,
  }),
  initial: 'created',
  options: machineOptions,
  states: {
    created: {
      on: {
        'source.start': {
          target: 'live',
          actions: { type: 'begin', params: ({ event }) => event },
        },
        'source.stop': 'stopped',
      },
    },
    live: {
      initial: 'starting',
      entry: { type: 'startActivity', params: (args) => activity('attempt', attemptOf(args)) },
      exit: stopActivity('attempt'),
      states: {
        starting: {
          on: {
            'source.started': {
              guard: { type: 'isAttempt', params: ({ event }) => event },
              target: 'running',
            },
          },
        },
        running: {},
      },
      on: {
        'source.failed': {
          guard: { type: 'isAttempt', params: ({ event }) => event },
          target: 'releasing.to_restart',
          actions: [
            { type: 'countFailure', params: ({ event }) => event },
            { type: 'startRelease', params: ({ event }) => event },
          ],
        },
        'source.stop': {
          target: 'releasing.for_good',
          actions: { type: 'startRelease', params: ({ event }) => event },
        },
      },
    },
    releasing: {
      initial: 'to_restart',
      entry: [
        { type: 'startActivity', params: (args) => activity('release', attemptOf(args)) },
        {
          type: 'startActivity',
          params: ({ context }) => deadline('deadline.release', context.releaseBy),
        },
      ],
      exit: [stopActivity('release'), stopActivity('deadline')],
      states: {
        to_restart: {
          on: {
            'source.released': {
              guard: { type: 'isAttempt', params: ({ event }) => event },
              target: '#eventSource.backing_off',
            },
            'deadline.release': {
              guard: { type: 'isRelease', params: ({ event }) => event },
              target: '#eventSource.backing_off',
              actions: { type: 'abandoned', params: attemptOf },
            },
            // A release that is already in progress is not started a second time.
            'source.stop': 'for_good',
          },
        },
        for_good: {
          on: {
            'source.released': {
              guard: { type: 'isAttempt', params: ({ event }) => event },
              target: '#eventSource.stopped',
            },
            'deadline.release': {
              guard: { type: 'isRelease', params: ({ event }) => event },
              target: '#eventSource.stopped',
              actions: { type: 'abandoned', params: attemptOf },
            },
          },
        },
      },
    },
    backing_off: {
      entry: {
        type: 'startActivity',
        params: ({ context }) => deadline('deadline.restart', context.restartAt),
      },
      exit: stopActivity('deadline'),
      on: {
        'deadline.restart': {
          guard: { type: 'isRestart', params: ({ event }) => event },
          target: 'live',
          actions: { type: 'begin', params: ({ event }) => event },
        },
        'source.stop': 'stopped',
      },
    },
    stopped: { type: 'final' },
  },
});

/** A snapshot of `eventSourceMachine`. */
export type EventSourceSnapshot = SnapshotFrom<typeof eventSourceMachine>;
