// Faults planted in a subagent, each with the property that must catch it.

import { assign } from 'xstate';
import {
  subagentMachine,
  type StepCall,
  type SubagentSnapshot,
} from '../../../src/machines/index.ts';
import type { SubagentScope } from './subagent-world.ts';
import { candidates, forget, mutate, provide, stateOf, without, type Fault } from './mutate.ts';
import { whileLive } from '../../../src/machines/subagent-setup.ts';

type Machine = typeof subagentMachine;
type Unread = { readonly messageId: string };
type Call = StepCall & { readonly settled: boolean };

/** Cancelling the subagent during a question does not withdraw the question. */
export const neverWithdrawn = mutate(subagentMachine, (chart) => {
  const cancel = stateOf(chart, 'waiting_for_input').on['subagent.cancel'] as { actions: unknown };
  cancel.actions = without(cancel.actions, 'withdraw');
});

type SubagentFault = Fault<Machine> & { readonly scope?: SubagentScope };

export const subagentFaults: readonly SubagentFault[] = [
  {
    fault: 'a sleep has no end',
    machine: mutate(subagentMachine, (chart) =>
      forget(stateOf(chart, 'sleeping'), 'deadline.sleep'),
    ),
    property: 'sleeping ends by its time',
    scope: 'sleep',
  },
  {
    fault: 'the first of two times wakes it',
    machine: provide(subagentMachine, 'guards', { isWakeTime: () => true }),
    property: 'SUBAGENT-MACHINE-2: a deadline that is not the armed one is ignored',
    scope: 'sleep',
  },
  {
    fault: 'it sleeps again after its time',
    machine: provide(subagentMachine, 'actions', { wake: () => {} }),
    property: 'SUBAGENT-MACHINE-15: it wakes by its time or a message that does not queue, once',
    scope: 'sleep',
  },
  {
    fault: 'a queued message wakes it',
    machine: provide(subagentMachine, 'guards', { wakes: () => true }),
    property: 'SUBAGENT-MACHINE-15: it wakes by its time or a message that does not queue, once',
    scope: 'sleep',
  },
  {
    fault: 'it sleeps before it asks',
    machine: mutate(subagentMachine, (chart) => {
      const deciding = stateOf(chart, 'running', 'deciding');
      const [act, delegate, ask, sleep, ...rest] = candidates(deciding.always);
      deciding.always = [act, delegate, sleep, ask, ...rest];
    }),
    property: 'SUBAGENT-MACHINE-15: while it sleeps no other call is unsettled, and nothing runs',
    scope: 'sleep',
  },
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
    property: 'SUBAGENT-MACHINE-2: the clock starts with running and stops with it',
  },
  {
    fault: 'the deadline of an earlier stretch counts',
    machine: provide(subagentMachine, 'guards', { isThisDeadline: () => true }),
    property: 'SUBAGENT-MACHINE-2: a deadline that is not the armed one is ignored',
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
      const [act, delegate, ask, ...rest] = candidates(deciding.always);
      deciding.always = [ask, act, delegate, ...rest];
    }),
    property:
      'SUBAGENT-MACHINE-3: while it waits for an answer no call is unsettled but what asks, and nothing runs',
  },
  {
    fault: 'the answer to an earlier step counts',
    machine: provide(subagentMachine, 'guards', { isThisStep: () => true }),
    property: 'SUBAGENT-MACHINE-4: what belongs to another step or question is ignored',
  },
  {
    fault: 'a call runs without consent',
    machine: provide(subagentMachine, 'actions', {
      settleAsk: assign(({ context }: { context: { calls: readonly Call[] } }) => {
        const asks = new Set(['question', 'approval', 'input']);
        const head = context.calls.find(({ kind, settled }) => asks.has(kind) && !settled);
        const settle = (call: Call): Call =>
          call.kind === 'approval' ? { ...call, kind: 'tool' } : { ...call, settled: true };
        return { calls: context.calls.map((call) => (call === head ? settle(call) : call)) };
      }),
    }),
    property: 'SUBAGENT-MACHINE-5: a call that needs consent becomes runnable by consent only',
  },
  {
    fault: 'unanswered questions do not count',
    machine: provide(subagentMachine, 'actions', { countMiss: () => {} }),
    property:
      'SUBAGENT-MACHINE-6: a miss counts, an answer starts the count again, the last miss ends it',
  },
  {
    fault: 'calls of the last step are run',
    machine: mutate(subagentMachine, (chart) => {
      const { on } = stateOf(chart, 'running', 'thinking');
      on['model.responded'] = candidates(on['model.responded']).toSpliced(2, 1);
    }),
    property: 'SUBAGENT-MACHINE-7: calls of the last step are not run',
  },
  {
    fault: 'it keeps its slot while it waits',
    machine: mutate(subagentMachine, (chart) => {
      const running = stateOf(chart, 'running');
      running.exit = without(running.exit, 'releaseSlot');
    }),
    property:
      'SUBAGENT-MACHINE-8: a slot is asked for in ready and given back when it is not needed any more',
  },
  {
    fault: 'a question that it gives up is not withdrawn',
    machine: neverWithdrawn,
    property: 'SUBAGENT-MACHINE-9: a question that it gives up is withdrawn, no other',
  },
  {
    fault: 'it waits for others before its ordinary calls are settled',
    machine: mutate(subagentMachine, (chart) => {
      const deciding = stateOf(chart, 'running', 'deciding');
      const [act, delegate, ...rest] = candidates(deciding.always);
      deciding.always = [delegate, act, ...rest];
    }),
    property: 'SUBAGENT-MACHINE-3: while it waits for others no ordinary call is unsettled',
  },
  {
    fault: 'the silence of another agent counts as the silence of the user',
    machine: provide(subagentMachine, 'actions', {
      countMiss: assign(({ context }: { context: { missed: number } }) => ({
        missed: context.missed + 1,
      })),
    }),
    property:
      'SUBAGENT-MACHINE-6: a miss counts, an answer starts the count again, the last miss ends it',
  },
  {
    fault: 'what is handed in does not end it',
    machine: provide(subagentMachine, 'guards', { isHandedIn: () => false }),
    property: 'what is handed in is the result, unless a message comes first',
  },
  {
    fault: 'a message that was read stays unread',
    machine: provide(subagentMachine, 'actions', {
      beginStep: assign(({ context }: { context: SubagentSnapshot['context'] }) => ({
        step: context.step + 1,
        calls: [],
        reading: context.unread.map(({ messageId }) => messageId),
      })),
    }),
    property:
      'SUBAGENT-MACHINE-10: each message is unread or read, in the order of arrival, and never both',
    scope: 'messages',
  },
  {
    fault: 'it completes although something is unread',
    machine: provide(subagentMachine, 'guards', {
      isHandedIn: ({ context }: { context: SubagentSnapshot['context'] }) =>
        context.calls.some(({ kind }) => kind === 'completion'),
    }),
    property: 'SUBAGENT-MACHINE-10: it completes with something unread in its last step only',
    scope: 'messages',
  },
  {
    fault: 'a queued message is read at the next step',
    machine: provide(subagentMachine, 'actions', {
      keepMessage: assign(
        ({ context }: { context: SubagentSnapshot['context'] }, { messageId }: Unread) => ({
          unread: [...context.unread, { messageId, waits: false }],
        }),
      ),
    }),
    property: 'SUBAGENT-MACHINE-10: what is queued waits, unless nothing ran yet',
    scope: 'messages',
  },
  {
    fault: 'an interruption waits for the tools',
    machine: mutate(subagentMachine, (chart) =>
      forget(stateOf(chart, 'running', 'acting'), 'subagent.message'),
    ),
    property:
      'SUBAGENT-MACHINE-11: an interruption breaks off what is under way, if there is a step left',
    scope: 'messages',
  },
  {
    fault: 'what has consent is begun although it was interrupted',
    machine: mutate(subagentMachine, (chart) => {
      stateOf(chart, 'ready').on['subagent.message'] = whileLive['subagent.message'];
    }),
    property:
      'SUBAGENT-MACHINE-11: an interruption breaks off what is under way, if there is a step left',
    scope: 'messages',
  },
  {
    fault: 'an interruption begins a step too many',
    machine: provide(subagentMachine, 'guards', {
      breaksOff: (_: unknown, { mode }: { mode: string }) => mode === 'interrupt',
    }),
    property:
      'SUBAGENT-MACHINE-11: an interruption breaks off what is under way, if there is a step left',
    scope: 'messages',
  },
  {
    fault: 'with an exhausted budget it goes on waiting',
    machine: mutate(subagentMachine, (chart) => {
      const { on } = stateOf(chart, 'waiting_for_input');
      on['budget.exhausted'] = whileLive['budget.exhausted'];
    }),
    property: 'SUBAGENT-MACHINE-12: with an exhausted budget it waits for nobody',
    scope: 'budget',
  },
  {
    fault: 'a raise is forgotten',
    machine: provide(subagentMachine, 'actions', { keepRaise: assign({ raised: {} }) }),
    property:
      'SUBAGENT-MACHINE-13: a raise is kept, unless it comes too late, and changes nothing else',
    scope: 'budget',
  },
  {
    fault: 'an exhausted budget is raised',
    machine: provide(subagentMachine, 'guards', { isNotExhausted: () => true }),
    property:
      'SUBAGENT-MACHINE-13: a raise is kept, unless it comes too late, and changes nothing else',
    scope: 'budget',
  },
  {
    fault: 'with an exhausted budget it goes on',
    machine: provide(subagentMachine, 'guards', { isFinalStep: () => false }),
    property: 'SUBAGENT-MACHINE-12: after the final step it has failed with BUDGET_EXHAUSTED',
    scope: 'budget',
  },
  {
    fault: 'the last reason counts',
    machine: provide(subagentMachine, 'actions', {
      exhaust: assign((_, { message }: { message: string }) => ({ exhausted: message })),
    }),
    property: 'SUBAGENT-MACHINE-12: the first reason counts, at once if it says so',
    scope: 'budget',
  },
];
