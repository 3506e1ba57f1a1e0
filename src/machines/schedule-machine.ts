// The life of one schedule of a session. A schedule consists of one or more times, at each of which a message is spoken
// or a task is started.
//
//   waiting ─due, words─▶ waiting (at its next time) | done
//      │  └──due, a task─▶ starting ─started─▶ waiting (at its next time) | done
//      └──cancelled─▶ cancelled
//
// Owns:     the time that the schedule is waiting for, and the order of its times.
// Does not: store messages and tasks, know calendars (each due event contains the next time), or start a task.
//
// Invariants
//   SCHEDULE-1. Each time becomes due at most once, and times become due in ascending order.
//   SCHEDULE-2. A cancelled schedule never becomes due again. A task that became due before the cancellation is still
//       started.
//   SCHEDULE-3. A schedule is waiting for a time, is starting a task, or has ended.

import { and, assign, setup, type SnapshotFrom } from 'xstate';
import {
  activities,
  activity,
  machineOptions,
  stopActivity,
  type Activity,
  type Deadline,
  type Stamped,
} from './effect.ts';

interface ScheduleInput {
  /** The first time, in milliseconds since 1970. */
  readonly dueAt: number;
  /** Whether the schedule starts a task rather than speaking a message. */
  readonly isTask: boolean;
}

interface ScheduleContext extends ScheduleInput {
  /** The time after the one whose task is being started; null if there is none. */
  readonly next: number | null;
}

interface Due extends Stamped {
  /** One of the schedule's times is due. */
  readonly type: 'deadline.schedule';
  /** The time that is due, in milliseconds since 1970. */
  readonly dueAt: number;
  /** The following time. @defaultValue null: there is none */
  readonly next?: number | null;
}

/** The events of `scheduleMachine`. */
export type ScheduleEvent =
  | Due
  /** Replaces the schedule's time and content. */
  | ({ readonly type: 'schedule.moved' } & ScheduleInput & Stamped)
  | ({ readonly type: 'schedule.started'; readonly dueAt: number } & Stamped)
  | ({ readonly type: 'schedule.cancelled' } & Stamped);

/** Returns the next time after a due time. A time that is not later is ignored, because it would be due forever. */
const nextOf = ({ event: { dueAt, next } }: { event: Due }): number | null =>
  typeof next === 'number' && next > dueAt ? next : null;

/** One schedule of a session. */
export const scheduleMachine = setup({
  types: {
    input: {} as ScheduleInput,
    context: {} as ScheduleContext,
    events: {} as ScheduleEvent,
  },
  actions: {
    ...activities<Deadline | Activity<'start', { readonly dueAt: number }>>(),
    advance: assign(({ context }) => ({ dueAt: context.next ?? context.dueAt, next: null })),
  },
  guards: {
    isDue: ({ context, event }) => 'dueAt' in event && event.dueAt === context.dueAt,
    isTask: ({ context }) => context.isTask,
    follows: ({ event }) => event.type === 'deadline.schedule' && nextOf({ event }) !== null,
    repeats: ({ context }) => context.next !== null,
  },
}).createMachine({
  id: 'schedule',
  context: ({ input }) => ({
    dueAt: input?.dueAt ?? 0,
    isTask: input?.isTask ?? false,
    next: null,
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
          input: { dueAt, event: 'deadline.schedule', byClock: true },
        }),
      },
      exit: stopActivity('deadline'),
      on: {
        'schedule.moved': {
          target: 'waiting',
          reenter: true,
          actions: assign(({ event: { dueAt, isTask } }) => ({ dueAt, isTask })),
        },
        'schedule.cancelled': 'cancelled',
        'deadline.schedule': [
          {
            guard: and(['isDue', 'isTask']),
            target: 'starting',
            actions: assign({ next: nextOf }),
          },
          {
            guard: and(['isDue', 'follows']),
            target: 'waiting',
            reenter: true,
            actions: [assign({ next: nextOf }), 'advance'],
          },
          { guard: 'isDue', target: 'done' },
        ],
      },
    },
    starting: {
      entry: {
        type: 'startActivity',
        params: ({ context: { dueAt } }) => activity('start', { dueAt }),
      },
      exit: stopActivity('start'),
      on: {
        'schedule.moved': {
          actions: assign(({ event: { dueAt, isTask } }) => ({ next: dueAt, isTask })),
        },
        'schedule.cancelled': { actions: assign({ next: null }) },
        'schedule.started': [
          { guard: and(['isDue', 'repeats']), target: 'waiting', actions: 'advance' },
          { guard: 'isDue', target: 'done' },
        ],
      },
    },
    done: { type: 'final' },
    cancelled: { type: 'final' },
  },
});

/** A snapshot of `scheduleMachine`. */
export type ScheduleSnapshot = SnapshotFrom<typeof scheduleMachine>;
