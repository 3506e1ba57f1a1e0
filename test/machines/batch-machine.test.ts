import { describe, expect, test } from 'vitest';
import { batchMachine, type AtCeiling } from '../../src/machines/index.ts';
import { checkBatch } from './support/batch-check.ts';
import { Stage } from './support/stage.ts';
import { announce, holds, holdsThroughout } from './support/verdicts.ts';

describe.each(['deliver', 'cancel'] as const)(
  'every state of a batch (at the ceiling: %s)',
  (atCeiling) => {
    const report = checkBatch(undefined, atCeiling);
    announce(report);

    test(
      'BATCH-1: delivers each result once unless the user has seen or dismissed it',
      { tags: ['RW11'] },
      () => holds(report, 'BATCH-1'),
    );

    test(
      'BATCH-2: holds a result for a limited time, while a sibling runs or the agent may call again',
      { tags: ['R34'] },
      () => holds(report, 'BATCH-2'),
    );

    test('BATCH-3: does not hold other results for a call that is waiting for the user', () =>
      holds(report, 'BATCH-3'));

    test('BATCH-4: does not delay a result without siblings', () => holds(report, 'BATCH-4'));

    test('BATCH-5: delivers a late result separately', () => holds(report, 'BATCH-5'));

    test('BATCH-6: keeps the place that is reserved in the outbox for each result', () =>
      holds(report, 'BATCH-6'));

    test('BATCH-7: ends when everything has been delivered, and can always end', () => {
      holds(report, 'BATCH-7');
      holds(report, 'an end can always be reached');
      holds(report, 'nothing leaves a final state');
    });

    test('arms the deadline of each state and ignores stale deadlines', () => {
      holds(report, 'each deadline is that of its state');
      holds(report, 'a deadline that is not the armed one is ignored');
    });

    test('violates no other property and reaches the expected states', () =>
      holdsThroughout(report));
  },
);

describe('an example of a batch', () => {
  const CEILING_MS = 300_000;
  type Batch = Stage<typeof batchMachine>;

  const batch = (
    callIds: readonly string[],
    { atCeiling = 'deliver', replies = false }: { atCeiling?: AtCeiling; replies?: boolean } = {},
  ): Batch => {
    const stage = new Stage(batchMachine, {
      batchId: 'trip',
      ceilingMs: CEILING_MS,
      graceMs: 5000,
      atCeiling,
    });
    for (const callId of callIds) stage.send({ type: 'batch.joined', callId });
    return replies ? stage : stage.send({ type: 'batch.replied' });
  };
  const settle = (stage: Batch, ...callIds: readonly string[]): void => {
    for (const callId of callIds) stage.send({ type: 'batch.settled', callId });
  };

  test(
    'delivers the flight and the hotel together once the second call has finished',
    { tags: ['R34'] },
    async () => {
      const stage = batch(['flight', 'hotel']);
      settle(stage, 'flight');
      await stage.wait(CEILING_MS - 1);
      expect(stage.told()).toEqual([]);
      settle(stage, 'hotel');
      stage.send({ type: 'batch.told', grade: 'played' });
      expect(stage.told()).toEqual([
        ['tell', { batchId: 'trip' }],
        ['delivered', { deliveryIds: ['flight', 'hotel'], grade: 'played' }],
        ['free', { places: 1 }],
        ['ended', { batchId: 'trip' }],
      ]);
    },
  );

  test(
    'delivers the available results at the ceiling and the third one separately',
    { tags: ['R41'] },
    async () => {
      const stage = batch(['flight', 'hotel', 'car']);
      settle(stage, 'flight', 'hotel');
      await stage.wait(CEILING_MS);
      expect(stage.told()).toEqual([['tell', { batchId: 'trip' }]]);
      settle(stage, 'car');
      expect(stage.told()).toEqual([['pass', { callId: 'car' }]]);
    },
  );

  test(
    'cancels a late call at the ceiling and delivers its partial result with the others',
    { tags: ['R34'] },
    async () => {
      const stage = batch(['flight', 'hotel'], { atCeiling: 'cancel' });
      settle(stage, 'flight');
      await stage.wait(CEILING_MS);
      expect(stage.told()).toEqual([['stop', { callIds: ['hotel'] }]]);
      settle(stage, 'hotel');
      expect(stage.told()).toEqual([['tell', { batchId: 'trip' }]]);
    },
  );

  test(
    'abandons a call that does not stop within the grace period',
    { tags: ['R34'] },
    async () => {
      const stage = batch(['flight', 'hotel', 'car'], { atCeiling: 'cancel' });
      settle(stage, 'flight', 'hotel');
      await stage.wait(CEILING_MS + 4999);
      expect(stage.told()).toEqual([['stop', { callIds: ['car'] }]]);
      await stage.wait(1);
      expect(stage.told()).toEqual([['tell', { batchId: 'trip' }]]);
    },
  );

  test('does not hold a result for a call that has asked the user a question', () => {
    const stage = batch(['weather', 'ride']);
    settle(stage, 'weather');
    stage.send({ type: 'batch.asking', callId: 'ride' });
    expect(stage.told()).toEqual([['pass', { callId: 'weather' }]]);
  });

  test('holds a result while the lead agent can still call its sibling', () => {
    const stage = batch(['flight'], { replies: true });
    settle(stage, 'flight');
    stage.send({ type: 'batch.joined', callId: 'hotel' });
    stage.send({ type: 'batch.replied' });
    expect(stage.told()).toEqual([]);
    settle(stage, 'hotel');
    expect(stage.told()).toEqual([['tell', { batchId: 'trip' }]]);
  });

  test('withdraws the delivery once every result has been seen or dismissed', () => {
    const stage = batch(['flight', 'hotel']);
    settle(stage, 'flight', 'hotel');
    stage.send({ type: 'delivery.shown', deliveryId: 'flight' });
    stage.send({ type: 'delivery.dismissed', deliveryId: 'hotel' });
    expect(stage.told()).toEqual([
      ['tell', { batchId: 'trip' }],
      ['delivered', { deliveryIds: ['flight'], grade: 'shown' }],
      ['free', { places: 1 }],
      ['dismissed', { deliveryIds: ['hotel'] }],
      ['retract', { batchId: 'trip' }],
      ['ended', { batchId: 'trip' }],
    ]);
  });

  test('ends if every call is refused', () => {
    const stage = batch(['flight']);
    stage.send({ type: 'batch.left', callId: 'flight' });
    expect(stage.told()).toEqual([['ended', { batchId: 'trip' }]]);
  });
});
