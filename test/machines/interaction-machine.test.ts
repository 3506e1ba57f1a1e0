import { describe, expect, test } from 'vitest';
import { interactionMachine, ownerOf } from '../../src/machines/index.ts';
import { checkInteraction } from './support/interaction-check.ts';
import { Stage } from './support/stage.ts';
import { announce, holds, holdsThroughout } from './support/verdicts.ts';

describe('every state of the arbiter', () => {
  const report = checkInteraction();
  announce(report);

  test('INTERACTION-1: has one owner at most, whose release alone counts', { tags: ['B53'] }, () =>
    holds(report, 'INTERACTION-1'),
  );

  test('INTERACTION-2: first come, first served', { tags: ['B52', 'B53'] }, () =>
    holds(report, 'INTERACTION-2'),
  );

  test('INTERACTION-3: leaves the floor free while the queue is empty', { tags: ['B53'] }, () =>
    holds(report, 'INTERACTION-3'),
  );

  test('INTERACTION-4: taking the floor away has two phases', () => holds(report, 'INTERACTION-4'));

  test('every wait has a way out, and the floor can always become free', () => {
    holds(report, 'an owner can release the floor');
    holds(report, 'who waits can leave');
    holds(report, 'an end can always be reached');
  });

  test('nothing else is wrong, and it is not because nothing happens', () =>
    holdsThroughout(report));
});

describe('the arbiter by example', () => {
  test(
    'two ask in the same instant; the second has the floor after the first',
    { tags: ['B54'] },
    () => {
      const stage = new Stage(interactionMachine);
      stage.send({ type: 'interaction.request', id: 'a' });
      stage.send({ type: 'interaction.request', id: 'b' });
      expect(stage.told()).toEqual([['grant', { id: 'a', epoch: 1 }]]);
      stage.send({ type: 'interaction.release', id: 'a', epoch: 1 });
      expect(stage.told()).toEqual([['grant', { id: 'b', epoch: 2 }]]);
      // A message that arrives twice releases nothing.
      stage.send({ type: 'interaction.release', id: 'b', epoch: 1 });
      expect(ownerOf(stage.actor.getSnapshot())).toBe('b');
    },
  );

  test('an owner that shall go keeps the floor until it has gone', () => {
    const stage = new Stage(interactionMachine);
    stage.send({ type: 'interaction.request', id: 'a' });
    stage.send({ type: 'interaction.request', id: 'b' });
    stage.send({ type: 'interaction.withdraw', id: 'a' });
    expect(stage.told()).toEqual([
      ['grant', { id: 'a', epoch: 1 }],
      ['revoke', { id: 'a', epoch: 1 }],
    ]);
    expect(ownerOf(stage.actor.getSnapshot())).toBeNull();
    stage.send({ type: 'interaction.release', id: 'a', epoch: 1 });
    expect(stage.told()).toEqual([['grant', { id: 'b', epoch: 2 }]]);
  });

  test(
    'one that is over before its grant arrives does not keep the floor',
    { tags: ['B54', 'BW3', 'BW4'] },
    () => {
      // A release (without an epoch) and the grant crossed; an earlier version then lost the floor for ever.
      const stage = new Stage(interactionMachine);
      stage.send({ type: 'interaction.request', id: 'a' });
      stage.send({ type: 'interaction.request', id: 'b' });
      stage.send({ type: 'interaction.release', id: 'a', epoch: 0 });
      expect(stage.told().at(-1)).toEqual(['grant', { id: 'b', epoch: 2 }]);
    },
  );
});
