// Faults planted in a rotation, each with the property that must catch it.

import { rotationMachine } from '../../../src/machines/rotation-machine.ts';
import { mutate, provide, stateOf, type Fault } from './mutate.ts';

type Machine = typeof rotationMachine;

export const rotationFaults: readonly Fault<Machine>[] = [
  {
    fault: 'a candidate is left behind by a transfer',
    machine: mutate(rotationMachine, (chart) => {
      stateOf(chart, 'making').on['transfer.began'] = 'held';
    }),
    property: 'ROTATION-1: there is one candidate while one is made, else none',
  },
  {
    fault: 'it breaks in on who speaks',
    machine: provide(rotationMachine, 'guards', { isIdle: () => true }),
    property: 'ROTATION-2: the exchange is made while both are idle, or at the last moment',
  },
  {
    fault: 'it gives up what cannot be gone on from',
    machine: provide(rotationMachine, 'guards', {
      canResume: () => true,
      isGoodMoment: () => true,
    }),
    property: 'ROTATION-2: one that is closed first can be gone on from, unless it is late',
  },
  {
    fault: 'a candidate that stands ready is dropped with the connection',
    machine: mutate(rotationMachine, (chart) => {
      stateOf(chart, 'making', 'prepared').on['connection.lost'] = {
        target: '#rotation.idle',
        actions: { type: 'drop', params: {} },
      };
    }),
    property: 'ROTATION-2: a ready candidate takes the place of one that is lost',
  },
  {
    fault: 'it waits for a pause for ever',
    machine: mutate(rotationMachine, (chart) => {
      delete stateOf(chart, 'making', 'prepared').on['deadline.last'];
    }),
    property: 'ROTATION-2: who waits for a pause waits until the last moment only',
  },
  {
    fault: 'it begins in the middle of a transfer',
    machine: mutate(rotationMachine, (chart) => {
      stateOf(chart, 'held').on['connection.expiring'] = 'making';
    }),
    property: 'ROTATION-3: nothing is exchanged during a transfer',
  },
  {
    fault: 'a failure is tried again without end at once',
    machine: mutate(rotationMachine, (chart) => {
      stateOf(chart, 'making').on['candidate.lost'] = { target: '#rotation.making', reenter: true };
    }),
    property: 'ROTATION-4: after a failure there is a pause that grows',
  },
  {
    fault: 'a candidate that says nothing is waited for',
    machine: mutate(rotationMachine, (chart) => {
      delete stateOf(chart, 'making', 'preparing').on['deadline.attempt'];
    }),
    property: 'ROTATION-4: a candidate that says nothing is given up',
  },
];
