// Faults planted in a tool call, each with the property that must catch it.

import { toolCallMachine } from '../../../src/machines/index.ts';
import { candidates, forget, mutate, provide, stateOf, type Fault } from './mutate.ts';

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
      forget(stateOf(chart, 'executing', 'awaited'), 'deadline.execution'),
    ),
    property: 'executing ends by a deadline',
  },
  {
    fault: 'the result of a detached tool is also the answer to its call: it is told twice',
    machine: mutate(toolCallMachine, (chart) => {
      const { on } = stateOf(chart, 'executing', 'detached');
      const { on: awaited } = stateOf(chart, 'executing', 'awaited');
      on['call.executed'] = candidates(awaited['call.executed']).slice(1);
    }),
    property: 'TOOL-CALL-1: at most one answer',
  },
  {
    fault: 'the result of a detached tool is lost',
    machine: mutate(toolCallMachine, (chart) => {
      const { on } = stateOf(chart, 'executing', 'detached');
      on['call.executed'] = '#toolCall.answered';
    }),
    property: 'TOOL-CALL-6: a detached tool has a place, and no other call has one',
  },
  {
    fault: 'a tool is detached without a place for its result',
    machine: mutate(toolCallMachine, (chart) => {
      stateOf(chart, 'executing', 'awaited').on['deadline.detachment'] = 'detached';
    }),
    property: 'TOOL-CALL-6: a detached tool has a place, and no other call has one',
  },
  {
    fault: 'a detached tool runs without a time limit',
    machine: mutate(toolCallMachine, (chart) =>
      forget(stateOf(chart, 'executing', 'detached'), 'deadline.execution'),
    ),
    property: 'executing ends by a deadline',
  },
  {
    fault: 'the words that caused a call detach it',
    machine: provide(toolCallMachine, 'guards', {
      isTalkedOver: ({ event }: { event: { type: string } }) => event.type === 'call.talkedOver',
    }),
    property: 'TOOL-CALL-6: words that began before the run, or that may wait, change nothing',
  },
];
