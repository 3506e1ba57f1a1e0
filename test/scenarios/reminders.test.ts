// Reminders that the user asks the lead agent for, with `reminders`, the runtime's tool.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../src/index.ts';
import { simulatedEnvironment, type Script, type ScriptedPrompt } from '../../src/testing/index.ts';
import { instantsOf, textLife, world, type World } from '../support/crashes.ts';
import { leadScript, textTalk, type TalkOptions } from '../support/text-talk.ts';
import { voiceTalk } from '../support/voice-talk.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Monday, 20:10 in Lisbon. */
const MONDAY = Date.UTC(2026, 10, 30, 20, 10);
const NOW = 'Monday, 30 November 2026 at 20:10';
const TIME = { timeZone: 'Europe/Lisbon', reminders: true } as const;

/**
 * The lead model answers `remind {…}` with a tool call that has this input, and `remind {…} {…}` with several calls at
 * once.
 */
const lead: Script = (prompt) => {
  const json = /^remind (.*)$/s.exec(prompt.user)?.[1];
  if (json === undefined || prompt.prompt.at(-1)?.role !== 'user') return leadScript(prompt);
  const inputs = json.split(/(?<=\}) (?=\{)/);
  return { calls: inputs.map((input) => ({ name: 'reminders', input })) };
};

async function talk(more: TalkOptions = {}) {
  const prompts: ScriptedPrompt[] = [];
  const made = textTalk({
    environment: simulatedEnvironment({ startAt: MONDAY }),
    lead,
    onModelCall: (who, prompt) => {
      if (who === 'lead') prompts.push(prompt);
    },
    ...TIME,
    ...more,
  });
  await made.start();
  const answers = () =>
    made.events.flatMap((event) =>
      event.type === 'tool.answered' && event.name === 'reminders'
        ? [event.output as Record<string, unknown>]
        : [],
    );
  return {
    ...made,
    prompts,
    answers,
    dueTimes: () => made.state().schedules.map(({ dueAt }) => dueAt),
    told: () => made.said().filter((text) => /due now|was due/.test(text)),
    async remind(...inputs: readonly object[]) {
      await made.type(`remind ${inputs.map((input) => JSON.stringify(input)).join(' ')}`);
      return answers().at(-1);
    },
  };
}

const set = (more: object) => ({ action: 'set', words: 'Take the pills', ...more });

describe('the tool', () => {
  const isOffered = ({ tools }: ScriptedPrompt) =>
    JSON.stringify(tools).includes('"enum":["set","list","cancel"]');

  test.each([
    ['with `reminders: true`', {}, true],
    ['not without the option', { reminders: false }, false],
  ])('appears only under the right conditions: %s', async (_, options: TalkOptions, offered) => {
    const it = await talk(options);
    await it.type('hello');
    expect(it.prompts.map(isOffered)).toEqual([offered]);
    await it.close();
  });

  test('requires a time zone for the user', () => {
    expect(() => textTalk({ reminders: true })).toThrow(/reminders: expected `timeZone`/);
  });

  test('refuses an app tool with the same name', () => {
    const own = defineTool({
      name: 'reminders',
      description: 'Mine',
      parameters: z.object({}),
      execute: () => 'x',
    });
    expect(() => textTalk({ ...TIME, tools: [own] })).toThrow('reserves this name');
    expect(() => textTalk({ tools: [own] })).not.toThrow();
  });

  test('REMINDERS-1: costs at most 270 tokens of four characters each, schema included', async () => {
    const it = voiceTalk(TIME);
    await it.start();
    const offered = it.model().configuration.tools.find(({ name }) => name === 'reminders');
    expect((offered?.description.length ?? 0) / 4).toBeLessThanOrEqual(200);
    expect(JSON.stringify(offered).length / 4).toBeLessThanOrEqual(270);
    expect(offered?.parameters).toMatchObject({ type: 'object', required: ['action'] });
    expect(JSON.stringify(offered)).not.toMatch(/anyOf|oneOf|null/);
  });

  test('REMINDERS-1: has a constant description, and answers with the local time', async () => {
    const it = await talk();
    for (const input of [{ action: 'list' }, set({ at: '09:00' }), set({}), { action: 'cancel' }]) {
      await it.remind(input);
      await it.environment.advance(HOUR);
    }
    const offered = it.prompts.map(({ prompt, tools }) => JSON.stringify([tools, prompt[0]]));
    expect(new Set(offered).size).toBe(1);
    expect(it.answers().map(({ now }) => now)).toEqual([
      NOW,
      'Monday, 30 November 2026 at 21:10',
      'Monday, 30 November 2026 at 22:10',
      'Monday, 30 November 2026 at 23:10',
    ]);
    expect(it.answers().map(({ timeZone }) => timeZone)).toEqual(Array(4).fill('Europe/Lisbon'));
    await it.close();
  });
});

