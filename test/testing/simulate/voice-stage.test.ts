// The simulated voice model, which has no wire, passes the suite for transports.

import { expect, test } from 'vitest';
import {
  simulatedEnvironment,
  simulatedVoice,
  type ConformanceTurn,
} from '../../../src/testing/index.ts';
import { runConformance } from '../conformance/support/run-conformance.ts';

runConformance(simulatedVoice());
runConformance(simulatedVoice({ updatesSession: false }, 'simulated voice without updates'));

// Seed 2418: a session that rotates has two connections, and each model remembers only what was sent on its own
// connection.
test("passes the script only the messages that were sent on the model's own connection", async () => {
  const environment = simulatedEnvironment();
  const turns: ConformanceTurn[] = [];
  const { transport } = await simulatedVoice().open({
    environment,
    respond: (turn) => {
      turns.push(turn);
      return [];
    },
  });
  const configuration = { instructions: '', tools: [] };
  const [old, next] = [1, 2].map(() => transport.connect(configuration, { environment }));
  old?.send({ type: 'message.add', itemId: 'a', role: 'user', text: 'one' });
  next?.send({ type: 'message.add', itemId: 'b', role: 'user', text: 'two' });
  old?.send({ type: 'response.request', responseKey: 'first' });
  await environment.advance(1000);
  next?.send({ type: 'response.request', responseKey: 'second' });
  await environment.advance(1000);
  expect(turns.map(({ memory }) => memory.map(({ text }) => text))).toEqual([['one'], ['two']]);
});
