import { describe, test } from 'vitest';
import { checkSchedule } from './support/schedule-check.ts';
import { scheduleFaults } from './support/schedule-faults.ts';
import { announce, catches, holds, holdsThroughout } from './support/verdicts.ts';

describe.each([
  { what: 'words', isTask: false },
  { what: 'a task', isTask: true },
])('every state of a schedule of $what', ({ isTask }) => {
  const report = checkSchedule(isTask);
  announce(report);

  test('SCHEDULE-1: becomes due once at each of its times, in order', () =>
    holds(report, 'SCHEDULE-1'));

  test('SCHEDULE-2: ends a cancelled schedule', () => holds(report, 'SCHEDULE-2'));

  test('SCHEDULE-3: always waits for a time, starts a task or has ended', () =>
    holds(report, 'SCHEDULE-3'));

  test('violates no other property and reaches all states', () => holdsThroughout(report));
});

describe('a planted fault is caught', () => {
  test.each(scheduleFaults)('$fault', ({ machine, property, isTask }) =>
    catches((first) => checkSchedule(isTask, machine, first), property),
  );
});
