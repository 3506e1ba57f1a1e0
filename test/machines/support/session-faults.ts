// Faults planted in a session, each with the property that must catch it.

import { sessionMachine } from '../../../src/machines/index.ts';
import { forget, mutate, provide, stateOf, type Fault } from './mutate.ts';

type Args = { context: { failures: number; maxReconnects: number } };

/** A response that was running when the connection was lost never ends. */
export const generationSurvives = mutate(sessionMachine, (chart) =>
  forget(stateOf(chart, 'model', 'generating'), 'transport.lost'),
);

export const sessionFaults: readonly Fault<typeof sessionMachine>[] = [
  {
    fault: 'after a crash it believes that it is still connected',
    machine: mutate(sessionMachine, (chart) =>
      forget(stateOf(chart, 'connection', 'active'), 'session.recovered'),
    ),
    property:
      'SESSION-9: after a recovery nobody is connected, there or speaking; what was closing still is',
  },
  {
    fault: 'a closed session opens again',
    machine: mutate(sessionMachine, (chart) => {
      stateOf(chart, 'connection', 'closed').on['session.start'] = 'connecting';
    }),
    property: 'SESSION-1: nothing leaves closed',
  },
  {
    fault: 'closing waits for its subagents without end',
    machine: mutate(sessionMachine, (chart) =>
      forget(stateOf(chart, 'connection', 'closing'), 'deadline.close'),
    ),
    property: 'closing ends by itself',
  },
  {
    fault: 'the gate never opens',
    machine: mutate(sessionMachine, (chart) => {
      stateOf(chart, 'connection', 'active')['tags'] = [];
    }),
    property: 'the gate opens',
  },
  {
    fault: 'a response outlives its connection',
    machine: generationSurvives,
    property: 'SESSION-3: a lost connection forgets what it was in the middle of, not the device',
  },
  {
    fault: 'a wait for a tool outlives its connection',
    machine: mutate(sessionMachine, (chart) =>
      forget(stateOf(chart, 'model', 'waiting'), 'transport.lost'),
    ),
    property: 'SESSION-3: a lost connection forgets what it was in the middle of, not the device',
  },
  {
    fault: 'a turn that waits for a tool has ended',
    machine: mutate(sessionMachine, (chart) => {
      const { on } = stateOf(chart, 'model', 'generating');
      on['response.waiting'] = on['response.ended'];
    }),
    property: 'SESSION-7: a turn ends when the model has come to an end by itself',
  },
  {
    fault: 'a model that does nothing waits',
    machine: mutate(sessionMachine, (chart) => {
      stateOf(chart, 'model', 'idle').on['response.waiting'] = 'waiting';
    }),
    property: 'SESSION-10: a model waits in the middle of its turn, and only says so itself',
  },
  {
    fault: 'playing stops with the connection',
    machine: mutate(sessionMachine, (chart) => {
      stateOf(chart, 'playout', 'playing').on['transport.lost'] = 'drained';
    }),
    property: 'SESSION-3: a lost connection forgets what it was in the middle of, not the device',
  },
  {
    fault: 'a dead line is dialled once too often',
    machine: provide(sessionMachine, 'guards', {
      mayReconnect: ({ context }: Args, { retryInMs }: { retryInMs: number | null }) =>
        retryInMs !== null && context.failures <= context.maxReconnects,
    }),
    property:
      'SESSION-4: it rests after so many losses in a row, or closes if it was never connected',
  },
  {
    fault: 'a session with work closes because its line is dead',
    machine: provide(sessionMachine, 'guards', { mayRetry: () => false, hasBegun: () => false }),
    property: 'SESSION-4: a session that was connected closes only when it is told to',
  },
  {
    fault: 'a resting session does not try again',
    machine: mutate(sessionMachine, (chart) =>
      forget(stateOf(chart, 'connection', 'resting'), 'deadline.reconnect'),
    ),
    property: 'SESSION-11: a resting session tries again by itself, if it may help',
  },
  {
    fault: 'a connection that never comes is waited for without end',
    machine: mutate(sessionMachine, (chart) =>
      forget(stateOf(chart, 'connection', 'connecting'), 'deadline.connect'),
    ),
    property: 'SESSION-6: connecting ends by itself',
  },
  {
    fault: 'a transfer that never ends is waited for without end',
    machine: mutate(sessionMachine, (chart) =>
      forget(stateOf(chart, 'connection', 'transferring'), 'deadline.transfer'),
    ),
    property: 'SESSION-5: transferring ends by itself',
  },
  {
    fault: 'a transfer that fails closes a working session',
    machine: mutate(sessionMachine, (chart) => {
      const ended = stateOf(chart, 'connection', 'transferring').on['deadline.transfer'] as object;
      Object.assign(ended, { target: 'closing' });
    }),
    property: 'SESSION-5: the end of a transfer closes nothing, and somebody leads on',
  },
  {
    fault: 'a late word about another transfer counts',
    machine: mutate(sessionMachine, (chart) => {
      const ended = stateOf(chart, 'connection', 'transferring').on['transfer.ended'] as object;
      Object.assign(ended, { guard: () => true });
    }),
    property: 'SESSION-5: a transfer ends as itself, and says how',
  },
  {
    fault: 'whoever leads is not told that the line was lost in between',
    machine: mutate(sessionMachine, (chart) => {
      const { on } = stateOf(chart, 'connection', 'transferring');
      on['transport.lost'] = stateOf(chart, 'connection', 'active').on['transport.lost'];
    }),
    property: 'SESSION-5: one transfer is under way while it transfers, none else',
  },
];
