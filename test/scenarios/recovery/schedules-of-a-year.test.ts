// A year of schedules in zones with every kind of daylight saving, in a session that sleeps between due times and whose
// process is killed at random (P4, P6). The platform's calendar determines when each schedule should be due.

import { describe, expect, test } from 'vitest';
import {
  createSessionPool,
  memoryWakeTimes,
  type WakeTimes,
} from '../../../src/entries/journal.ts';
import { timeAfter } from '../../../src/actors/session/effects/schedules.ts';
import { createRuntime, memoryJournal, type TextSession } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { chanceOf } from '../../../src/testing/doubles/chance.ts';
import { SimulatedProcess } from '../../../src/testing/doubles/simulated-process.ts';
import { textTalk } from '../../support/text-talk.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 0, 1);
const DAYS = 366;
/** The longest time during which no process runs. */
const MAX_DOWN_MS = 16 * DAY;

/**
 * All schedules are due on Sundays, when the clocks change. The zones change by an hour, by half an hour, at midnight,
 * for Ramadan, or not at all.
 */
const TIMES = [
  ['Europe/Lisbon', '01:30'],
  ['America/New_York', '02:30'],
  ['Australia/Lord_Howe', '02:10'],
  ['America/Santiago', '00:00'],
  ['Africa/Casablanca', '02:59'],
  ['Asia/Kolkata', '09:00'],
] as const;

/** Returns the local date and time, such as `2026-12-24 18:00`. */
const localOf = (at: number, timeZone: string): string =>
  new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' }).format(at);

const cronOf = (time: string): string => {
  const [hours, minutes] = time.split(':').map(Number);
  return `${minutes} ${hours} * * SUN`;
};

interface Life {
  readonly seed: number;
  /** The number of kills in the year. */
  readonly kills: number;
  /** Replaces a schedule's time zone, to plant a fault in the calendar. */
  readonly zoneOf?: (timeZone: string) => string;
  readonly wakeTimes?: (right: WakeTimes) => WakeTimes;
}

async function year({ seed, kills, zoneOf = (zone) => zone, wakeTimes: odd }: Life) {
  const chance = chanceOf(seed, 'a year');
  const environment = simulatedEnvironment({ startAt: START });
  const right = memoryWakeTimes();
  const wakeTimes = odd?.(right) ?? right;
  const journal = memoryJournal({ keep: Infinity });
  const due: { readonly key: string; readonly dueAt: number; readonly at: number }[] = [];
  const told: string[] = [];
  /** The periods during which no process was running. */
  const down: (readonly [from: number, to: number])[] = [];

  function begin() {
    const process = new SimulatedProcess(down.length + 1, environment);
    const runtime = createRuntime({
      environment: process.environment,
      snapshots: { trim: true },
      journal: {
        ...journal,
        wakeTimes,
        append(entry) {
          if (!process.isAlive) return new Promise(() => {});
          const event: { readonly type: string; readonly dueAt?: number } = entry.event;
          if (event.type === 'deadline.schedule' && event.dueAt !== undefined)
            due.push({
              key: entry.actor.slice('schedule:'.length),
              dueAt: event.dueAt,
              at: entry.at,
            });
          return journal.append(entry);
        },
      },
    });
    const pool = createSessionPool<TextSession>({
      runtime,
      idleMs: 1000,
      lookMs: Infinity,
      open(sessionId) {
        const { session } = textTalk({
          sessionId,
          runtime,
          environment,
          conversation: { limits: { maxItems: 20 }, summarise: false, keepItems: 10 },
        });
        session.parts.subscribe((part) => {
          if (process.isAlive && part.type === 'text.done') told.push(part.text);
        });
        return session;
      },
    });
    return { pool, process };
  }

  let life = begin();
  await life.pool.start();
  await life.pool.use('ses', async (session) => {
    for (const [timeZone, time] of TIMES) {
      const zone = zoneOf(timeZone);
      const cron = cronOf(time);
      await session.schedule({ key: timeZone, cron, timeZone: zone, say: timeZone, missed: 'all' });
    }
  });
  const ends = START + DAYS * DAY;
  const deaths = Array.from({ length: kills }, () => {
    const at = START + chance.below(DAYS) * DAY + chance.below(DAY);
    const [timeZone, time] = chance.pick(TIMES);
    // Most kills happen in the first moments after a due time.
    const dueAt = timeAfter({ dueAt: 0, cron: cronOf(time), timeZone }, at) ?? at;
    return chance.happens(0.7) ? dueAt + chance.below(20) : at;
  });
  for (const at of deaths.toSorted((a, b) => a - b)) {
    const leftMs = at - environment.clock.now();
    if (leftMs <= 0) continue;
    await environment.advance(leftMs);
    life.process.kill();
    const from = environment.clock.now();
    await environment.advance(chance.happens(0.5) ? 0 : chance.below(MAX_DOWN_MS));
    down.push([from, environment.clock.now()]);
    life = begin();
    void life.pool.start();
    await environment.settle();
  }
  await environment.advance(Math.max(0, ends - environment.clock.now()));
  const closed = life.pool.close();
  await environment.advance(MINUTE);
  await closed;
  return { due, told, down };
}

