// Faults planted in a batch, each with the property that must catch it.

import { batchMachine } from '../../../src/machines/index.ts';
import { candidates, forget, mutate, provide, stateOf, without, type Fault } from './mutate.ts';

interface Settles {
  actions: unknown;
}

/** A call that ends late is not reported. */
export const lateForgotten = mutate(batchMachine, (chart) => {
  const settles = chart.on['batch.settled'] as Settles;
  settles.actions = without(settles.actions, 'pass');
});

/** A joint delivery keeps all but one of its places. */
export const placesKept = mutate(batchMachine, (chart) => {
  const told = stateOf(chart, 'telling').on['batch.told'] as Settles;
  told.actions = without(told.actions, 'free');
});

export const batchFaults: readonly Fault<typeof batchMachine>[] = [
  {
    fault: 'a result that ends late is forgotten',
    machine: lateForgotten,
    property: 'BATCH-5: what ends later is passed on by itself',
  },
  {
    fault: 'one that was seen is told all the same',
    machine: mutate(batchMachine, (chart) => {
      const shown = chart.on['delivery.shown'] as Settles;
      shown.actions = without(shown.actions, 'remove');
    }),
    property: 'BATCH-1: what is neither told nor seen is still here',
  },
  {
    fault: 'siblings are waited for without end',
    machine: mutate(batchMachine, (chart) =>
      forget(stateOf(chart, 'gathering', 'holding'), 'deadline.ceiling'),
    ),
    property: 'BATCH-2: results wait no longer than the ceiling',
  },
  {
    fault: 'results wait though nobody works any more',
    machine: mutate(batchMachine, (chart) => {
      const holding = stateOf(chart, 'gathering', 'holding');
      holding.always = candidates(holding.always).slice(0, 1);
    }),
    property: 'BATCH-2: results wait for somebody, or for the end of the reply',
  },
  {
    fault: 'one that was told to stop and does not is waited for without end',
    machine: mutate(batchMachine, (chart) => forget(stateOf(chart, 'closing'), 'deadline.grace')),
    property: 'BATCH-2: who was told to stop is waited for no longer than the grace',
    scope: 'cancel',
  },
  {
    fault: 'one that waits for the user holds the others up',
    machine: provide(batchMachine, 'guards', {
      isComplete: ({ context }: { context: { isReplying: boolean; working: string[] } }) =>
        !context.isReplying && context.working.length === 0,
    }),
    property: 'BATCH-2: results wait for somebody, or for the end of the reply',
  },
  {
    fault: 'a result alone is told as if there were more',
    machine: provide(batchMachine, 'guards', { hasOnePart: () => false }),
    property: 'BATCH-4: what is told together is more than one',
  },
  {
    fault: 'what ends late is told with what was told before',
    machine: mutate(batchMachine, (chart) => {
      const { on } = stateOf(chart, 'gathering');
      stateOf(chart, 'telling').on['batch.settled'] = {
        ...(on['batch.settled'] as object),
        target: undefined,
      };
    }),
    property: 'BATCH-5: what ends later is passed on by itself',
  },
  {
    fault: 'the place of a result that was seen stays taken',
    machine: mutate(batchMachine, (chart) => {
      const shown = chart.on['delivery.shown'] as Settles;
      shown.actions = without(shown.actions, 'free');
    }),
    property: 'BATCH-6: as many places as results that wait',
  },
  {
    fault: 'the places of what was told stay taken',
    machine: placesKept,
    property: 'BATCH-6: as many places as results that wait',
  },
  {
    fault: 'what is told stays in the outbox when its last part was seen',
    machine: mutate(batchMachine, (chart) => {
      const seen = stateOf(chart, 'telling').on['delivery.shown'] as Settles;
      seen.actions = without(seen.actions, 'retract');
    }),
    property: 'BATCH-5: what is told together is in the outbox',
  },
  {
    fault: 'it is over while somebody works',
    machine: mutate(batchMachine, (chart) => {
      stateOf(chart, 'trailing').always = 'over';
    }),
    property: 'BATCH-7: over when nobody works and nothing waits',
  },
];
