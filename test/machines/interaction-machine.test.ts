import { describe, expect, test } from 'vitest';
import { interactionMachine, ownerOf } from '../../src/machines/index.ts';
import { checkInteraction } from './support/interaction-check.ts';
import { Stage } from './support/stage.ts';
import { announce, holds, holdsThroughout } from './support/verdicts.ts';

describe('every state of the arbiter', () => {
  const report = checkInteraction();
  announce(report);

  test(
    'INTERACTION-1: has at most one owner, and only this owner can release the floor',
    { tags: ['B53'] },
    () => holds(report, 'INTERACTION-1'),
  );

  test('INTERACTION-2: serves requests in order of arrival', { tags: ['B52', 'B53'] }, () =>
    holds(report, 'INTERACTION-2'),
  );

  test('INTERACTION-3: keeps the floor free as long as the queue is empty', { tags: ['B53'] }, () =>
    holds(report, 'INTERACTION-3'),
  );

  test('INTERACTION-4: revokes the floor in two phases', () => holds(report, 'INTERACTION-4'));

  test('never gets stuck and can always free the floor', () => {
    holds(report, 'an owner can release the floor');
    holds(report, 'who waits can leave');
    holds(report, 'an end can always be reached');
  });

  test('violates no other property and reaches the expected states', () => holdsThroughout(report));
});

describe('an example of the arbiter', () => {
  test(
    'gives the floor to the first of two simultaneous questions and then to the second',
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

  test('does not pass the floor on until the owner has left it as asked', () => {
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
    'does not give the floor to a question that ends before its grant arrives',
    { tags: ['B54', 'BW3', 'BW4'] },
    () => {
      // The release (without an epoch) crossed the grant. An earlier version then lost the floor permanently.
      const stage = new Stage(interactionMachine);
      stage.send({ type: 'interaction.request', id: 'a' });
      stage.send({ type: 'interaction.request', id: 'b' });
      stage.send({ type: 'interaction.release', id: 'a', epoch: 0 });
      expect(stage.told().at(-1)).toEqual(['grant', { id: 'b', epoch: 2 }]);
    },
  );
});
