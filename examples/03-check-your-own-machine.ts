// Checks your own machine in every state that it can reach, not just in those that you expect.
//
//   npm run example examples/03-check-your-own-machine.ts
//
// A payment charges a card. If the bank does not answer in time, the first version lets the user pay again, and the
// checker shows how that charges a card twice. The second version asks the bank about the charge. Every property then
// holds, and all paths are replayed on XState's own interpreter. The checker never charges a card and takes no real
// time.

import { fromPromise, setup } from 'xstate';
import {
  checkMachine,
  replay,
  ViolationError,
  type Effect,
  type MachineCheck,
} from 'offstage/testing';

type PaymentEvent = { type: 'pay' } | { type: 'cancel' } | { type: 'deadline.passed' };

/** Effects are only names: the app implements them, and the checker lists them. */
const payment = setup({
  types: { events: {} as PaymentEvent, tags: {} as 'waiting' },
  actors: {
    charge: fromPromise<{ paid: boolean }>(() => Promise.reject(new Error('not provided'))),
    lookUp: fromPromise<{ paid: boolean }>(() => Promise.reject(new Error('not provided'))),
  },
  actions: { sendReceipt: () => {} },
});

const hastyPayment = payment.createMachine({
  id: 'hasty payment',
  initial: 'draft',
  states: {
    draft: { on: { pay: 'charging', cancel: 'cancelled' } },
    charging: {
      tags: 'waiting',
      invoke: {
        id: 'charge',
        src: 'charge',
        onDone: [{ guard: ({ event }) => event.output.paid, target: 'paid' }, { target: 'draft' }],
        onError: 'failed',
      },
      on: { 'deadline.passed': 'draft' }, // the fault: the charge may still come through
    },
    paid: { type: 'final', entry: 'sendReceipt' },
    failed: { type: 'final' },
    cancelled: { type: 'final' },
  },
});

const carefulPayment = payment.createMachine({
  id: 'careful payment',
  initial: 'draft',
  states: {
    draft: { on: { pay: 'charging', cancel: 'cancelled' } },
    charging: {
      tags: 'waiting',
      invoke: {
        id: 'charge',
        src: 'charge',
        onDone: [{ guard: ({ event }) => event.output.paid, target: 'paid' }, { target: 'draft' }],
        onError: 'unknown',
      },
      on: { 'deadline.passed': 'unknown' },
    },
    unknown: {
      tags: 'waiting',
      invoke: {
        id: 'lookUp',
        src: 'lookUp',
        onDone: [{ guard: ({ event }) => event.output.paid, target: 'paid' }, { target: 'draft' }],
        onError: 'unresolved',
      },
      on: { 'deadline.passed': 'unresolved' },
    },
    unresolved: { type: 'final' }, // a person must look
    paid: { type: 'final', entry: 'sendReceipt' },
    cancelled: { type: 'final' },
  },
});

const bank = (id: string) =>
  [
    { type: `xstate.done.actor.${id}`, output: { paid: true } },
    { type: `xstate.done.actor.${id}`, output: { paid: false } },
    { type: `xstate.error.actor.${id}`, error: new Error('no connection') },
  ] as const;

/** The events that may happen, and the properties that must hold in every state. */
const check: MachineCheck<typeof hastyPayment | typeof carefulPayment, number> = {
  events: () => [
    { type: 'pay' },
    { type: 'cancel' },
    { type: 'deadline.passed' },
    ...bank('charge'),
    ...bank('lookUp'),
  ],
  // The number of charges that the bank may still be processing. The machine does not store this number, so the check
  // counts: each start of `charge` adds one, and an answer from the bank settles them all.
  ghost: {
    initial: 0,
    next: (open, { event, effects }) =>
      event.type.startsWith('xstate.done.actor.')
        ? 0
        : open + effects.filter((effect) => isStartOf('charge', effect)).length,
  },
  invariants: {
    'never two open charges': (_payment, open) => open <= 1 || `${open} charges are open.`,
  },
  waits: { 'every wait has a deadline': { when: 'waiting', exits: ['deadline.passed'] } },
  reachable: { 'it is paid': ({ value }) => value === 'paid' },
};

function isStartOf(id: string, { type, params }: Effect): boolean {
  return type === 'xstate.spawnChild' && (params as { id: string }).id === id;
}

try {
  checkMachine(hastyPayment, check);
} catch (error) {
  if (!(error instanceof ViolationError)) throw error;
  console.log(`Found: ${error.message}\n`);
}

const report = checkMachine(carefulPayment, check);
console.log(report.toString());

const { paths, steps } = await replay(report);
console.log(`  replayed on the interpreter: ${paths} paths, ${steps} steps, all agree`);