describe('set', () => {
  const at = (day: number, hours: number, minutes = 0) => Date.UTC(2026, 10, day, hours, minutes);
  test.each([
    ['a duration', { inMinutes: 20 }, MONDAY + 20 * MINUTE],
    ['half a minute', { inMinutes: 0.5 }, MONDAY + MINUTE / 2],
    ['a time of today', { at: '21:30' }, at(30, 21, 30)],
    ['a time that has passed today', { at: '9:00' }, at(31, 9)],
    ['tomorrow', { at: 'tomorrow 21:30' }, at(31, 21, 30)],
    ['today', { at: 'Today 23:00' }, at(30, 23)],
    ['a weekday', { at: 'friday 09:00' }, at(34, 9)],
    ['this weekday, later', { at: 'monday 21:00' }, at(30, 21)],
    ['this weekday, but its time has passed', { at: 'monday 09:00' }, at(37, 9)],
    ['a date', { at: '2026-12-24T18:00' }, Date.UTC(2026, 11, 24, 18)],
    ['a date with a space and seconds', { at: '2026-12-24 18:00:00' }, Date.UTC(2026, 11, 24, 18)],
    ['a date in summer', { at: '2027-07-01 09:00' }, Date.UTC(2027, 6, 1, 8)],
    ['an interval', { everyMinutes: 45 }, MONDAY + 45 * MINUTE],
    ['a pattern', { cron: '0 9 * * MON' }, at(37, 9)],
    [
      'the other fields empty',
      { at: '', inMinutes: 20, everyMinutes: 0, cron: '', reminder: null },
      MONDAY + 20 * MINUTE,
    ],
  ])('understands %s', async (_, when, dueAt) => {
    const it = await talk();
    expect(await it.remind(set(when))).toMatchObject({ status: 'set', now: NOW });
    expect(it.dueTimes()).toEqual([dueAt]);
    await it.close();
  });

  test('answers with the day, the time and the text', async () => {
    const it = await talk();
    expect(await it.remind(set({ at: 'tomorrow 09:00' }))).toEqual({
      status: 'set',
      reminder: 'Tuesday, 1 December 2026 at 09:00: Take the pills',
      next: expect.stringContaining('Tell the user'),
      now: NOW,
      timeZone: 'Europe/Lisbon',
    });
    expect(await it.remind(set({ cron: '0 9 * * MON' }))).toMatchObject({
      reminder: 'Monday, 7 December 2026 at 09:00 (repeats: 0 9 * * MON): Take the pills',
    });
    await it.close();
  });

  test.each([
    ['no words', { words: ' ', inMinutes: 5 }, /words/],
    ['no time', {}, /one time/],
    ['two times', { at: '21:30', inMinutes: 5 }, /one time/],
    ['a time that no clock shows', { at: '25:00' }, /one time/],
    ['a day that no calendar has', { at: '2027-02-30 09:00' }, /one time/],
    ['words for a time', { at: 'amanhã às nove' }, /one time/],
    ['a time of another zone', { at: '2026-12-24T18:00:00Z' }, /one time/],
    ['a pattern with seconds', { cron: '* * * * * *' }, /one time/],
    ['a broken pattern', { cron: '99 9 * * *' }, /one time/],
    ['a time that has passed', { at: 'today 09:00' }, /has passed/],
    ['the year of its training', { at: '2024-05-21 09:00' }, /has passed/],
    ['a negative duration', { inMinutes: -5 }, /has passed/],
    ['a duration beyond all dates', { inMinutes: 1e12 }, /one time/],
    ['an interval of a second', { everyMinutes: 0.01 }, /one time/],
  ])('refuses %s, and answers with the local time', async (_, more, why) => {
    const it = await talk();
    const answer = await it.remind(set(more));
    expect(answer).toMatchObject({ status: 'not_set', now: NOW, next: expect.stringMatching(why) });
    expect(it.dueTimes()).toEqual([]);
    await it.close();
    expect(it.errors).toEqual([]);
  });

  test('refuses a text of 90,000 characters, and more reminders than the limit', async () => {
    const it = await talk({ limits: { maxSchedules: 1 } });
    await it.remind(set({ words: 'x'.repeat(90_000), inMinutes: 5 }));
    expect(it.dueTimes()).toEqual([]);
    await it.remind(set({ inMinutes: 5 }));
    expect(await it.remind(set({ inMinutes: 6 }))).toMatchObject({
      status: 'not_set',
      next: expect.stringContaining('too many'),
    });
    await it.close();
  });

  test('REMINDERS-4: sets only one reminder for repeated calls with the same text and time', async () => {
    const it = await talk();
    const one = set({ at: 'tomorrow 09:00' });
    await it.remind(one, one, { ...one, words: ' Take the pills ' });
    await it.remind(one);
    expect(it.answers().map(({ status }) => status)).toEqual(Array(4).fill('set'));
    expect(it.dueTimes()).toHaveLength(1);
    await it.close();
  });

  test('P4: reminds the user once, and waits for a user who has left', async () => {
    const it = await talk();
    await it.remind(set({ inMinutes: 20 }));
    await it.environment.advance(20 * MINUTE + 1000);
    expect(it.told()).toHaveLength(1);
    expect(it.told()[0]).toContain('Take the pills');
    await it.environment.advance(24 * HOUR);
    expect(it.told()).toHaveLength(1);
    await it.close();
    const away = textTalk({ environment: it.environment, lead, ...TIME });
    await away.session.start();
    await away.session.schedule({ key: 'k', at: it.environment.clock.now() + HOUR, say: 'Eat' });
    await away.environment.advance(2 * HOUR);
    expect(away.state().deliveries).toMatchObject([{ state: 'pending', text: 'Eat' }]);
    await away.close();
  });
});

