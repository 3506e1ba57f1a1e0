// The user's input: each caller gets one receipt (USER-INPUT-1).

import { describe, expect, test } from 'vitest';
import {
  UserInput,
  type UserInputSession,
} from '../../../../src/actors/session/questions/user-input.ts';
import { simulatedEnvironment } from '../../../../src/testing/index.ts';

/** A session that accepts all input and does nothing with it before it ends. */
function entrance(): UserInput {
  const session = {
    host: { environment: simulatedEnvironment() },
    records: {
      questions: new Map([['q1', {}]]),
      conversation: { get: () => undefined },
    },
    projection: { connection: 'active', question: () => undefined },
    unit: { unit: { disposed: false, checkRoom: () => {} } },
    user: undefined,
    receive: () => {},
  };
  return new UserInput(session as unknown as UserInputSession, { isHeard: false });
}

const settled = {
  callId: 'c1',
  utteranceId: 'u1',
  requestId: 'q1',
  action: 'answer',
  text: 'blue',
  quote: 'blue',
} as const;

test('counts a client once even if it detaches twice', () => {
  const userInput = entrance();
  const leave = userInput.attach();
  const stop = userInput.listen();
  userInput.attach();
  userInput.listen();
  for (const end of [leave, leave, stop, stop]) end();
  expect([userInput.clients, userInput.listeners]).toEqual([1, 1]);
});

describe('USER-INPUT-1: a session that has ended', () => {
  test('resolves a pending answer as too late', async () => {
    const userInput = entrance();
    const receipt = userInput.answer('q1', { text: 'blue' });
    userInput.close(null);
    expect(await receipt).toEqual({ accepted: false, reason: 'over' });
  });

  test('rejects pending messages and settlements', async () => {
    const userInput = entrance();
    const calls = [userInput.say('hello'), userInput.settle(settled)];
    userInput.close(null);
    for (const call of calls) await expect(call).rejects.toThrow('before it accepted these words');
  });

  test('rejects pending and later calls with the error that ended the session', async () => {
    const userInput = entrance();
    const calls = [
      userInput.answer('q1', { text: 'blue' }),
      userInput.say('hello'),
      userInput.settle(settled),
    ];
    userInput.close(new Error('the disk is full'));
    for (const call of calls) await expect(call).rejects.toThrow('the disk is full');
    await expect(userInput.answer('q1', { text: 'red' })).rejects.toThrow('the disk is full');
  });
});
