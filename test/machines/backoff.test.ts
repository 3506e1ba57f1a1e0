// The pause before a failed operation is retried.

import { expect, test } from 'vitest';
import { backoffMs } from '../../src/machines/index.ts';

test('doubles the delay with each failure up to the maximum', () => {
  const limits = { baseDelayMs: 100, maxDelayMs: 1000 };
  const pauses = [1, 2, 3, 4, 5, 6].map((failures) => backoffMs(limits, failures, 0));
  expect(pauses).toEqual([100, 200, 400, 800, 1000, 1000]);
});

test('shortens the delay by a random fraction of up to half', () => {
  const limits = { baseDelayMs: 100, maxDelayMs: 1000 };
  expect([0, 0.5, 1].map((jitter) => backoffMs(limits, 2, jitter))).toEqual([200, 150, 100]);
});

test.each([
  { baseDelayMs: 0, maxDelayMs: Infinity },
  { baseDelayMs: 0, maxDelayMs: 0 },
])('always returns 0 if the base delay is 0 (at most $maxDelayMs ms)', (limits) => {
  for (const failures of [1, 1024, 1025, 5000]) expect(backoffMs(limits, failures, 0.5)).toBe(0);
});
