// SCHEDULES-2: the times of a schedule, compared with a search through all minutes in the platform's calendar.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { timeAfter } from '../../../../src/actors/session/effects/schedules.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Time zones with offsets in whole and half hours, with a gap at midnight, and without daylight saving. */
const ZONES = [
  'UTC',
  'Europe/Vienna',
  'America/New_York',
  'Australia/Lord_Howe',
  'America/Santiago',
  'Asia/Kolkata',
];

const formats = new Map(
  ZONES.map((timeZone) => [
    timeZone,
    new Intl.DateTimeFormat('en-GB', {
      timeZone,
      hour: '2-digit',
      minute: '2-digit',
      day: '2-digit',
      hourCycle: 'h23',
    }),
  ]),
);

function localOf(at: number, timeZone: string) {
  const parts = formats.get(timeZone)?.formatToParts(at) ?? [];
  const of = (type: string): number => Number(parts.find((part) => part.type === type)?.value);
  return { day: of('day'), minutes: of('hour') * 60 + of('minute') };
}

const START = Date.UTC(2026, 0, 1);
const moments = fc.integer({ min: 0, max: 2 * 365 * 24 * 60 }).map((n) => START + n * MINUTE);

describe('a daily time', () => {
  test('occurs once on each local day at its clock time, unless the clock skips that time', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...ZONES),
        fc.integer({ min: 0, max: 23 }),
        fc.constantFrom(0, 15, 30, 45),
        moments,
        (timeZone, hour, minute, from) => {
          const schedule = { dueAt: from, cron: `${minute} ${hour} * * *`, timeZone };
          let at = from;
          let before: number | null = null;
          for (let day = 0; day < 5; day += 1) {
            const next = timeAfter(schedule, at);
            if (next === null) throw new Error('Expected another day');
            expect(next).toBeGreaterThan(at);
            const wanted = hour * 60 + minute;
            const { day: date, minutes } = localOf(next, timeZone);
            expect(date).not.toBe(before);
            before = date;
            if (minutes !== wanted) {
              // The clock skipped the scheduled time, so this is the first minute after the gap.
              expect(localOf(next - MINUTE, timeZone).minutes).toBeLessThan(wanted);
              expect(minutes).toBeGreaterThan(wanted);
            }
            expect(next - at).toBeLessThanOrEqual(26 * HOUR);
            at = next;
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test.each([
    ['the clock skips it', '2026-03-28T12:00:00Z', '2026-03-29T01:00:00Z'],
    ['the clock shows it twice', '2026-10-24T12:00:00Z', '2026-10-25T00:30:00Z'],
    ['the clock has shown it once', '2026-10-25T00:30:00Z', '2026-10-26T01:30:00Z'],
  ])('finds half past two in Vienna when %s', (_, from, then) => {
    const schedule = { dueAt: 0, cron: '30 2 * * *', timeZone: 'Europe/Vienna' };
    expect(timeAfter(schedule, Date.parse(from))).toBe(Date.parse(then));
  });
});

test('returns times that are a whole number of intervals after the first time', () => {
  fc.assert(
    fc.property(
      moments,
      fc.integer({ min: 1000, max: 400 * HOUR }),
      moments,
      (dueAt, everyMs, after) => {
        const next = timeAfter({ dueAt, everyMs, timeZone: 'UTC' }, after) ?? 0;
        expect(next).toBeGreaterThan(Math.min(after, next - 1));
        expect((next - dueAt) % everyMs).toBe(0);
        expect(next > after || next === dueAt).toBe(true);
        expect(next - Math.max(after, dueAt)).toBeLessThanOrEqual(everyMs);
      },
    ),
  );
});
