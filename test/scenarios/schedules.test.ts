// Schedules: which messages the user gets and which tasks start, and at which times.

import { describe, expect, test } from 'vitest';
import { CapacityError, ConfigurationError, type TextSessionOptions } from '../../src/index.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { textLife, turns, world } from '../support/crashes.ts';
import { say } from '../support/subagent-runs.ts';
import { textTalk, type TalkOptions } from '../support/text-talk.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Monday, 09:00 in Vienna. */
const MONDAY_9 = Date.UTC(2026, 10, 30, 8);

async function started(options: TalkOptions = {}, startAt = MONDAY_9) {
  const talk = textTalk({ environment: simulatedEnvironment({ startAt }), ...options });
  await talk.start();
  const now = () => talk.environment.clock.now();
  /** The messages that the lead agent received at due times. */
  const reminded = () => talk.said().filter((text) => /due now|was due/.test(text));
  return { ...talk, now, reminded };
}

describe('a message spoken at a set time', () => {
  test('delivers a reminder once when it is due', async () => {
    const talk = await started();
    const receipt = await talk.session.schedule({
      key: 'pizza',
      at: talk.now() + 20 * MINUTE,
      say: 'Take the pizza out',
    });
    expect(receipt).toEqual({ key: 'pizza', dueAt: MONDAY_9 + 20 * MINUTE, changed: true });
    expect(talk.state().schedules).toMatchObject([
      { key: 'pizza', state: 'waiting', dueAt: receipt.dueAt },
    ]);
    await talk.environment.advance(20 * MINUTE - 1);
    expect(talk.reminded()).toEqual([]);
    await talk.environment.advance(MINUTE);
    expect(talk.reminded()).toHaveLength(1);
    expect(talk.reminded()[0]).toContain('Take the pizza out');
    expect(talk.state().schedules).toEqual([]);
    await talk.environment.advance(DAY);
    expect(talk.reminded()).toHaveLength(1);
    await talk.close();
    expect(talk.errors).toEqual([]);
  });

  test.each([
    [
      'a local time',
      { at: '2026-12-01T07:30', timeZone: 'Europe/Vienna' },
      Date.UTC(2026, 11, 1, 6, 30),
    ],
    ['a time with its offset', { at: '2026-12-01T07:30:00-05:00' }, Date.UTC(2026, 11, 1, 12, 30)],
    [
      'a local time in the session’s time zone',
      { at: '2026-12-01T07:30' },
      Date.UTC(2026, 10, 30, 22, 30),
    ],
    ['an interval', { everyMs: HOUR }, MONDAY_9 + HOUR],
    ['a pattern', { cron: '0 9 * * TUE', timeZone: 'Europe/Vienna' }, MONDAY_9 + DAY],
  ])('accepts %s', async (_, when, dueAt) => {
    const talk = await started({ timeZone: 'Asia/Tokyo' });
    expect(await talk.session.schedule({ key: 'k', say: 'hello', ...when })).toMatchObject({
      dueAt,
    });
    await talk.close();
  });

  test('continues a series that is set again unchanged, and ends a series that is cancelled', async () => {
    const talk = await started();
    const spec = { key: 'water', everyMs: HOUR, say: 'Drink' };
    await talk.session.schedule(spec);
    await talk.environment.advance(90 * MINUTE);
    expect(await talk.session.schedule({ ...spec })).toEqual({
      key: 'water',
      dueAt: MONDAY_9 + 2 * HOUR,
      changed: false,
    });
    await talk.environment.advance(2 * HOUR);
    expect(talk.reminded()).toHaveLength(3);
    expect(await talk.session.unschedule('water')).toBe(true);
    expect(await talk.session.unschedule('water')).toBe(false);
    await talk.environment.advance(DAY);
    expect(talk.reminded()).toHaveLength(3);
    await talk.close();
  });

  test('replaces a schedule with the same key', async () => {
    const talk = await started();
    await talk.session.schedule({ key: 'k', at: talk.now() + MINUTE, say: 'first' });
    await talk.session.schedule({ key: 'k', at: talk.now() + 2 * MINUTE, say: 'second' });
    expect(talk.state().schedules).toHaveLength(1);
    await talk.environment.advance(HOUR);
    expect(talk.reminded()).toHaveLength(1);
    expect(talk.reminded()[0]).toContain('second');
    await talk.close();
  });

  test("keeps only a series' latest reminder until the user hears it", async () => {
    const talk = textTalk({ environment: simulatedEnvironment({ startAt: MONDAY_9 }) });
    await talk.session.start();
    await talk.session.schedule({ key: 'k', everyMs: HOUR, say: 'Drink' });
    await talk.session.schedule({ key: 'all', everyMs: 2 * HOUR, say: 'Eat', missed: 'all' });
    await talk.environment.advance(5 * HOUR);
    const waiting = talk.state().deliveries.filter(({ state }) => state === 'pending');
    expect(waiting.map(({ text }) => text).toSorted()).toEqual(['Drink', 'Eat', 'Eat']);
    await talk.close();
  });
});

