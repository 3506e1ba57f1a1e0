// What could be wrong with a subagent, each with the property that must catch it.

import { assign } from 'xstate';
import { subagentMachine, type StepCall } from '../../../src/machines/index.ts';
import { candidates, forget, mutate, provide, stateOf, without, type Fault } from './mutate.ts';

type Machine = typeof subagentMachine;
type Call = StepCall & { readonly settled: boolean };

/** It is cancelled in mid-question and does not say so. */
export const neverWithdrawn = mutate(subagentMachine, (chart) => {
  const cancel = stateOf(chart, 'waiting_for_input').on['subagent.cancel'] as { actions: unknown };
  cancel.actions = without(cancel.actions, 'withdraw');
});

export const subagentFaults: readonly Fault<Machine>[] = [
  {
    fault: 'a second ending is accepted',
    machine: mutate(subagentMachine, (chart) => {
      chart.on = { 'subagent.cancel': '.cancelled' };
    }),
    property: 'nothing leaves a final state',
  },
  {
    fault: 'the clock runs while it waits',
    machine: provide(subagentMachine, 'actions', { stopClock: () => {} }),
    property: 'S2: the clock starts with running and stops with it',
  },
  {
    fault: 'the deadline of an earlier stretch counts',
    machine: provide(subagentMachine, 'guards', { isThisDeadline: () => true }),
    property: 'S2: a deadline that is not the armed one is ignored',
  },
  {
    fault: 'a run has no time limit',
    machine: mutate(subagentMachine, (chart) => forget(stateOf(chart, 'running'), 'deadline.run')),
    property: 'running ends by a deadline',
  },
  {
    fault: 'questions are asked before the calls are settled',
    machine: mutate(subagentMachine, (chart) => {
      const deciding = stateOf(chart, 'running', 'deciding');
      const [act, ask, think] = candidates(deciding.always);
      deciding.always = [ask, act, think];
    }),
    property:
      'S3: while it waits for the user no call is unsettled but questions, and nothing runs',
  },
  {
    fault: 'the answer to an earlier step counts',
    machine: provide(subagentMachine, 'guards', { isThisStep: () => true }),
    property: 'S4: what belongs to another step or question is ignored',
  },
  {
    fault: 'a call runs without consent',
    machine: provide(subagentMachine, 'actions', {
      settleAsk: assign(({ context }: { context: { calls: readonly Call[] } }) => {
        const head = context.calls.find(({ kind, settled }) => kind !== 'tool' && !settled);
        const settle = (call: Call): Call =>
          call.kind === 'approval' ? { ...call, kind: 'tool' } : { ...call, settled: true };
        return { calls: context.calls.map((call) => (call === head ? settle(call) : call)) };
      }),
    }),
    property: 'S5: a call that needs consent becomes runnable by consent only',
  },
  {
    fault: 'unanswered questions do not count',
    machine: provide(subagentMachine, 'actions', { countMiss: () => {} }),
    property: 'S6: a miss counts, an answer starts the count again, the last miss ends it',
  },
  {
    fault: 'calls of the last step are run',
    machine: mutate(subagentMachine, (chart) => {
      const { on } = stateOf(chart, 'running', 'thinking');
      on['model.responded'] = candidates(on['model.responded']).toSpliced(1, 1);
    }),
    property: 'S7: calls of the last step are not run',
  },
  {
    fault: 'it keeps its slot while it waits',
    machine: mutate(subagentMachine, (chart) => {
      const running = stateOf(chart, 'running');
      running.exit = without(running.exit, 'releaseSlot');
    }),
    property: 'S8: a slot is asked for in ready and given back when it is not needed any more',
  },
  {
    fault: 'a question that it gives up is not withdrawn',
    machine: neverWithdrawn,
    property: 'S9: a question that it gives up is withdrawn, no other',
  },
];
