// Faults planted in a call that a client carries out, each with the property that must catch it.

import { clientCallMachine } from '../../../src/machines/index.ts';
import { candidates, forget, mutate, stateOf, type Fault } from './mutate.ts';

export const clientCallFaults: readonly Fault<typeof clientCallMachine>[] = [
  {
    fault: 'two tabs carry out the call: a claim does not look whether another tab has it',
    machine: mutate(clientCallMachine, (chart) => {
      stateOf(chart, 'claimed').on['client.claimed'] = stateOf(chart, 'waiting').on[
        'client.claimed'
      ];
    }),
    property: 'CLIENT-CALL-1: no client takes the call of another',
  },
  {
    fault: 'a page that is loaded again gets a call that the page before may have carried out',
    machine: mutate(clientCallMachine, (chart) => {
      const { on } = stateOf(chart, 'claimed');
      on['client.left'] = candidates(on['client.left']).map((each) => ({
        ...each,
        target: 'waiting',
      }));
    }),
    property: 'CLIENT-CALL-2: a call runs at one client only, unless it may run twice',
  },
  {
    fault: 'a stranger answers',
    machine: mutate(clientCallMachine, (chart) => {
      stateOf(chart, 'claimed').on['client.answered'] = 'answered';
    }),
    property: 'CLIENT-CALL-1: only the client that has the call answers it',
  },
  {
    fault: 'a call is lost when its page is loaded again: nothing ends it',
    machine: mutate(clientCallMachine, (chart) =>
      forget(stateOf(chart, 'left'), 'deadline.client'),
    ),
    property: 'CLIENT-CALL-3: every open call ends by a deadline',
  },
  {
    fault: 'a call waits for a page without end',
    machine: mutate(clientCallMachine, (chart) =>
      forget(stateOf(chart, 'waiting'), 'deadline.client'),
    ),
    property: 'CLIENT-CALL-3: every open call ends by a deadline',
  },
];
