// Explores every state of a schedule and checks its properties (SCHEDULE-1 to SCHEDULE-3).
//
// Time: due times are 1 to 4. The event for a due time names the next due time or none.

import {
  scheduleMachine,
  type ScheduleEvent,
  type ScheduleSnapshot,
} from '../../../src/machines/index.ts';
import { checkMachine } from '../../../src/testing/check/index.ts';
import { running, same } from './effects.ts';
import type { OnViolation } from './verdicts.ts';

type Machine = typeof scheduleMachine;
type S = ScheduleSnapshot;

const LAST = 4;

function scheduleEvents({ context: { dueAt } }: S): readonly ScheduleEvent[] {
  const nexts = [null, ...(dueAt < LAST ? [dueAt + 1] : [])];
  return [
    ...nexts.flatMap((next): ScheduleEvent[] => [
      { type: 'deadline.schedule', at: dueAt, dueAt, next },
    ]),
    // A due time from an earlier setting, and a next time that is not later.
    { type: 'deadline.schedule', at: dueAt, dueAt: dueAt - 1, next: dueAt },
    { type: 'deadline.schedule', at: dueAt, dueAt, next: dueAt },
    { type: 'schedule.started', at: dueAt, dueAt },
    { type: 'schedule.started', at: dueAt, dueAt: dueAt - 1 },
    ...[false, true].map((isTask): ScheduleEvent => ({
      type: 'schedule.moved',
      at: 0,
      dueAt: LAST,
      isTask,
    })),
    { type: 'schedule.cancelled', at: 0 },
  ];
}

/** The due times since the last setting, and whether the schedule was cancelled. */
interface Ghost {
  readonly due: readonly number[];
  readonly isCancelled: boolean;
}

/** Explores the schedule machine or a faulty version of it. */
export function checkSchedule(
  isTask: boolean,
  machine: Machine = scheduleMachine,
  onViolation: OnViolation = 'collect',
) {
  return checkMachine<Machine, Ghost>(machine, {
    name: 'schedule',
    input: { dueAt: 1, isTask },
    onViolation,
    events: scheduleEvents,
    ghost: {
      initial: { due: [], isCancelled: false },
      next({ due, isCancelled }, { event }, before, after) {
        const isDue =
          before.value === 'waiting' &&
          event.type === 'deadline.schedule' &&
          event.dueAt === before.context.dueAt;
        const isSet = event.type === 'schedule.moved' && before.status === 'active';
        return {
          due: isSet ? [] : isDue ? [...due, event.dueAt] : due,
          isCancelled:
            !isSet &&
            (isCancelled || (event.type === 'schedule.cancelled' && !after.matches('done'))),
        };
      },
    },
    invariants: {
      'SCHEDULE-1: each time is due once, and later than the ones before': (_snapshot, { due }) =>
        due.every((time, index) => time > (due[index - 1] ?? 0)),
      'SCHEDULE-2: a cancelled schedule does not wait': ({ value }, { isCancelled }) =>
        !isCancelled || value !== 'waiting',
      'SCHEDULE-3: waits for a time, or starts a task': (snapshot) =>
        same(
          running(snapshot),
          snapshot.value === 'waiting'
            ? ['deadline']
            : snapshot.value === 'starting'
              ? ['start']
              : [],
        ),
    },
    steps: {
      'a deadline that is not the armed one changes nothing': (before, event, after) =>
        event.type !== 'deadline.schedule' ||
        ('dueAt' in event && event.dueAt === before.context.dueAt) ||
        same([after.value, after.context], [before.value, before.context]),
      'SCHEDULE-2: a task that was due before the cancellation is started': (
        before,
        event,
        after,
      ) =>
        event.type !== 'schedule.cancelled' ||
        before.value !== 'starting' ||
        after.value === 'starting',
    },
    waits: {
      'SCHEDULE-3: each time comes': {
        when: ({ value }) => value === 'waiting',
        exits: ['deadline.schedule'],
      },
      'a task that was started ends the start': {
        when: ({ value }) => value === 'starting',
        exits: ['schedule.started'],
      },
    },
    reachable: {
      'a second time': (_snapshot, { due }) => due.length > 1,
      'the end': ({ value }) => value === 'done',
      'a cancellation': ({ value }) => value === 'cancelled',
    },
  });
}
