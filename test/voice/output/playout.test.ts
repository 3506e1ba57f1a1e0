// The audio that has been played, as the client reports it.

import { describe, expect, test } from 'vitest';
import { Playout } from '../../../src/voice/output/playout.ts';

function twoItems(): Playout {
  const playout = new Playout();
  playout.sent('first', 'resp_1', 800);
  playout.complete('resp_1');
  playout.sent('second', 'resp_2', 600);
  return playout;
}

describe('P3: items that play one after another', () => {
  test('count the first item as played once the second one has started', () => {
    const playout = twoItems();
    playout.played('first', 500);
    expect(playout.played('second', 20)).toEqual([
      { itemId: 'first', responseId: 'resp_1', sentMs: 800, playedMs: 800, isComplete: true },
    ]);
  });

  test('infer nothing about the first item if the second one has not started', () => {
    const playout = twoItems();
    playout.played('first', 500);
    expect(playout.played('second', 0)).toEqual([]);
    expect(playout.current.map(({ playedMs }) => playedMs)).toEqual([500, 0]);
  });
});
