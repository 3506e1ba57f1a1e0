import { describe, expect, test } from 'vitest';
import { requestIdOf, subagentMachine, type StepCall } from '../../src/machines/index.ts';
import { Stage } from './support/stage.ts';
import { checkSubagent } from './support/subagent-check.ts';
import { announce, holds, holdsThroughout } from './support/verdicts.ts';

describe.each(['calls', 'messages', 'budget', 'sleep'] as const)(
  'every state of a subagent: %s',
  (scope) => {
    const report = checkSubagent(scope);
    announce(report);

    test(
      'SUBAGENT-MACHINE-1: ends once and never leaves `completed`, `failed` or `cancelled`',
      { tags: ['B37', 'B43', 'B49', 'B87', 'M15'] },
      () => {
        holds(report, 'SUBAGENT-MACHINE-1');
        holds(report, 'nothing leaves a final state');
      },
    );

    test('SUBAGENT-MACHINE-2: runs its timeout only while it is running', () =>
      holds(report, 'SUBAGENT-MACHINE-2'));

    test('SUBAGENT-MACHINE-3: runs no other call of the step while it is waiting for the user', () =>
      holds(report, 'SUBAGENT-MACHINE-3'));

    test('SUBAGENT-MACHINE-4: starts a step only after every call of the previous step is settled', () =>
      holds(report, 'SUBAGENT-MACHINE-4'));

    test('SUBAGENT-MACHINE-5: runs a call that needs consent only after the user has consented', () =>
      holds(report, 'SUBAGENT-MACHINE-5'));

    test('SUBAGENT-MACHINE-6: ends after too many unanswered questions in a row', () =>
      holds(report, 'SUBAGENT-MACHINE-6'));

    test('SUBAGENT-MACHINE-7: does not run the calls of the last step', () =>
      holds(report, 'SUBAGENT-MACHINE-7'));

    test('SUBAGENT-MACHINE-8: holds a slot only while it is running', () =>
      holds(report, 'SUBAGENT-MACHINE-8'));

    test('SUBAGENT-MACHINE-9: withdraws every question that it abandons', () =>
      holds(report, 'SUBAGENT-MACHINE-9'));

    test('SUBAGENT-MACHINE-10: includes a message in at most one model call, no earlier than its mode allows', () =>
      holds(report, 'SUBAGENT-MACHINE-10'));

    test('SUBAGENT-MACHINE-11: stops its current work when a message interrupts it', () =>
      holds(report, 'SUBAGENT-MACHINE-11'));

    test('SUBAGENT-MACHINE-12: makes at most one more model call after its budget is exhausted', () =>
      holds(report, 'SUBAGENT-MACHINE-12'));

    test('SUBAGENT-MACHINE-15: sleeps until the latest time that its calls specify, and wakes once', () => {
      holds(report, 'SUBAGENT-MACHINE-15');
    });

    test('never gets stuck and always ends', () => {
      holds(report, 'waiting for a slot ends by the slot');
      holds(report, 'whatever lives can be cancelled');
      holds(report, 'no deadlock');
      holds(report, 'an end can always be reached');
    });

    test('violates no other property and reaches the expected states', () =>
      holdsThroughout(report));
  },
);

describe('an example of a subagent', () => {
  const input = { id: 'ride', at: 0, maxSteps: 5, timeoutMs: 60_000, maxInputRetries: 3 };
  const ask: StepCall = { callId: 'call_1', kind: 'question' };
  const book: StepCall = { callId: 'call_2', kind: 'tool' };

  /** A subagent during its first model call. */
  const thinking = (): Stage<typeof subagentMachine> => {
    const stage = new Stage(subagentMachine, input);
    stage.send({ type: 'subagent.prepared' }).send({ type: 'slot.granted' });
    stage.told();
    return stage;
  };

  test('runs a call, asks the user and completes', { tags: ['B37', 'M13'] }, () => {
    const stage = thinking();
    stage.send({ type: 'model.responded', step: 1, calls: [ask, book] });
    expect(stage.told()).toEqual([['toolCalls', { id: 'ride', step: 1, callIds: ['call_2'] }]]);
    stage.send({ type: 'tool.settled', step: 1, callId: 'call_2' });
    const requestId = requestIdOf('ride', 1);
    expect(stage.told()).toEqual([
      ['releaseSlot', { id: 'ride' }],
      ['ask', { id: 'ride', requestId, callId: 'call_1', kind: 'question' }],
    ]);
    stage.send({ type: 'question.answered', requestId });
    expect(stage.told()).toEqual([['requestSlot', { id: 'ride', resumed: true }]]);
    stage.send({ type: 'slot.granted' });
    expect(stage.told()).toEqual([
      ['modelStep', { id: 'ride', step: 2, messageIds: [], final: false, last: false }],
    ]);
    stage.send({ type: 'model.responded', step: 2, calls: [] });
    expect(stage.actor.getSnapshot().output).toEqual({ status: 'completed', steps: 2 });
  });

  test('does not count the time spent waiting for the user towards the timeout', async () => {
    const stage = thinking();
    await stage.wait(40_000);
    stage.send({ type: 'model.responded', step: 1, calls: [ask] });
    await stage.wait(3_600_000);
    stage.send({ type: 'question.answered', requestId: requestIdOf('ride', 1) });
    stage.send({ type: 'slot.granted' });
    await stage.wait(19_999);
    expect(stage.actor.getSnapshot().value).toEqual({ running: 'thinking' });
    await stage.wait(1);
    expect(stage.actor.getSnapshot().output).toMatchObject({
      status: 'timed_out',
      error: { code: 'TIMEOUT', retryable: true },
    });
  });

  test('runs no call without consent', () => {
    const stage = thinking();
    const pay: StepCall = { callId: 'call_3', kind: 'approval' };
    stage.send({ type: 'model.responded', step: 1, calls: [pay] });
    stage.send({
      type: 'question.answered',
      requestId: requestIdOf('ride', 1),
      approved: false,
    });
    stage.send({ type: 'slot.granted' });
    expect(stage.told().map(([name]) => name)).toEqual([
      'releaseSlot',
      'ask',
      'requestSlot',
      'modelStep',
    ]);
  });

  test('withdraws an open question when cancelled', { tags: ['B43'] }, () => {
    const stage = thinking();
    stage.send({ type: 'model.responded', step: 1, calls: [ask] });
    stage.told();
    stage.send({ type: 'subagent.cancel', reason: 'changed my mind' });
    expect(stage.told()).toEqual([
      ['withdraw', { id: 'ride', requestId: requestIdOf('ride', 1), kind: 'question' }],
    ]);
    expect(stage.actor.getSnapshot().output).toEqual({
      status: 'cancelled',
      error: { code: 'CANCELLED', message: 'Cancelled: changed my mind', retryable: false },
      steps: 1,
    });
  });

  test('fails if it is not ready within 30 s', { tags: ['MW2'] }, async () => {
    const stage = new Stage(subagentMachine, input);
    expect(stage.told()).toEqual([['prepare', { id: 'ride' }]]);
    await stage.wait(30_000);
    expect(stage.actor.getSnapshot().output).toMatchObject({
      status: 'timed_out',
      error: { code: 'PREPARATION_TIMEOUT' },
      steps: 0,
    });
  });
});

test('SUBAGENT-MACHINE-13: accepts a larger budget in every state of a live subagent', () => {
  for (const [name, state] of Object.entries(subagentMachine.states))
    expect([name, state.ownEvents.includes('budget.raised')]).toEqual([
      name,
      state.type !== 'final',
    ]);
});
