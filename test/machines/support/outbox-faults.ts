// Faults planted in the outbox, each with the property that must catch it.

import { assign } from 'xstate';
import { outboxMachine, type OutboxItem } from '../../../src/machines/index.ts';
import { candidates, forget, mutate, provide, stateOf, type Fault } from './mutate.ts';

type Machine = typeof outboxMachine;
type Args = { context: { pending: readonly object[]; reserved: number } };

export const reofferForgotten = provide(outboxMachine, 'actions', {
  returnToQueue: assign({ current: null }),
});

export const gateIgnored = provide(outboxMachine, 'guards', { gateIsOpen: () => true });

export const staleReportCounts = provide(outboxMachine, 'guards', { isAttempt: () => true });

/** The client leaves while an urgent item is being offered, and the outbox offers the item again at once. */
export const offersWithoutClient = mutate(outboxMachine, (chart) =>
  forget(stateOf(chart, 'gate', 'open'), 'client.detached'),
);

export const outboxFaults: readonly Fault<Machine>[] = [
  {
    fault: 'the gate is ignored',
    machine: gateIgnored,
    property: 'OUTBOX-1: a pause counts only while the gate is open and something waits',
  },
  {
    fault: 'it does not wait for a pause',
    machine: mutate(outboxMachine, (chart) => {
      const dwelling = stateOf(chart, 'slot', 'dwelling');
      dwelling.always = [...candidates(dwelling.always), { target: 'speaking' }];
    }),
    property: 'OUTBOX-1: one at a time, from an open gate after a pause',
  },
  {
    fault: 'each item waits for a pause of its own',
    machine: mutate(outboxMachine, (chart) => {
      const { empty, dwelling } = stateOf(chart, 'slot').states;
      empty!.always = candidates(empty!.always).slice(-1);
      dwelling!.on['deadline.quiet'] = { target: 'speaking' };
    }),
    property: 'OUTBOX-1: what comes when the pause is over is said at once',
  },
  {
    fault: 'a pause counts from the opening of the gate alone',
    machine: mutate(outboxMachine, (chart) => {
      stateOf(chart, 'slot', 'speaking').exit = [];
    }),
    property: 'OUTBOX-1: a pause begins when the gate opens, or an attempt ends',
  },
  {
    fault: 'a report about an earlier attempt counts',
    machine: staleReportCounts,
    property: 'OUTBOX-2: a report about another attempt is ignored',
  },
  {
    fault: 're-offering is forgotten',
    machine: reofferForgotten,
    property: 'OUTBOX-3: nothing is lost',
  },
  {
    fault: 'what was told and not acknowledged holds the slot',
    machine: mutate(outboxMachine, (chart) => {
      forget(stateOf(chart, 'slot', 'speaking'), 'delivery.told');
    }),
    property: 'something was told while another is said',
  },
  {
    fault: 'what was told is told again',
    machine: provide(outboxMachine, 'actions', {
      wake: assign(({ context }: Args) => ({
        pending: context.pending.map((item) => ({ ...item, resting: false, attempts: 0 })),
      })),
    }),
    property: 'OUTBOX-5: an item rests exactly when it has been tried often enough, or was told',
  },
  {
    fault: 'a late acknowledgement is ignored',
    machine: mutate(outboxMachine, (chart) => {
      forget(chart, 'delivery.heard');
    }),
    property: 'what was told can be acknowledged by whoever was given it',
  },
  {
    fault: 'what was heard stays',
    machine: mutate(outboxMachine, (chart) => {
      const heard = stateOf(chart, 'slot', 'speaking').on['delivery.heard'] as {
        actions: unknown[];
      };
      heard.actions = heard.actions.slice(0, 1);
    }),
    property: 'OUTBOX-3: nothing is lost',
  },
  {
    fault: 'last in, first out',
    machine: provide(outboxMachine, 'actions', {
      add: assign(({ context }: Args, { item }: { item: OutboxItem }) => ({
        pending: [{ ...item, attempts: 0, resting: false }, ...context.pending],
        reserved: item.reserved ? context.reserved - 1 : context.reserved,
      })),
    }),
    property: 'OUTBOX-4: first come, first served in each class, and what was interrupted first',
    scope: 'two results and a question',
  },
  {
    fault: 'no card for what cannot be said',
    machine: provide(outboxMachine, 'guards', { isExhausted: () => false }),
    property: 'OUTBOX-5: a card for what was tried often enough, word for what was not',
  },
  {
    fault: 'nothing wakes what rests',
    machine: provide(outboxMachine, 'actions', { wake: () => {} }),
    property: 'OUTBOX-5: whoever speaks or comes wakes what rests',
  },
  {
    fault: 'more is promised than fits',
    machine: mutate(outboxMachine, (chart) => {
      const reserve = chart.on['outbox.reserve'] as { guard: unknown };
      reserve.guard = ({ context }: Args) => context.reserved < 2;
    }),
    property: 'OUTBOX-6: no more than fits',
  },
  {
    fault: 'old progress stays beside the new',
    machine: provide(outboxMachine, 'guards', { isOutdone: () => false }),
    property: 'OUTBOX-7: of each subagent only the latest progress waits',
    scope: 'a result and the progress of one subagent',
  },
  {
    fault: 'what the user put off is said again when they speak',
    machine: provide(outboxMachine, 'actions', {
      rest: assign(({ context }: Args, { deliveryId }: { deliveryId: string }) => ({
        pending: context.pending.map((item) =>
          (item as OutboxItem).deliveryId === deliveryId ? { ...item, resting: true } : item,
        ),
      })),
    }),
    property:
      'OUTBOX-10: what the user puts off rests as a card, unless it is a question or rests already',
    scope: 'results that are silent, or skip when busy',
  },
  {
    fault: 'a read item is offered before the reply has failed to tell it',
    machine: provide(outboxMachine, 'actions', { markRead: () => {} }),
    property: 'OUTBOX-12: only the report about the reply makes a read item due again',
    scope: 'a result that the lead agent reads, and a question',
  },
  {
    fault: 'a question can be put off as a result is',
    machine: provide(outboxMachine, 'guards', {
      mayRestPending: ({ context }: Args, { deliveryId }: { deliveryId: string }) =>
        context.pending.some((item) => (item as OutboxItem).deliveryId === deliveryId),
    }),
    property:
      'OUTBOX-10: what the user puts off rests as a card, unless it is a question or rests already',
    scope: 'results that are silent, or skip when busy',
  },
  {
    fault: 'what the user put off goes on being said',
    machine: mutate(outboxMachine, (chart) => {
      const rest = candidates(stateOf(chart, 'slot', 'speaking').on['outbox.rest']) as {
        actions: unknown[];
      }[];
      for (const one of rest) one.actions = one.actions.slice(1);
    }),
    property: 'an attempt that is off is abandoned',
    scope: 'results that are silent, or skip when busy',
  },
  {
    fault: 'a telling that the user heard half of begins anew',
    machine: provide(outboxMachine, 'actions', {
      markInterrupted: assign(
        (
          { context: { current } }: { context: { current: object | null } },
          { at }: { at: number },
        ) => ({
          current: current && { ...current, interruptedAt: at },
        }),
      ),
    }),
    property:
      'OUTBOX-11: an offer says whether its beginning was heard, as the item does until it leaves',
    scope: 'notices that expire',
  },
  {
    fault: 'nobody knows that the user interrupted it',
    machine: provide(outboxMachine, 'actions', { markInterrupted: () => {} }),
    property: 'OUTBOX-10: a telling that the user interrupts is marked with its time',
    scope: 'notices that expire',
  },
  {
    fault: 'something urgent is said too late',
    machine: provide(outboxMachine, 'guards', { isAnyExpired: () => false }),
    property: 'OUTBOX-3: what is not worth saying any more is not said',
    scope: 'notices that expire',
  },
  {
    fault: 'something urgent that comes just after an offer does not interrupt',
    machine: mutate(outboxMachine, (chart) => {
      const { on } = stateOf(chart, 'gate', 'open');
      on['gate.closed'] = candidates(on['gate.closed']).slice(1);
    }),
    property: 'urgent interrupts what can be interrupted, at once',
    scope: 'notices that expire',
  },
  {
    fault: 'the deadline of the offer ends the playback',
    machine: mutate(outboxMachine, (chart) => {
      const { on } = stateOf(chart, 'slot', 'speaking', 'offered');
      stateOf(chart, 'slot', 'speaking').on['deadline.offer'] = on['deadline.offer'];
    }),
    property: 'a deadline that is not the armed one is ignored',
  },
  {
    fault: 'an offer is waited for without end',
    machine: mutate(outboxMachine, (chart) =>
      forget(stateOf(chart, 'slot', 'speaking', 'offered'), 'deadline.offer'),
    ),
    property: 'an offer ends by itself',
  },
];
