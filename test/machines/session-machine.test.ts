import { describe, expect, test } from 'vitest';
import { floorOf, gateIsOpen, sessionMachine } from '../../src/machines/index.ts';
import { checkSession, sessionInput } from './support/session-check.ts';
import { Stage } from './support/stage.ts';
import { announce, holds, holdsThroughout } from './support/verdicts.ts';

describe('every state of a session', () => {
  const report = checkSession();
  announce(report);

  test('SESSION-1: never leaves `closed`, and always finishes closing', { tags: ['B67'] }, () => {
    holds(report, 'SESSION-1');
    holds(report, 'closing ends by itself');
  });

  test('SESSION-2: opens the gate only in a pause of the conversation', () =>
    holds(report, 'SESSION-2'));

  test("SESSION-3: resets the connection's state, but not the device's state, when it reconnects", () =>
    holds(report, 'SESSION-3'));

  test(
    'SESSION-4: continues its work when the connection is lost, and states the reason',
    { tags: ['B71', 'B88'] },
    () => holds(report, 'SESSION-4'),
  );

  test('SESSION-11: reconnects later or on request', () => holds(report, 'SESSION-11'));

  test(
    'SESSION-5: ends a transfer exactly once, by timeout if necessary, without closing the session',
    { tags: ['B69', 'BW28'] },
    () => {
      holds(report, 'SESSION-5');
      holds(report, 'it transfers');
    },
  );

  test('SESSION-6: abandons a connection attempt when it times out', { tags: ['B72'] }, () =>
    holds(report, 'SESSION-6'),
  );

  test('SESSION-7: ends a turn when the model has finished speaking', { tags: ['B62'] }, () =>
    holds(report, 'SESSION-7'),
  );

  test('SESSION-8: does not count a rotated connection as failed', () =>
    holds(report, 'SESSION-8'));

  test('SESSION-9: starts disconnected in another process and continues a close that was in progress', () =>
    holds(report, 'SESSION-9'));

  test('runs each timer only in its own state', () => {
    holds(report, 'each deadline is armed in the state that owns it');
    holds(report, 'each deadline is that of its state');
    holds(report, 'a deadline that is not the armed one is ignored');
  });

  test('never gets stuck and can always close', () => {
    holds(report, 'whatever is not closed can be closed');
    holds(report, 'reconnecting ends by itself');
    holds(report, 'an end can always be reached');
  });

  test('violates no other property and reaches the expected states', () => holdsThroughout(report));
});

describe('an example of a session', () => {
  const error = { code: 'LOST', message: 'Lost', retryable: true };

  /** A connected session with a client. */
  const active = (more = {}): Stage<typeof sessionMachine> => {
    const stage = new Stage(sessionMachine, { ...sessionInput, ...more });
    stage.send({ type: 'session.start' }).send({ type: 'transport.ready' });
    stage.send({ type: 'client.attached' });
    stage.told();
    return stage;
  };

  test('passes the floor between the user and the agent, and opens the gate in each pause', async () => {
    const stage = active();
    const now = () => {
      const snapshot = stage.actor.getSnapshot();
      return [floorOf(snapshot), gateIsOpen(snapshot)];
    };
    expect(now()).toEqual(['nobody', true]);
    stage.send({ type: 'utterance.started' }).send({ type: 'utterance.ended' });
    expect(now()).toEqual(['user', false]);
    // The user's words never arrive. The session stops waiting after its timeout.
    await stage.wait(sessionInput.settleTimeoutMs);
    expect(now()).toEqual(['nobody', true]);
    stage.send({ type: 'response.requested' }).send({ type: 'playout.started' });
    stage.send({ type: 'response.ended' });
    expect(now()).toEqual(['model', false]);
    stage.send({ type: 'playout.drained' });
    expect(now()).toEqual(['nobody', true]);
  });

  test('reconnects after losing its connection, with longer pauses after two failed attempts', async () => {
    const stage = active();
    for (const attempt of [2, 3]) {
      stage.send({ type: 'transport.lost', error, retryInMs: 250 });
      await stage.wait(250);
      expect(stage.told()).toEqual([['connect', { attempt }]]);
    }
    stage.send({ type: 'transport.lost', error, retryInMs: 250 });
    expect(stage.actor.getSnapshot().value.connection).toBe('resting');
    for (const pauseMs of [
      250,
      ...[2, 4, 8].map((times) => times * sessionInput.connectTimeoutMs),
    ]) {
      expect(stage.told()).toEqual([]);
      await stage.wait(pauseMs);
      await stage.wait(sessionInput.connectTimeoutMs);
      expect(stage.told().map(([name]) => name)).toEqual(['connect', 'hangUp']);
    }
    stage.send({ type: 'session.close' }).send({ type: 'subagents.ended' });
    expect(stage.told()).toEqual([
      ['stopSubagents', {}],
      ['disconnect', {}],
      ['ended', { error: null }],
    ]);
  });

  test('kills subagents that do not stop in time', async () => {
    const stage = active();
    stage.send({ type: 'session.close' });
    await stage.wait(sessionInput.closeGraceMs);
    expect(stage.told().map(([name]) => name)).toEqual([
      'stopSubagents',
      'killSubagents',
      'disconnect',
      'ended',
    ]);
  });

  test('waits for the user indefinitely if `detachGraceMs` is not set', async () => {
    const stage = active({ detachGraceMs: null });
    stage.send({ type: 'client.detached' });
    await stage.wait(24 * 3_600_000);
    expect(stage.told()).toEqual([]);
    expect(stage.armed.size).toBe(0);
  });
});
