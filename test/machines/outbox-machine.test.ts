import { describe, expect, it, test } from 'vitest';
import {
  outboxMachine,
  questionItem,
  resultItem,
  type OutboxItem,
} from '../../src/machines/index.ts';
import { checkOutbox } from './support/outbox-check.ts';
import { outboxInput, outboxScopes } from './support/outbox-world.ts';
import { Stage } from './support/stage.ts';
import { announce, holds, holdsThroughout } from './support/verdicts.ts';

describe.each(Object.keys(outboxScopes))('every state of the outbox with %s', (scope) => {
  const report = checkOutbox(undefined, scope);
  announce(report);

  test(
    'OUTBOX-1: offers one item at a time and only while the gate is open',
    { tags: ['B56', 'B57'] },
    () => holds(report, 'OUTBOX-1'),
  );

  test('OUTBOX-2: counts a delivery as heard only if it was offered in the current attempt', () =>
    holds(report, 'OUTBOX-2'));

  test('OUTBOX-3: loses no delivery', () => holds(report, 'OUTBOX-3'));

  test('OUTBOX-4: offers by priority class and then in order of arrival', () =>
    holds(report, 'OUTBOX-4'));

  test('OUTBOX-5: pauses a delivery after its last attempt until the user speaks or a client attaches', () =>
    holds(report, 'OUTBOX-5'));

  test('OUTBOX-6: always has capacity for a reserved result', () => holds(report, 'OUTBOX-6'));

  test('OUTBOX-7: stores only the latest progress of each subagent', () =>
    holds(report, 'OUTBOX-7'));

  test('arms the deadline of each state and ignores stale deadlines', () => {
    holds(report, 'its deadline is armed while it pauses, offers or plays');
    holds(report, 'each deadline is that of its state');
    holds(report, 'a deadline that is not the armed one is ignored');
  });

  test('never gets stuck and can always deliver everything', () => {
    holds(report, 'a pause ends by itself');
    holds(report, 'an offer ends by itself');
    holds(report, 'a playback ends by itself');
    holds(report, 'an end can always be reached');
  });

  test('violates no other property and reaches the expected states', () => holdsThroughout(report));
});

