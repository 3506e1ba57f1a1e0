import { expect, test } from 'vitest';
import { forgetOldest } from '../../src/values/forget-oldest.ts';

test('drops only the oldest entries above the limit', () => {
  const set = new Set([3, 1, 2]);
  forgetOldest(set, 3);
  expect([...set]).toEqual([3, 1, 2]);
  set.add(4);
  forgetOldest(set, 2);
  expect([...set]).toEqual([2, 4]);
  const map = new Map([
    ['a', 1],
    ['b', 2],
  ]);
  forgetOldest(map, 1);
  expect([...map]).toEqual([['b', 2]]);
  forgetOldest(map, 0);
  expect(map.size).toBe(0);
});