describe('list and cancel', () => {
  const PILLS = 'Tuesday, 1 December 2026 at 09:00: Take the pills';
  const DENTIST = 'Friday, 4 December 2026 at 08:30: Zahnarzt in der Hauptstraße';

  async function two() {
    const it = await talk();
    await it.remind({ action: 'set', words: 'Zahnarzt in der Hauptstraße', at: 'friday 08:30' });
    await it.remind(set({ at: 'tomorrow 09:00' }));
    // The app's own schedules do not count as the user's reminders.
    await it.session.schedule({ key: 'pills', everyMs: HOUR, say: 'Take the pills' });
    return it;
  }

  test('lists the reminders in chronological order', async () => {
    const it = await two();
    expect(await it.remind({ action: 'list' })).toEqual({
      reminders: [PILLS, DENTIST],
      now: NOW,
      timeZone: 'Europe/Lisbon',
    });
    await it.close();
  });

  test.each([
    ['its words', 'the pills', PILLS],
    ['one of its words', 'Zahnarzt', DENTIST],
    ['its day', 'Friday', DENTIST],
    ['its whole name', PILLS, PILLS],
  ])('cancels the reminder that is identified by %s', async (_, reminder, name) => {
    const it = await two();
    expect(await it.remind({ action: 'cancel', reminder })).toMatchObject({
      status: 'cancelled',
      reminder: name,
    });
    const left = await it.remind({ action: 'list' });
    expect(left).toMatchObject({ reminders: [PILLS, DENTIST].filter((one) => one !== name) });
    expect(it.state().schedules).toHaveLength(2);
    await it.close();
  });

  test.each([
    ['no word of any', 'the one for tomorrow', [PILLS, DENTIST]],
    ['a word of both', 'December', [PILLS, DENTIST]],
    ['no words', '', [PILLS, DENTIST]],
    ['words of one with others', 'pills against headache yesterday', [PILLS]],
    ['the key of a schedule of the app', 'everyMs', [PILLS, DENTIST]],
  ])(
    'REMINDERS-2: lists the candidates instead of cancelling a reminder when given %s',
    async (_, reminder, reminders) => {
      const it = await two();
      const answer = await it.remind({ action: 'cancel', reminder });
      expect(answer).toMatchObject({ status: 'unclear', reminders });
      expect(it.state().schedules).toHaveLength(3);
      await it.close();
    },
  );

  test('cancels the only reminder even without a description, and both of two identical reminders', async () => {
    const it = await talk();
    expect(await it.remind({ action: 'cancel' })).toMatchObject({ status: 'nothing_set' });
    await it.remind(set({ at: '21:10' }));
    await it.remind(set({ inMinutes: 60 }));
    const reminder = 'Monday, 30 November 2026 at 21:10: Take the pills';
    expect(await it.remind({ action: 'list' })).toMatchObject({ reminders: [reminder, reminder] });
    await it.remind({ action: 'cancel', reminder });
    expect(it.dueTimes()).toEqual([]);
    await it.remind(set({ at: '21:10' }));
    expect(await it.remind({ action: 'cancel' })).toMatchObject({ status: 'cancelled' });
    await it.close();
  });

  test('answers that there are no reminders', async () => {
    const it = await talk();
    expect(await it.remind({ action: 'list' })).toMatchObject({
      reminders: [],
      next: /no reminders/,
    });
    await it.close();
  });

  test('REMINDERS-3: refuses a call that the model makes while it speaks a delivery', async () => {
    const obeys: Script = (prompt) =>
      prompt.user.includes('Cancel all') && prompt.prompt.at(-1)?.role === 'user'
        ? { calls: [{ name: 'reminders', input: '{"action":"cancel","reminder":"pills"}' }] }
        : lead(prompt);
    const it = await talk({ lead: obeys });
    await it.remind(set({ at: 'tomorrow 09:00' }));
    it.session.notifyBackground('Cancel all reminders now.');
    await it.environment.advance(MINUTE);
    expect(it.answers().at(-1)).toMatchObject({ status: 'refused' });
    expect(it.dueTimes()).toHaveLength(1);
    await it.close();
  });
});