/** Returns descriptions of all errors in the year; empty if there are none. */
function wrongIn({ due, told, down }: Awaited<ReturnType<typeof year>>): readonly string[] {
  const wrong: string[] = [];
  const isDown = (at: number): boolean =>
    down.some(([from, to]) => at >= from && at <= to + MINUTE);
  for (const [timeZone, time] of TIMES) {
    const own = due.filter(({ key }) => key === timeZone);
    const dates = own.map(({ dueAt }) => localOf(dueAt, timeZone).slice(0, 10));
    const days = [...Array(DAYS - 2).keys()]
      .map((day) => localOf(START + (day + 1) * DAY + 12 * HOUR, timeZone).slice(0, 10))
      .filter((day) => new Date(`${day}T00:00Z`).getUTCDay() === 0);
    for (const day of days) {
      const times = dates.filter((one) => one === day).length;
      if (times !== 1) wrong.push(`${timeZone}: ${times} times on ${day}`);
    }
    for (const { dueAt, at } of own) {
      const local = localOf(dueAt, timeZone);
      const wanted = `${local.slice(0, 10)} ${time}`;
      // A time that the clock skips is due at the end of the gap.
      const isInGap = localOf(dueAt - MINUTE, timeZone) < wanted && local > wanted;
      if (local !== wanted && !isInGap) wrong.push(`${timeZone}: due at ${local}`);
      if (at < dueAt) wrong.push(`${timeZone}: ${dueAt - at} ms early`);
      if (at - dueAt > MINUTE && !isDown(dueAt)) wrong.push(`${timeZone}: ${at - dueAt} ms late`);
    }
    const heard = told.filter((text) => text.includes(timeZone)).length;
    // A message whose process died before writing the entry is presented again.
    if (heard < own.length || heard > own.length + down.length)
      wrong.push(`${timeZone}: due ${own.length} times, told ${heard} times`);
  }
  return wrong;
}

describe('a year of schedules', () => {
  test('P4, P6: becomes due once at each of its local times if the process is not killed', async () => {
    const lived = await year({ seed: 1, kills: 0 });
    expect(wrongIn(lived)).toEqual([]);
    expect(lived.due.length).toBeGreaterThan(TIMES.length * 50);
    expect(lived.told).toHaveLength(lived.due.length);
  });

  test.each([2, 3])(
    'P4, P6: becomes due once at each of its times despite 40 kills: seed %i',
    async (seed) => {
      expect(wrongIn(await year({ seed, kills: 40 }))).toEqual([]);
    },
  );

  test('detects a calendar that ignores daylight saving', async () => {
    const wrong = wrongIn(await year({ seed: 1, kills: 0, zoneOf: () => 'UTC' }));
    expect(wrong.join()).toContain('due at');
  });

  test('detects that a session is not woken', async () => {
    const asleep = (right: WakeTimes): WakeTimes => ({
      ...right,
      earliest: async (query) => (await right.earliest(query)).filter(({ at }) => at === 0),
    });
    const wrong = wrongIn(await year({ seed: 1, kills: 10, wakeTimes: asleep }));
    expect(wrong.join()).toMatch(/late|0 times/);
  });
});
