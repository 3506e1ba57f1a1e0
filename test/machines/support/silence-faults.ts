// Faults planted in a silence, each with the property that must catch it.

import { assign } from 'xstate';
import { silenceMachine } from '../../../src/machines/silence-machine.ts';
import { forget, mutate, provide, stateOf, type Fault } from './mutate.ts';

type Machine = typeof silenceMachine;

export const silenceFaults: readonly Fault<Machine>[] = [
  {
    fault: 'the clocks begin anew after a tool',
    machine: mutate(silenceMachine, (chart) => {
      stateOf(chart, 'waiting').entry = 'beginAnew';
    }),
    property: 'SILENCE-1: what is left is what has not passed',
  },
  {
    fault: 'the clocks go on while somebody speaks',
    machine: mutate(silenceMachine, (chart) => {
      delete stateOf(chart, 'still', 'nudge', 'on')['exit'];
    }),
    property: 'SILENCE-1: the clocks run in a silence only',
  },
  {
    fault: 'a nudge is never due',
    machine: mutate(silenceMachine, (chart) =>
      forget(stateOf(chart, 'still', 'nudge', 'on'), 'deadline.nudge'),
    ),
    property: 'SILENCE-2: a nudge comes',
  },
  {
    fault: 'who is away goes away again',
    machine: provide(silenceMachine, 'actions', {
      beginAnew: assign({ nudgeLeftMs: 2, awayLeftMs: 3 }),
    }),
    property: 'SILENCE-2: nobody who is away goes away',
  },
  {
    fault: 'who is away does not come back',
    machine: mutate(silenceMachine, (chart) => {
      forget(chart, 'user.noticed');
    }),
    property: 'SILENCE-3: who is away can come back',
  },
  {
    fault: 'a deadline of an earlier silence counts',
    machine: provide(silenceMachine, 'guards', { isNudge: () => true }),
    property: 'SILENCE-1: a deadline that is not the armed one is ignored',
  },
];
