// What could be wrong with a session, each with the property that must catch it.

import { sessionMachine } from '../../../src/machines/index.ts';
import { forget, mutate, provide, stateOf, type Fault } from './mutate.ts';

type Args = { context: { failures: number; maxReconnects: number } };

/** The response that was under way when the connection was lost never ends. */
export const generationSurvives = mutate(sessionMachine, (chart) =>
  forget(stateOf(chart, 'model', 'generating'), 'transport.lost'),
);

export const sessionFaults: readonly Fault<typeof sessionMachine>[] = [
  {
    fault: 'a closed session opens again',
    machine: mutate(sessionMachine, (chart) => {
      stateOf(chart, 'connection', 'closed').on['session.start'] = 'connecting';
    }),
    property: 'V1: nothing leaves closed',
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
    property: 'V3: a lost connection forgets what it was in the middle of, not the device',
  },
  {
    fault: 'playing stops with the connection',
    machine: mutate(sessionMachine, (chart) => {
      stateOf(chart, 'playout', 'playing').on['transport.lost'] = 'drained';
    }),
    property: 'V3: a lost connection forgets what it was in the middle of, not the device',
  },
  {
    fault: 'a dead line is dialled once too often',
    machine: provide(sessionMachine, 'guards', {
      mayReconnect: ({ context }: Args, { retryInMs }: { retryInMs: number | null }) =>
        retryInMs !== null && context.failures <= context.maxReconnects,
    }),
    property: 'V4: so many losses in a row close it',
  },
];
