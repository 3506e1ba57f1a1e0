// Planted faults of a tool call, each with the property that must catch it.

import { toolCallMachine } from '../../../src/machines/index.ts';
import { candidates, forget, mutate, stateOf, type Fault } from './mutate.ts';

export const toolCallFaults: readonly Fault<typeof toolCallMachine>[] = [
  {
    fault: 'a call that was answered is answered again when it is cancelled',
    machine: mutate(toolCallMachine, (chart) => {
      const { on } = stateOf(chart, 'delegated');
      on['call.cancel'] = candidates(on['call.cancel']).slice(1);
    }),
    property: 'TOOL-CALL-1: at most one answer',
  },
  {
    fault: 'an invalid call is not answered',
    machine: mutate(toolCallMachine, (chart) => {
      stateOf(chart, 'received').on['call.invalid'] = 'answered';
    }),
    property: 'TOOL-CALL-1: no end without an answer',
  },
  {
    fault: 'accepted work is delegated again',
    machine: mutate(toolCallMachine, (chart) => {
      const { entry } = stateOf(chart, 'acknowledged');
      stateOf(chart, 'delegated').entry = entry;
    }),
    property: 'TOOL-CALL-2: delegated at most once, settled at most once',
  },
  {
    fault: 'a result can be cancelled before it was heard',
    machine: mutate(toolCallMachine, (chart) => {
      stateOf(chart, 'settled').on['call.cancel'] = 'cancelled';
    }),
    property: 'TOOL-CALL-3: a settled result stays until its delivery is over',
  },
  {
    fault: 'what was cancelled is answered after all',
    machine: mutate(toolCallMachine, (chart) => {
      stateOf(chart, 'cancelled').on['call.executed'] = 'answered';
    }),
    property: 'nothing leaves a final state',
  },
  {
    fault: 'a tool that never settles is waited for without end',
    machine: mutate(toolCallMachine, (chart) =>
      forget(stateOf(chart, 'executing'), 'deadline.execution'),
    ),
    property: 'executing ends by a deadline',
  },
];