describe('an example of the outbox', () => {
  const { quietMs, offerTimeoutMs } = outboxInput;
  const urgent: OutboxItem = {
    ...questionItem('order'),
    kind: 'notice',
    priority: 'urgent',
  };

  /** The gate is open and a result is waiting. */
  const waiting = (more = {}): Stage<typeof outboxMachine> => {
    const stage = new Stage(outboxMachine, { ...outboxInput, ...more });
    stage.send({ type: 'outbox.reserve' });
    stage.send({ type: 'outbox.add', item: resultItem('ride') });
    stage.send({ type: 'gate.opened' });
    return stage;
  };
  const pendingOf = (stage: Stage<typeof outboxMachine>): readonly string[] =>
    stage.actor.getSnapshot().context.pending.map(({ deliveryId }) => deliveryId);

  describe('a delivery after an answerable question', () => {
    /** A question was spoken and heard, a result is waiting, and the gate opens again. */
    const asked = async (): Promise<Stage<typeof outboxMachine>> => {
      const stage = new Stage(outboxMachine, { ...outboxInput, answerMs: 30 });
      stage.send({ type: 'outbox.add', item: questionItem('order') });
      stage.send({ type: 'gate.opened' });
      await stage.wait(quietMs);
      stage.send({ type: 'gate.closed', interruptible: true });
      stage.send({ type: 'delivery.playing', generation: 1 });
      stage.send({ type: 'delivery.heard', generation: 1, grade: 'played' });
      stage.send({ type: 'outbox.reserve' });
      stage.send({ type: 'outbox.add', item: resultItem('ride') });
      stage.send({ type: 'gate.opened' });
      return stage;
    };
    const offered = (stage: Stage<typeof outboxMachine>): readonly unknown[] =>
      stage.told().flatMap(([name, params]) => (name === 'offer' ? [params] : []));
    const ride = { deliveryId: 'ride', generation: 2, attempt: 1 };

    it("waits for the user's answer before it delivers a result", async () => {
      const stage = await asked();
      await stage.wait(29);
      expect(offered(stage)).toHaveLength(1);
      await stage.wait(1);
      expect(offered(stage)).toEqual([ride]);
    });

    it('delivers the result after the ordinary pause once the user has spoken', async () => {
      const stage = await asked();
      stage.send({ type: 'gate.closed', interruptible: true });
      stage.send({ type: 'utterance.ended' });
      stage.send({ type: 'gate.opened' });
      await stage.wait(quietMs);
      expect(offered(stage)).toEqual([expect.anything(), ride]);
    });

    it('delivers the result immediately if a button answers the question after the ordinary pause', async () => {
      const stage = await asked();
      await stage.wait(quietMs);
      stage.send({ type: 'outbox.retract', deliveryId: 'order' });
      expect(offered(stage)).toEqual([expect.anything(), ride]);
    });

    it('does not delay an urgent notice', async () => {
      const stage = await asked();
      stage.send({ type: 'outbox.add', item: urgent });
      expect(offered(stage)).toHaveLength(2);
    });
  });

  test(
    'holds a result until a pause, plays it and then counts it as heard',
    { tags: ['B56', 'B57'] },
    async () => {
      const stage = waiting();
      expect(stage.told()).toEqual([]);
      await stage.wait(quietMs);
      stage.send({ type: 'gate.closed', interruptible: true });
      stage.send({ type: 'delivery.playing', generation: 1 });
      stage.send({ type: 'delivery.heard', generation: 1, grade: 'played' });
      expect(stage.told()).toEqual([
        ['offer', { deliveryId: 'ride', generation: 1, attempt: 1 }],
        ['begun', { deliveryId: 'ride' }],
        ['delivered', { deliveryId: 'ride', grade: 'played' }],
      ]);
    },
  );

  test(
    'offers a delivery without waiting if it has been silent for long enough',
    { tags: ['B56'] },
    async () => {
      const stage = new Stage(outboxMachine, outboxInput);
      stage.send({ type: 'gate.opened' });
      await stage.wait(quietMs);
      stage.send({ type: 'outbox.reserve' });
      stage.send({ type: 'outbox.add', item: resultItem('ride') });
      expect(stage.told()).toEqual([['offer', { deliveryId: 'ride', generation: 1, attempt: 1 }]]);
    },
  );

  test(
    'waits for the remainder of a pause before it offers a delivery, even after an earlier attempt',
    { tags: ['B56'] },
    async () => {
      const stage = new Stage(outboxMachine, { ...outboxInput, quietMs: 10 });
      stage.send({ type: 'gate.opened' });
      await stage.wait(6);
      stage.send({ type: 'outbox.add', item: questionItem('order') });
      await stage.wait(3);
      expect(stage.told()).toEqual([]);
      await stage.wait(1);
      expect(stage.told()).toEqual([['offer', { deliveryId: 'order', generation: 1, attempt: 1 }]]);
      stage.send({ type: 'delivery.heard', generation: 1, grade: 'played' });
      await stage.wait(6);
      stage.send({ type: 'outbox.add', item: questionItem('next') });
      stage.told();
      await stage.wait(3);
      expect(stage.told()).toEqual([]);
      await stage.wait(1);
      expect(stage.told()).toEqual([['offer', { deliveryId: 'next', generation: 2, attempt: 1 }]]);
    },
  );

  test(
    'offers an interrupted delivery again, and ignores late reports on the first offer',
    { tags: ['B60'] },
    async () => {
      const stage = waiting();
      await stage.wait(quietMs);
      stage.send({ type: 'gate.closed', interruptible: false });
      stage.send({ type: 'delivery.interrupted', generation: 1 });
      stage.send({ type: 'delivery.heard', generation: 1, grade: 'played' });
      expect(pendingOf(stage)).toEqual(['ride']);
      stage.send({ type: 'gate.opened' });
      await stage.wait(quietMs);
      expect(stage.told().at(-1)).toEqual([
        'offer',
        { deliveryId: 'ride', generation: 2, attempt: 2 },
      ]);
    },
  );

  test('offers a delivery twice to a silent transport and then waits until the user speaks', async () => {
    const stage = waiting();
    await stage.wait(10 * (quietMs + offerTimeoutMs));
    expect(stage.told().map(([name]) => name)).toEqual([
      'offer',
      'abandon',
      'returned',
      'offer',
      'abandon',
      'card',
    ]);
    stage.send({ type: 'utterance.ended' });
    await stage.wait(quietMs);
    expect(stage.told()).toEqual([['offer', { deliveryId: 'ride', generation: 3, attempt: 1 }]]);
  });

  test('does not treat an offer interrupted by the user as a transport failure', async () => {
    const spoken = { type: 'utterance.ended' } as const;
    for (const isLate of [false, true]) {
      const stage = waiting();
      for (const generation of [1, 2]) {
        await stage.wait(quietMs);
        stage.send({ type: 'gate.closed', interruptible: false });
        if (isLate) stage.send(spoken);
        stage.send({ type: 'delivery.interrupted', generation });
        if (!isLate) stage.send(spoken);
        stage.send({ type: 'gate.opened' });
      }
      await stage.wait(quietMs);
      expect(stage.told().at(-1)).toMatchObject(['offer', { generation: 3 }]);
    }
  });

  test(
    'interrupts any response for an urgent delivery, even a response that was requested just before',
    { tags: ['B59'] },
    async () => {
      // The urgent item arrives after the offer and before the gate closes. In an earlier version, it waited for the
      // end.
      const stage = waiting();
      await stage.wait(quietMs);
      stage.send({ type: 'outbox.add', item: urgent });
      stage.send({ type: 'gate.closed', interruptible: true });
      expect(stage.told().slice(1)).toEqual([['interrupt', { deliveryId: 'order' }]]);
    },
  );

  test('returns an urgent delivery to the queue when its client leaves', () => {
    // The client leaves before the outbox learns that the gate is closed.
    const stage = new Stage(outboxMachine, outboxInput);
    stage.send({ type: 'gate.opened' });
    stage.send({ type: 'outbox.add', item: urgent });
    stage.send({ type: 'client.detached' });
    expect(stage.told().map(([name]) => name)).toEqual(['offer', 'abandon', 'returned']);
  });

  test('drops an urgent delivery that has expired', async () => {
    const stage = new Stage(outboxMachine, outboxInput);
    stage.send({ type: 'outbox.add', item: { ...urgent, expiresAt: 1_000 } });
    await stage.wait(1_000);
    stage.send({ type: 'gate.opened' });
    expect(stage.told()).toEqual([['dropped', { deliveryIds: ['order'], reason: 'expired' }]]);
  });

  test('replaces interrupted progress with newer progress', async () => {
    const progress = (deliveryId: string): OutboxItem => ({
      ...questionItem(deliveryId),
      kind: 'progress',
      priority: 'normal',
      replaces: 'progress of ride',
    });
    const stage = new Stage(outboxMachine, outboxInput);
    stage.send({ type: 'gate.opened' });
    stage.send({ type: 'outbox.add', item: progress('half') });
    await stage.wait(quietMs);
    stage.send({ type: 'outbox.add', item: progress('most') });
    stage.send({ type: 'delivery.interrupted', generation: 1 });
    expect(pendingOf(stage)).toEqual(['most']);
    expect(stage.told().at(-1)).toEqual(['dropped', { deliveryIds: ['half'], reason: 'replaced' }]);
  });
});