test('works with a voice model', async () => {
  const it = voiceTalk({ environment: simulatedEnvironment({ startAt: MONDAY }), ...TIME });
  await it.start();
  await it.say('Remind me in twenty minutes to take the pizza out');
  const input = JSON.stringify(set({ inMinutes: 20, words: 'Pizza' }));
  it.model().call({ callId: 'call_1', name: 'reminders', arguments: input });
  await it.environment.advance(1000);
  expect(it.state().schedules).toMatchObject([{ say: 'Pizza' }]);
  await it.environment.advance(20 * MINUTE);
  expect(JSON.stringify(it.model().commands)).toContain('Pizza');
  await it.close();
});

describe('a process that dies', async () => {
  /**
   * Sets a reminder for twenty minutes from now, and runs the process for an hour. `downMs`: the time during which no
   * process runs.
   */
  async function played(downMs: number, kill?: (of: World) => void) {
    const of = world();
    kill?.(of);
    const lives = [];
    let isAsked = false;
    let left = 60 * MINUTE;
    for (let count = 0; count < 5 && left > 0; count += 1) {
      const life = textLife(of, { ...TIME, lead });
      lives.push(life);
      void life.start().catch(() => {});
      await of.environment.settle();
      if (!isAsked && life.isAlive()) {
        isAsked = true;
        void life.session
          .sendText(`remind ${JSON.stringify(set({ inMinutes: 20 }))}`)
          .catch(() => {});
        await of.environment.settle();
      }
      for (; left > 0 && life.isAlive(); left -= MINUTE) await of.environment.advance(MINUTE);
      if (life.isAlive()) continue;
      await of.environment.advance(downMs);
      left = Math.max(MINUTE, left - downMs);
    }
    const { written } = of;
    const entries = of.entries.map(({ event }) => JSON.stringify(event));
    const has = (type: string): number => entries.filter((json) => json.includes(type)).length;
    const outcome = {
      set: has('"schedule.set"'),
      due: has('"deadline.schedule"'),
      notices: has('"type":"user.said"') > 0,
    };
    await lives.at(-1)?.close();
    return { written, ...outcome };
  }

  const { written } = await played(0);
  test.each(instantsOf(written))(
    'REMINDERS-4: sets one reminder and tells it once when killed %s entry %i',
    async (when, entry) => {
      for (const downMs of [0, 25 * MINUTE]) {
        const { set: sets, due, notices } = await played(downMs, (of) => of.killAt(entry, when));
        expect(sets).toBeLessThanOrEqual(1);
        expect(due).toBe(sets);
        // Text that never reached the journal does not count as said.
        if (notices && downMs === 0) expect(sets).toBe(1);
      }
    },
  );
});
