import { describe, expect, test } from 'vitest';
import {
  daysBetween,
  findDateRange,
  parseDateRange,
  periodBefore,
} from '../../../../examples/voice-demo/agents/date-range.ts';

// A Friday.
const now = Date.UTC(2026, 10, 20, 12);

describe('periods in natural language', () => {
  test.each([
    ['today', '2026-11-20', '2026-11-20'],
    ['yesterday', '2026-11-19', '2026-11-19'],
    ['this week', '2026-11-16', '2026-11-20'],
    ['last week', '2026-11-09', '2026-11-15'],
    ['this month', '2026-11-01', '2026-11-20'],
    ['last month', '2026-10-01', '2026-10-31'],
    ['last quarter', '2026-07-01', '2026-09-30'],
    ['last year', '2025-01-01', '2025-12-31'],
    ['the last 7 days', '2026-11-14', '2026-11-20'],
    ['past two weeks', '2026-11-07', '2026-11-20'],
    ['the last three months', '2026-08-21', '2026-11-20'],
    // The current quarter ends today.
    ['the fourth quarter', '2026-10-01', '2026-11-20'],
    ['Q3', '2026-07-01', '2026-09-30'],
    ['Q4 2024', '2024-10-01', '2024-12-31'],
    ['first quarter of 2025', '2025-01-01', '2025-03-31'],
    ['March', '2026-03-01', '2026-03-31'],
    // This December has not started, so last December is meant.
    ['December', '2025-12-01', '2025-12-31'],
    ['May 2025', '2025-05-01', '2025-05-31'],
    ['2025', '2025-01-01', '2025-12-31'],
  ])('%s', (words, from, to) => {
    expect(parseDateRange(words, now)).toMatchObject({ from, to });
  });

  test.each(['soon', 'the other day', '', 'may I'])('finds no period in %j', (words) => {
    expect(parseDateRange(words, now)).toBeNull();
  });
});

test.each([
  ['make me a sales report for the fourth quarter please', 'the fourth quarter'],
  ['report on last weak', 'last week'],
  ['a report for May', 'may'],
  ['may I have a report', null],
])('finds a period in %j', (sentence, found) => {
  expect(findDateRange(sentence)).toBe(found);
});

test.each(['a report for May', 'sales in june', 'the past 3 days', 'queue two'])(
  'resolves every period found in %j',
  (sentence) => {
    expect(parseDateRange(findDateRange(sentence) ?? '', now)).not.toBeNull();
  },
);

test('computes the preceding period of equal length', () => {
  const before = periodBefore({ from: '2026-11-09', to: '2026-11-15' });
  expect(before).toEqual({ from: '2026-11-02', to: '2026-11-08' });
  expect(daysBetween('2026-11-09', '2026-11-15')).toBe(7);
});