describe('a task started at a set time', () => {
  const report = { script: turns(say('The report is ready')) };

  test('starts a subagent and delivers its result', async () => {
    const talk = await started({ subagents: { report } });
    const task = { subagent: 'report', task: 'Write the weekly report' };
    await talk.session.schedule({
      key: 'weekly',
      cron: '0 10 * * MON',
      task,
      timeZone: 'Europe/Vienna',
    });
    await talk.environment.advance(HOUR + MINUTE);
    expect(talk.session.subagents.list()).toMatchObject([
      { name: 'report', state: 'completed', outcome: { status: 'completed' } },
    ]);
    expect(talk.said().join()).toContain('The report is ready');
    expect(talk.state().schedules).toMatchObject([{ dueAt: MONDAY_9 + HOUR + 7 * DAY }]);
    await talk.close();
    expect(talk.errors).toEqual([]);
  });

  test('informs the user that a task could not start', async () => {
    const talk = await started({ subagents: { report }, limits: { maxTotalPerSession: 1 } });
    const task = { subagent: 'report', task: 'Write' };
    await talk.session.schedule({ key: 'k', everyMs: HOUR, task });
    await talk.environment.advance(2 * HOUR + MINUTE);
    expect(talk.said().join()).toContain('report was not started');
    expect(talk.state().schedules).toMatchObject([{ state: 'waiting' }]);
    await talk.close();
  });
});

describe('times that pass while no process is running the session', () => {
  async function after(downMs: number, missed?: 'once' | 'all' | 'skip', everyMs = HOUR) {
    const of = world();
    const first = textLife(of);
    await first.start();
    await first.session.schedule({ key: 'k', everyMs, say: 'Drink', ...(missed && { missed }) });
    first.kill();
    await of.environment.advance(downMs);
    const next = textLife(of);
    await next.start();
    await of.environment.advance(1000);
    const said = next.said().filter((text) => /due now|was due/.test(text));
    const [schedule] = next.state().schedules;
    const now = of.environment.clock.now();
    await next.close();
    return { said, nextInMs: (schedule?.dueAt ?? 0) - now };
  }

  test('makes up for all missed times with one reminder, which names the first of them', async () => {
    const { said, nextInMs } = await after(3.5 * HOUR);
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(/wasDue.*\d\d:\d\d/);
    expect(nextInMs).toBe(0.5 * HOUR - 1000);
  });

  test('makes up for each missed time if `missed` is `all`', async () => {
    const { said } = await after(3.5 * HOUR, 'all');
    expect(said).toHaveLength(3);
  });

  test('makes up only once for more than 100 missed times', async () => {
    const { said } = await after(200.5 * HOUR, 'all');
    expect(said).toHaveLength(1);
  });

  test('skips times that are more than a minute late if `missed` is `skip`', async () => {
    expect(await after(3.5 * HOUR, 'skip')).toEqual({ said: [], nextInMs: 0.5 * HOUR - 1000 });
    expect((await after(HOUR + 30_000, 'skip')).said).toHaveLength(1);
  });
});

describe('a clock that is changed while the session is in memory', () => {
  /** A clock that can be set, on top of simulated timers. */
  function settable() {
    const environment = simulatedEnvironment({ startAt: MONDAY_9 });
    let setBy = 0;
    const clock = { now: () => environment.clock.now() + setBy };
    return { environment: { ...environment, clock }, set: (byMs: number) => (setBy += byMs) };
  }

  test('delivers a reminder within half a minute when the clock is set forward', async () => {
    const { environment, set } = settable();
    const talk = await started({ environment });
    await talk.session.schedule({ key: 'k', at: MONDAY_9 + 5 * HOUR, say: 'hello' });
    set(6 * HOUR);
    await talk.environment.advance(30_000);
    expect(talk.reminded()).toHaveLength(1);
    await talk.close();
  });

  test('delivers a reminder once when the clock is set back', async () => {
    const { environment, set } = settable();
    const talk = await started({ environment });
    await talk.session.schedule({ key: 'k', everyMs: HOUR, say: 'hello' });
    await talk.environment.advance(HOUR);
    expect(talk.reminded()).toHaveLength(1);
    set(-HOUR);
    await talk.environment.advance(90 * MINUTE);
    expect(talk.reminded()).toHaveLength(1);
    await talk.environment.advance(HOUR);
    expect(talk.reminded()).toHaveLength(2);
    await talk.close();
  });
});

