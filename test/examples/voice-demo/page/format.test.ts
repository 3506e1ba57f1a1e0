import { expect, test } from 'vitest';
import {
  countdown,
  duration,
  humanName,
  ordinal,
  taskTitle,
} from '../../../../examples/voice-demo/page/format.ts';

test.each([
  [0, '0 s'],
  [59_999, '59 s'],
  [60_000, '1:00'],
  [-5, '0 s'],
])('%i ms took %s', (ms, words) => {
  expect(duration(ms)).toBe(words);
});

test.each([
  [120_000, '2:00'],
  [59_001, '1:00'],
  [900, '0:01'],
  [0, '0:00'],
  [-1, '0:00'],
])('%i ms are left as %s', (ms, words) => {
  expect(countdown(ms)).toBe(words);
});

test.each([
  [1, '1st'],
  [2, '2nd'],
  [3, '3rd'],
  [4, '4th'],
  [11, '11th'],
  [12, '12th'],
  [21, '21st'],
])('%i is %s', (position, words) => {
  expect(ordinal(position)).toBe(words);
});

test.each([
  ['book_ride', { destination: 'the airport' }, 'A ride to the airport'],
  ['book_ride', undefined, 'A ride'],
  ['book_table', { partySize: 2 }, 'A table for 2'],
  ['generate_report', { dateRange: 'last week' }, 'A sales report for last week'],
  ['generate_report', { dateRange: { odd: true } }, 'A sales report'],
  ['paint_fence', {}, 'Paints a fence.'],
])('%s with %j is %s', (toolName, input, title) => {
  expect(taskTitle({ toolName, task: 'Paints a fence.' }, input)).toBe(title);
});

test('names are read as words', () => {
  expect(humanName('ride_booker')).toBe('ride booker');
});
