// The life of one service: events arrive, and an agent examines them one by one.
//
//   created ─▶ idle ⇄ invoking            one event is examined
//                ▲        │ refused
//                └─ waiting (backing off)     stop, from anywhere ─▶ stopped   (final)
//
// Owns:     the order of the waiting events, and what becomes of each event.
// Does not: store the events' content, run the agent, inform the user, or manage a source (event-source-machine).
//
// Invariants
//   SERVICE-MACHINE-1. No event is lost silently: each one is settled or dropped exactly once, and each drop has a
//       reason.
//   SERVICE-MACHINE-2. Only one invocation runs at a time.
//   SERVICE-MACHINE-3. Urgent events precede normal ones; within each class, the order is first come, first served. If
//        an invocation is refused, its event returns to the front of its class.
//   SERVICE-MACHINE-4. At most `maxWaiting` events wait, not counting the event whose invocation is in progress or was
//        refused. If the queue is full, an urgent event takes the place of the newest normal event; any other new event
//        is dropped.
//   SERVICE-MACHINE-5. A refused invocation is retried after a growing pause, up to `maxInvocations` attempts. If the
//        refusal is not retryable, the event is dropped.
//   SERVICE-MACHINE-6. When the service is stopped, it drops the waiting events, aborts the invocation and stops the
//        sources, each exactly once. Nothing happens after that. It also stops sources that have not started, although
//        these have no resources to release.

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

/** The limits and pauses of a service. */
export interface ServiceInput extends BackoffInput {
  /** The maximum number of waiting events. A further event is dropped or replaces another one (SERVICE-MACHINE-4). */
  readonly maxWaiting: number;
  /** The maximum number of attempts to invoke the agent for one event. */
  readonly maxInvocations: number;
}

/** An `urgent` event may interrupt the current speech. */
export type EventPriority = 'normal' | 'urgent';

interface WaitingEvent {
  /** The id under which the service stores the event's content. */
  readonly eventId: string;
  /** The event's class; urgent events are examined before normal ones. */
  readonly priority: EventPriority;
  /** The number of times that the invocation has been refused. */
  readonly refusals: number;
}

interface ServiceContext extends ServiceInput {
  /** The waiting events, in the order in which they will be examined. */
  readonly waiting: readonly WaitingEvent[];
  /** The event that is being examined; null if none is. */
  readonly current: WaitingEvent | null;
  /** The time at which a refused invocation is repeated, in milliseconds since 1970; 0 before the first refusal. */
  readonly retryAt: number;
}

/** Why the service did not examine an event. */
export type EventDropReason = 'full' | 'displaced' | 'refused' | 'stopped';

type ServiceFact =
  | { readonly type: 'service.start' }
  | { readonly type: 'service.stop' }
  | {
      readonly type: 'event.arrived';
      readonly eventId: string;
      readonly priority: EventPriority;
    }
  | { readonly type: 'invocation.ended'; readonly eventId: string }
  /** `jitter`: uniform in [0, 1). */
  | {
      readonly type: 'invocation.refused';
      readonly eventId: string;
      readonly retryable: boolean;
      readonly jitter: number;
    }
  | { readonly type: 'deadline.retry'; readonly dueAt: number };

/** The events of `serviceMachine`. */
export type ServiceMachineEvent = ServiceFact & Stamped;

type Refused = Extract<ServiceMachineEvent, { type: 'invocation.refused' }>;
type Args = { context: ServiceContext };

const idOfCurrent = ({ context }: Args) => ({ eventId: context.current?.eventId ?? '' });