describe('a schedule that is refused', () => {
  const refusals: readonly (readonly [string, object, string])[] = [
    ['no key', { at: MONDAY_9 + HOUR, say: 'x' }, 'INVALID_ARGUMENT'],
    ['no time', { key: 'k', say: 'x' }, 'INVALID_ARGUMENT'],
    ['two times', { key: 'k', everyMs: HOUR, at: MONDAY_9 + HOUR, say: 'x' }, 'INVALID_ARGUMENT'],
    ['neither words nor a task', { key: 'k', everyMs: HOUR }, 'INVALID_ARGUMENT'],
    ['an unknown option', { key: 'k', every: HOUR, say: 'x' }, 'INVALID_ARGUMENT'],
    ['a time that has passed', { key: 'k', at: MONDAY_9, say: 'x' }, 'TIME_PASSED'],
    ['a local time that has passed', { key: 'k', at: '2026-11-30T07:59', say: 'x' }, 'TIME_PASSED'],
    ['no time at all', { key: 'k', at: 'tomorrow', say: 'x' }, 'INVALID_ARGUMENT'],
    [
      'a day that no calendar has',
      { key: 'k', at: '2027-02-30T09:00', say: 'x' },
      'INVALID_ARGUMENT',
    ],
    ['a date without a time', { key: 'k', at: '2026-12-01', say: 'x' }, 'INVALID_ARGUMENT'],
    [
      'a time as a pattern',
      { key: 'k', cron: '2026-12-01T09:00:00', say: 'x' },
      'INVALID_ARGUMENT',
    ],
    ['a pattern without a time', { key: 'k', cron: '0 0 31 2 *', say: 'x' }, 'INVALID_ARGUMENT'],
    ['a broken pattern', { key: 'k', cron: '99 * * * *', say: 'x' }, 'INVALID_ARGUMENT'],
    [
      'an unknown zone',
      { key: 'k', everyMs: HOUR, timeZone: 'Mars/Base', say: 'x' },
      'INVALID_ARGUMENT',
    ],
    ['a short interval', { key: 'k', everyMs: 10, say: 'x' }, 'INVALID_ARGUMENT'],
    [
      'an unknown subagent',
      { key: 'k', everyMs: HOUR, task: { subagent: 'toString', task: 'x' } },
      'INVALID_ARGUMENT',
    ],
    [
      'a megabyte of words',
      { key: 'k', everyMs: HOUR, say: 'x'.repeat(1_000_000) },
      'TEXT_TOO_LONG',
    ],
    ['a long key', { key: 'k'.repeat(201), everyMs: HOUR, say: 'x' }, 'INVALID_ARGUMENT'],
    ['half a character as a key', { key: '\ud800', everyMs: HOUR, say: 'x' }, 'INVALID_ARGUMENT'],
  ];

  test.each(refusals)('refuses %s', async (_, options, code) => {
    const talk = await started();
    const refused = talk.session.schedule(options as never);
    await expect(refused).rejects.toMatchObject({ code });
    expect(talk.state().schedules).toEqual([]);
    await talk.close();
  });

  test('refuses schedules above the limit even if ten thousand are set in parallel', async () => {
    const talk = await started({ limits: { maxSchedules: 100 } });
    const set = await Promise.allSettled(
      Array.from({ length: 10_000 }, (_, n) =>
        talk.session.schedule({ key: `k${n}`, everyMs: HOUR, say: 'x' }),
      ),
    );
    const refused = set.filter((each) => each.status === 'rejected');
    expect(refused).toHaveLength(9_900);
    expect(refused[0]?.reason).toBeInstanceOf(CapacityError);
    expect(refused[0]?.reason).toMatchObject({ code: 'TOO_MANY_SCHEDULES' });
    expect(talk.state().schedules).toHaveLength(100);
    // A known key does not need any space.
    await talk.session.schedule({ key: 'k1', everyMs: HOUR, say: 'other' });
    await talk.close();
  });

  test('refuses schedules before the start and after the end', async () => {
    const talk = textTalk();
    const options = { key: 'k', everyMs: HOUR, say: 'x' };
    const notActive = { code: 'SESSION_NOT_ACTIVE' };
    await expect(talk.session.schedule(options)).rejects.toMatchObject(notActive);
    await talk.start();
    await talk.close();
    await expect(talk.session.schedule(options)).rejects.toMatchObject(notActive);
    await expect(talk.session.unschedule('k')).rejects.toBeInstanceOf(ConfigurationError);
  });

  test('refuses a session time zone that does not exist', () => {
    const options: Partial<TextSessionOptions> = { timeZone: 'Vienna' };
    expect(() => textTalk(options)).toThrow(/timeZone/);
  });
});
