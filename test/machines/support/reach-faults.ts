// Planted faults in a delivery's plan and in the outbox beside it, each with the property that must catch it.

import { outboxMachine, reachMachine } from '../../../src/machines/index.ts';
import { mutate, provide, stateOf } from './mutate.ts';

interface ReachFault {
  readonly fault: string;
  readonly faulty: {
    readonly outbox?: typeof outboxMachine;
    readonly 'reach:d'?: typeof reachMachine;
  };
  readonly kind?: 'result' | 'question';
  readonly property: string;
}

const way = (change: Parameters<typeof mutate<typeof reachMachine>>[1]): ReachFault['faulty'] => ({
  'reach:d': mutate(reachMachine, change),
});
const outbox = (
  change: Parameters<typeof mutate<typeof outboxMachine>>[1],
): ReachFault['faulty'] => ({ outbox: mutate(outboxMachine, change) });

export const reachFaults: readonly ReachFault[] = [
  {
    fault: 'a channel sends what the outbox is saying',
    faulty: way((chart) => {
      stateOf(chart, 'taken').initial = 'sending';
    }),
    property: 'REACH-1: a channel sends only what the outbox has granted',
  },
  {
    fault: 'the outbox grants at once what it is saying',
    faulty: {
      outbox: provide(outboxMachine, 'guards', {
        isGrantable: ({ context }: { context: { claims?: readonly { granted: boolean }[] } }) =>
          context.claims?.some(({ granted }) => !granted) ?? false,
      }),
    },
    property: 'no actor fails',
  },
  {
    fault: 'the outbox says what it has granted',
    faulty: outbox((chart) => {
      chart.on['outbox.claim'] = { actions: { type: 'claimed', params: { deliveryId: 'd' } } };
    }),
    property: 'REACH-1: a channel sends only what the outbox has granted',
  },
  {
    fault: 'both wait for each other: the claim is never given back',
    faulty: way((chart) => {
      stateOf(chart, 'taken').exit = [];
    }),
    property: 'OUTBOX-13: the outbox holds back exactly what a way has taken',
  },
  {
    fault: 'both wait for each other: the claim is never granted',
    faulty: outbox((chart) => {
      chart.always = (chart.always as unknown[]).slice(0, 1);
    }),
    property: 'OUTBOX-13: a claim waits only while the item is being said',
  },
  {
    fault: 'what was heard is sent all the same',
    faulty: way((chart) => {
      delete stateOf(chart, 'waiting').on['reach.heard'];
    }),
    property: 'REACH-3: what was heard, read or withdrawn is not sent any more',
  },
  {
    fault: 'what is withdrawn while it is being sent goes on with its next step',
    faulty: way((chart) => {
      stateOf(chart, 'taken').on['reach.over'] = {};
    }),
    property: 'REACH-3: what was heard, read or withdrawn is not sent any more',
  },
  {
    fault: 'a step of the quiet hours is sent',
    faulty: { 'reach:d': provide(reachMachine, 'guards', { isQuiet: () => false }) },
    property: 'REACH-2: a step is taken only at its time',
  },
  {
    fault: 'the deadline of an earlier step sends the present one',
    faulty: { 'reach:d': provide(reachMachine, 'guards', { isDue: () => true }) },
    property: 'REACH-2: a step is taken only at its time',
  },
  {
    fault: 'the answer of an earlier sending ends the present one',
    faulty: { 'reach:d': provide(reachMachine, 'guards', { isAttempt: () => true }) },
    property: 'an answer of an earlier sending changes nothing',
  },
  {
    fault: 'a receipt of any step counts',
    faulty: { 'reach:d': provide(reachMachine, 'guards', { rises: () => true }) },
    property: 'REACH-5: a receipt of a step that was not sent changes nothing',
  },
  {
    fault: 'what was read waits for the next client',
    faulty: way((chart) => {
      const reported = stateOf(chart, 'waiting').on['reach.reported'] as { actions: unknown }[];
      reported[0] = { ...reported[0]!, actions: ['raise'] };
    }),
    property: 'REACH-5: what was read counts as heard',
  },
  {
    fault: 'the plan of a question ends when the question is read',
    kind: 'question',
    faulty: way((chart) => {
      const reported = stateOf(chart, 'waiting').on['reach.reported'] as { target: unknown }[];
      reported[0] = { ...reported[0]!, target: '#reach.over' };
    }),
    property: 'REACH-6: a way ends only with its delivery',
  },
  {
    fault: 'a question that was read is sent by its next step',
    kind: 'question',
    faulty: { 'reach:d': provide(reachMachine, 'guards', { isRead: () => false }) },
    property: 'REACH-3: what was read is not sent any more',
  },
  {
    fault: 'the process dies before a step is sent, and the next one does not send it',
    faulty: way((chart) => {
      stateOf(chart, 'taken', 'sending').entry = ['begin'];
    }),
    property: 'REACH-4: waits for a time, for a channel, or for the outbox',
  },
];
