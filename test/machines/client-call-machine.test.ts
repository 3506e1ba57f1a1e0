import { describe, expect, test } from 'vitest';
import { clientCallMachine } from '../../src/machines/index.ts';
import { checkClientCall } from './support/client-call-check.ts';
import { clientCallFaults } from './support/client-call-faults.ts';
import { Stage } from './support/stage.ts';
import { announce, catches, holds, holdsThroughout } from './support/verdicts.ts';

const TERMS = [
  { absent: 'wait', idempotent: false },
  { absent: 'wait', idempotent: true },
  { absent: 'fail', idempotent: false },
  { absent: 'fail', idempotent: true },
] as const;

describe.each(TERMS)('every state of a call at a client, with %o', (terms) => {
  const report = checkClientCall(terms);
  announce(report);

  test('CLIENT-CALL-1: gives a call to at most one client, and only that client may answer it', () =>
    holds(report, 'CLIENT-CALL-1'));

  test('CLIENT-CALL-2: does not give a call to a second client unless the call may run twice', () =>
    holds(report, 'CLIENT-CALL-2'));

  test('CLIENT-CALL-3: ends a call by its deadline', () => holds(report, 'CLIENT-CALL-3'));

  test('CLIENT-CALL-4: records which client may have run the call', () =>
    holds(report, 'CLIENT-CALL-4'));

  test('violates no other property and reaches the expected states', () => holdsThroughout(report));
});

describe('a planted fault is caught', () => {
  test.each(clientCallFaults)('$fault', ({ machine, property }) =>
    catches(
      (first) => checkClientCall({ absent: 'wait', idempotent: false }, machine, first),
      property,
    ),
  );
});

describe('a call at a client by example', () => {
  const call = (terms: { absent: 'wait' | 'fail'; idempotent: boolean }) =>
    new Stage(clientCallMachine, {
      at: 0,
      subagentId: null,
      callId: 'c',
      timeoutMs: 300_000,
      ...terms,
    });
  const stateOf = (stage: ReturnType<typeof call>) => stage.actor.getSnapshot().value;

  test('fails within seconds if the app does not wait for an absent client', async () => {
    const stage = call({ absent: 'fail', idempotent: false });
    await stage.wait(5_000);
    expect(stateOf(stage)).toBe('absent');
  });

  test('ends in doubt if its client does not return within 30 seconds', async () => {
    const stage = call({ absent: 'wait', idempotent: false });
    stage.send({ type: 'client.claimed', by: 'ann' });
    stage.send({ type: 'client.left', by: 'ann' });
    await stage.wait(29_000);
    expect(stateOf(stage)).toBe('left');
    await stage.wait(1_000);
    expect(stateOf(stage)).toBe('in_doubt');
  });

  test('moves to another client without delay if it may run twice', () => {
    const stage = call({ absent: 'wait', idempotent: true });
    stage.send({ type: 'client.claimed', by: 'ann' });
    stage.send({ type: 'client.left', by: 'ann' });
    stage.send({ type: 'client.claimed', by: 'bob' });
    expect(stage.actor.getSnapshot()).toMatchObject({ value: 'claimed', context: { by: 'bob' } });
  });
});
