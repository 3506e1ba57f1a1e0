// Faults planted in a schedule, each with the property that must catch it.

import { assign } from 'xstate';
import { scheduleMachine } from '../../../src/machines/index.ts';
import { candidates, mutate, provide, stateOf, type Fault } from './mutate.ts';

interface Due {
  readonly dueAt: number;
  readonly next: number | null;
}

export const scheduleFaults: readonly (Fault<typeof scheduleMachine> & { isTask: boolean })[] = [
  {
    fault: 'a time that does not follow is due again without end',
    machine: mutate(scheduleMachine, (chart) => {
      candidates(stateOf(chart, 'waiting').on['deadline.schedule'])[1] = {
        guard: ({ context, event }: { context: Due; event: Due }) =>
          event.dueAt === context.dueAt && event.next !== null,
        target: 'waiting',
        reenter: true,
        actions: assign({ dueAt: ({ event }: { event: Due }) => event.next }),
      };
    }),
    property: 'SCHEDULE-1: each time is due once, and later than the ones before',
    isTask: false,
  },
  {
    fault: 'a deadline of an earlier setting says the words of the present one',
    machine: provide(scheduleMachine, 'guards', { isDue: () => true }),
    property: 'a deadline that is not the armed one changes nothing',
    isTask: false,
  },
  {
    fault: 'a schedule that is cancelled while its task starts goes on',
    machine: mutate(scheduleMachine, (chart) => {
      stateOf(chart, 'starting').on['schedule.cancelled'] = { actions: assign({}) };
    }),
    property: 'SCHEDULE-2: a cancelled schedule does not wait',
    isTask: true,
  },
  {
    fault: 'a cancellation loses the task that was due before it',
    machine: mutate(scheduleMachine, (chart) => {
      stateOf(chart, 'starting').on['schedule.cancelled'] = 'cancelled';
    }),
    property: 'SCHEDULE-2: a task that was due before the cancellation is started',
    isTask: true,
  },
  {
    fault:
      'the due time arms nothing: the process dies before the task is started, and the next one does not start it',
    machine: mutate(scheduleMachine, (chart) => {
      stateOf(chart, 'starting').entry = [];
    }),
    property: 'SCHEDULE-3: waits for a time, or starts a task',
    isTask: true,
  },
  {
    fault: 'the last time is never due',
    machine: mutate(scheduleMachine, (chart) => {
      const { on } = stateOf(chart, 'waiting');
      on['deadline.schedule'] = candidates(on['deadline.schedule']).slice(0, 2);
    }),
    property: 'SCHEDULE-3: each time comes',
    isTask: false,
  },
];