/** Queues the events of a service's sources, and has a subagent examine one event at a time. */
export const serviceMachine = setup({
  types: {
    input: {} as ServiceInput,
    context: {} as ServiceContext,
    events: {} as ServiceMachineEvent,
  },
  actions: {
    ...activities<Deadline | Activity<'invocation', { readonly eventId: string }>>(),
    startSources: effect<object>(),
    stopSources: effect<object>(),
    /** The event is waiting to be examined. */
    accepted: effect<{ readonly eventId: string }>(),
    /** The event has been examined. */
    settled: effect<{ readonly eventId: string }>(),
    dropped: effect<{ readonly eventIds: readonly string[]; readonly reason: EventDropReason }>(),
    add: assign(({ context }, { eventId, priority }: Omit<WaitingEvent, 'refusals'>) => ({
      waiting: inserted(context.waiting, { eventId, priority, refusals: 0 }, 'back'),
    })),
    removeDisplaced: assign(({ context }) => {
      const youngest = displaced(context);
      return { waiting: context.waiting.filter((event) => event !== youngest) };
    }),
    take: assign(({ context }) => ({
      current: context.waiting[0] ?? null,
      waiting: context.waiting.slice(1),
    })),
    clear: assign({ current: null }),
    putBack: assign(({ context }, { at, jitter }: Pick<Refused, 'at' | 'jitter'>) => {
      if (context.current === null) return {};
      const refusals = context.current.refusals + 1;
      return {
        current: null,
        waiting: inserted(context.waiting, { ...context.current, refusals }, 'front'),
        retryAt: at + backoffMs(context, refusals, jitter),
      };
    }),
    forgetAll: assign({ waiting: [], current: null }),
  },
  guards: {
    hasWaiting: ({ context }) => context.waiting.length > 0,
    isKnown: ({ context }, { eventId }: { eventId: string }) =>
      context.current?.eventId === eventId ||
      context.waiting.some((event) => event.eventId === eventId),
    hasRoom: ({ context }) => context.waiting.length < context.maxWaiting,
    displaces: ({ context }, { priority }: { priority: EventPriority }) =>
      priority === 'urgent' && displaced(context) !== undefined,
    isCurrent: ({ context }, { eventId }: { eventId: string }) =>
      context.current?.eventId === eventId,
    mayTryAgain: ({ context }, { eventId, retryable }: Refused) =>
      context.current?.eventId === eventId &&
      retryable &&
      context.current.refusals + 1 < context.maxInvocations,
    isThisDeadline: ({ context }, { dueAt }: { dueAt: number }) => dueAt === context.retryAt,
  },
}).createMachine({
  id: 'service',
  context: ({ input }) => ({
    maxWaiting: input?.maxWaiting ?? 1,
    maxInvocations: input?.maxInvocations ?? 1,
    baseDelayMs: input?.baseDelayMs ?? 0,
    maxDelayMs: input?.maxDelayMs ?? 0,
    waiting: [],
    current: null,
    retryAt: 0,
  }),
  initial: 'created',
  options: machineOptions,
  states: {
    created: {
      on: {
        'service.start': { target: 'working', actions: { type: 'startSources', params: {} } },
        'service.stop': { target: 'stopped', actions: { type: 'stopSources', params: {} } },
      },
    },
    working: {
      initial: 'idle',
      on: {
        'event.arrived': [
          // The service already has the event, because its message arrived twice.
          { guard: { type: 'isKnown', params: ({ event }) => event } },
          {
            guard: 'hasRoom',
            actions: [
              { type: 'add', params: ({ event }) => event },
              { type: 'accepted', params: ({ event }) => ({ eventId: event.eventId }) },
            ],
          },
          {
            guard: { type: 'displaces', params: ({ event }) => event },
            actions: [
              {
                type: 'dropped',
                params: ({ context }) => ({
                  eventIds: [displaced(context)?.eventId ?? ''],
                  reason: 'displaced',
                }),
              },
              'removeDisplaced',
              { type: 'add', params: ({ event }) => event },
              { type: 'accepted', params: ({ event }) => ({ eventId: event.eventId }) },
            ],
          },
          {
            actions: {
              type: 'dropped',
              params: ({ event }) => ({ eventIds: [event.eventId], reason: 'full' }),
            },
          },
        ],
        'service.stop': {
          target: 'stopped',
          actions: [
            {
              type: 'dropped',
              params: ({ context }) => ({
                eventIds: [context.current, ...context.waiting].flatMap((event) =>
                  event ? [event.eventId] : [],
                ),
                reason: 'stopped',
              }),
            },
            'forgetAll',
            { type: 'stopSources', params: {} },
          ],
        },
      },
      states: {
        idle: { always: { guard: 'hasWaiting', target: 'invoking', actions: 'take' } },
        invoking: {
          entry: {
            type: 'startActivity',
            params: (args) => activity('invocation', idOfCurrent(args)),
          },
          exit: stopActivity('invocation'),
          on: {
            'invocation.ended': {
              guard: { type: 'isCurrent', params: ({ event }) => event },
              target: 'idle',
              actions: [{ type: 'settled', params: idOfCurrent }, 'clear'],
            },
            'invocation.refused': [
              {
                guard: { type: 'mayTryAgain', params: ({ event }) => event },
                target: 'waiting',
                actions: { type: 'putBack', params: ({ event }) => event },
              },
              {
                guard: { type: 'isCurrent', params: ({ event }) => event },
                target: 'idle',
                actions: [
                  {
                    type: 'dropped',
                    params: ({ event }) => ({ eventIds: [event.eventId], reason: 'refused' }),
                  },
                  'clear',
                ],
              },
            ],
          },
        },
        waiting: {
          entry: {
            type: 'startActivity',
            params: ({ context }) => deadline('deadline.retry', context.retryAt),
          },
          exit: stopActivity('deadline'),
          on: {
            'deadline.retry': {
              guard: { type: 'isThisDeadline', params: ({ event }) => event },
              target: 'idle',
            },
          },
        },
      },
    },
    stopped: { type: 'final' },
  },
});

/** A snapshot of `serviceMachine`. */
export type ServiceSnapshot = SnapshotFrom<typeof serviceMachine>;

/** Returns the event that is dropped for an urgent one, which is the newest normal event. */
function displaced({ waiting }: ServiceContext): WaitingEvent | undefined {
  return waiting.findLast(({ priority }) => priority === 'normal');
}

/** Inserts urgent events before normal ones, at the front or the back of their class. */
function inserted(
  waiting: readonly WaitingEvent[],
  event: WaitingEvent,
  where: 'front' | 'back',
): readonly WaitingEvent[] {
  const urgent = waiting.filter(({ priority }) => priority === 'urgent');
  const normal = waiting.filter(({ priority }) => priority === 'normal');
  const own = event.priority === 'urgent' ? urgent : normal;
  if (where === 'front') own.unshift(event);
  else own.push(event);
  return [...urgent, ...normal];
}

/** The event that each of these effects sends to all sources. */
const TO_SOURCES = { startSources: 'source.start', stopSources: 'source.stop' } as const;

/**
 * Returns the messages that a service's effect sends to its sources. The function is pure, so the model checker can
 * check the same composition that runs in production.
 */
export function sourceMessages(effectName: string, sources: readonly string[]) {
  if (effectName !== 'startSources' && effectName !== 'stopSources') return [];
  const event = { type: TO_SOURCES[effectName] };
  return sources.map((source) => ({ actor: `source:${source}` as const, event }));
}
