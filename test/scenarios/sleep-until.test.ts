// Subagents that sleep until a given time with `sleep_until`, the runtime's tool.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { tool } from 'ai';
import {
  memoryJournal,
  createRuntime,
  defineSubagent,
  type SubagentConfig,
  type TextSession,
} from '../../src/index.ts';
import { createSessionPool, memoryWakeTimes } from '../../src/entries/journal.ts';
import { agentSubagent, runSubagent } from '../../src/entries/subagents.ts';
import {
  scriptedModel,
  scriptedRelay,
  simulatedEnvironment,
  type Script,
  type ScriptedPrompt,
} from '../../src/testing/index.ts';
import { whyWaiting } from '../../src/entries/machines.ts';
import { replaySession } from '../../src/entries/replay.ts';
import { instantsOf, textLife, turns, world, type World } from '../support/crashes.ts';
import { calls, never, resultsIn, say, simpleTool } from '../support/subagent-runs.ts';
import { leadScript, textTalk, type TalkOptions } from '../support/text-talk.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** 2026-11-30T08:00Z */
const START = Date.UTC(2026, 10, 30, 8);

const asleep: Partial<SubagentConfig> = { maxSleepMs: 7 * DAY };
const results = (prompt: ScriptedPrompt) => say(`Results: ${JSON.stringify(resultsIn(prompt))}`);

/** Creates a session whose subagent `watch` makes these calls in its first step, and then reports their results. */
async function watching(
  made: readonly [name: string, input: object][],
  more: Partial<SubagentConfig> = {},
  options: TalkOptions = {},
) {
  const prompts: ScriptedPrompt[] = [];
  const it = textTalk({
    environment: simulatedEnvironment({ startAt: START }),
    subagents: {
      watch: { script: turns(calls(...made), results), config: { ...asleep, ...more } },
    },
    onModelCall: (who, prompt) => {
      if (who === 'watch') prompts.push(prompt);
    },
    ...options,
  });
  await it.start();
  await it.type('use watch');
  const watch = () => it.state().subagents[0];
  return { ...it, prompts, watch, result: () => watch()?.outcome?.text };
}

const forAnHour: [string, object] = ['sleep_until', { minutes: 60 }];

describe('sleep_until', () => {
  test.each([
    ['a duration', { minutes: 90 }, START + 90 * MINUTE],
    ['a time with its offset', { until: '2026-11-30T11:30+01:00' }, START + 150 * MINUTE],
    [
      'a time of UTC, beside an empty field',
      { until: '2026-11-30T10:00:00Z', minutes: 0 },
      START + 2 * HOUR,
    ],
  ])('pauses the work for %s and then continues it', async (_, input, wakesAt) => {
    const it = await watching([['sleep_until', input]]);
    expect(it.watch()).toMatchObject({ state: 'sleeping' });
    await it.environment.advance(wakesAt - START - 1);
    expect(it.prompts).toHaveLength(1);
    await it.environment.advance(1);
    expect(it.prompts).toHaveLength(2);
    const now = new Date(wakesAt).toISOString();
    expect(it.result()).toBe(
      `Results: ${JSON.stringify([['sleep_until', 'json', { status: 'slept', now }]])}`,
    );
    await it.close();
    expect(it.errors).toEqual([]);
  });

  test.each([
    ['no time', {}, /either minutes, or until/],
    ['two times', { minutes: 5, until: '2026-12-01T08:00Z' }, /either minutes, or until/],
    ['a time without an offset', { until: '2026-12-01T08:00' }, /with its offset/],
    ['words', { until: 'tomorrow' }, /with its offset/],
    ['a day that no calendar has', { until: '2026-13-41T08:00Z' }, /with its offset/],
    ['a time that has passed', { until: '2024-05-21T08:00Z' }, /later time/],
    ['a negative duration', { minutes: -5 }, /later time/],
    ['more than the limit', { minutes: 8 * 24 * 60 }, /at most 10080 minutes/],
    ['a duration beyond all dates', { minutes: 1e300 }, /at most 10080 minutes/],
    ['text for a number', { minutes: 'x'.repeat(50_000) }, /minutes/],
  ])('refuses %s, and states the time', async (_, input, why) => {
    const it = await watching([['sleep_until', input]]);
    expect(it.result()).toMatch(why);
    if (!('minutes' in input && typeof input.minutes === 'string'))
      expect(it.result()).toContain('It is now 2026-11-30T08:00:00.000Z');
    expect(it.watch()).toMatchObject({ state: 'completed' });
    await it.close();
  });

  test('sleeps once for several calls, after the questions and other calls of the same step', async () => {
    const it = await watching(
      [
        forAnHour,
        ['ask_user', { question: 'Which?' }],
        ['sleep_until', { minutes: 120 }],
        ['look', {}],
      ],
      { interactive: true, tools: { look: simpleTool(() => 'seen') } },
    );
    expect(it.watch()).toMatchObject({ state: 'waiting_for_input' });
    void it.session.answer(it.question()?.requestId ?? '', { text: 'The first' });
    await it.environment.settle();
    expect(it.watch()).toMatchObject({ state: 'sleeping' });
    await it.environment.advance(2 * HOUR);
    expect(it.prompts).toHaveLength(2);
    expect(it.result()).toContain('The first');
    await it.close();
  });

  test('wakes immediately if its time passes while a question from the step is open', async () => {
    const it = await watching([forAnHour, ['ask_user', { question: 'Which?' }]], {
      interactive: true,
      inputTimeout: DAY,
    });
    await it.environment.advance(2 * HOUR);
    void it.session.answer(it.question()?.requestId ?? '', { text: 'The first' });
    await it.environment.settle();
    await it.environment.advance(1);
    expect(it.watch()).toMatchObject({ state: 'completed' });
    await it.close();
  });

  test('exists only with `maxSleepMs`, and otherwise leaves its name free for the app', async () => {
    const own = tool({
      description: 'Mine',
      inputSchema: z.looseObject({}),
      execute: () => 'mine',
    });
    const it = await watching([forAnHour], { maxSleepMs: 0, tools: { sleep_until: own } });
    expect(it.result()).toContain('mine');
    await it.close();
    const offered = await watching([], {});
    expect(JSON.stringify(offered.prompts[0]?.tools)).toContain('"name":"sleep_until"');
    expect(JSON.stringify(offered.prompts[0]?.tools).length / 4).toBeLessThan(150);
    await offered.close();
    await expect(watching([], { tools: { sleep_until: own } })).rejects.toThrow('sleep_until');
  });

  test('throws if `maxSleepMs` is set for a relay or exceeds a year', () => {
    const relay = scriptedRelay();
    expect(() => defineSubagent({ name: 'a', instructions: '', relay, maxSleepMs: 1 })).toThrow(
      'maxSleepMs: expected none beside relay',
    );
    expect(() =>
      textTalk({ subagents: { a: { script: never, config: { maxSleepMs: 400 * DAY } } } }),
    ).toThrow('maxSleepMs');
  });
});

describe('a sleeping subagent', () => {
  test('does not hold a run slot, use its run time or keep its session busy', async () => {
    const it = await watching(
      [['sleep_until', { minutes: 2 * 60 }]],
      { timeout: 10 * MINUTE },
      {
        limits: { maxConcurrentPerSession: 1 },
        subagents: {
          watch: {
            script: turns(calls(['sleep_until', { minutes: 120 }]), results),
            config: { ...asleep, timeout: 10 * MINUTE },
          },
          other: { script: turns(say('Other work')) },
        },
      },
    );
    await it.type('use other');
    expect(it.state().subagents.map(({ state }) => state)).toEqual(['sleeping', 'completed']);
    await it.session.idle();
    await it.environment.advance(2 * HOUR);
    expect(it.watch()).toMatchObject({ state: 'completed' });
    await it.close();
  });

  test('shows why and for how long it is waiting', async () => {
    const journal = memoryJournal();
    const environment = simulatedEnvironment({ startAt: START });
    const runtime = createRuntime({ environment, journal });
    const it = await watching([forAnHour], {}, { environment, runtime });
    const [...states] = replaySession(journal.read({ scope: it.session.id }));
    const machines = states.at(-1)?.machines;
    const why = machines && whyWaiting(machines).find(({ of }) => of === 'subagent');
    expect(why).toMatchObject({ cause: 'time', until: START + HOUR });
    expect(why?.sentence).toBe('sleeps: it wakes in 60 min');
    await it.close();
  });

  test.each([
    ['steer', true],
    ['interrupt', true],
    ['queue', false],
  ] as const)(
    'uses the mode `%s` to decide whether a message wakes it: %s',
    async (mode, wakes) => {
      const it = await watching([forAnHour]);
      it.session.subagents.send(it.watch()?.id ?? '', { content: 'Look now', mode });
      await it.environment.settle();
      expect(it.prompts).toHaveLength(wakes ? 2 : 1);
      if (mode === 'steer')
        expect(JSON.stringify(it.prompts.at(-1)?.prompt)).toContain('woken_by_a_message');
      if (wakes) expect(JSON.stringify(it.prompts.at(-1)?.prompt)).toContain('Look now');
      await it.environment.advance(HOUR);
      // The queued message is read before the subagent ends.
      expect(it.prompts).toHaveLength(wakes ? 2 : 3);
      expect(it.watch()).toMatchObject({ state: 'completed' });
      await it.close();
    },
  );

  test('lets the lead agent see how long it will sleep', async () => {
    const it = await watching([forAnHour]);
    await it.type('use running_task {"action":"status"}');
    const [answer] = it.events.flatMap((event) =>
      event.type === 'tool.answered' && event.name === 'running_task' ? [event.output] : [],
    );
    expect(answer).toMatchObject({
      tasks: [{ status: 'sleeping', until: new Date(START + HOUR).toISOString() }],
    });
    await it.type('use running_task {"action":"tell","words":"Look now"}');
    await it.environment.advance(2000);
    expect(it.prompts).toHaveLength(2);
    expect(JSON.stringify(it.prompts.at(-1)?.prompt)).toContain('Look now');
    await it.close();
  });

  test('ends without waking when it is cancelled', async () => {
    const it = await watching([forAnHour]);
    it.session.subagents.cancel(it.watch()?.id ?? '', 'Enough');
    await it.environment.advance(2 * HOUR);
    expect(it.watch()).toMatchObject({ state: 'cancelled' });
    expect(it.prompts).toHaveLength(1);
    await it.close();
  });

  test('does not hold back the results of other calls from the same request', async () => {
    const it = await watching(
      [],
      {},
      {
        consolidation: 'batch',
        subagents: {
          watch: { script: turns(calls(forAnHour), results), config: asleep },
          other: { script: turns(say('Other work')) },
        },
        lead: (prompt) =>
          leadScript(
            prompt.user === 'use watch' ? { ...prompt, user: 'use watch and other' } : prompt,
          ),
      },
    );
    await it.environment.advance(MINUTE);
    expect(it.said().join()).toContain('Other work');
    await it.environment.advance(HOUR);
    expect(it.said().join()).toContain('slept');
    await it.close();
  });
});

describe('a clock that is changed while the subagent sleeps', () => {
  function settable() {
    const environment = simulatedEnvironment({ startAt: START });
    let setBy = 0;
    const clock = { now: () => environment.clock.now() + setBy };
    return { environment: { ...environment, clock }, set: (byMs: number) => (setBy += byMs) };
  }

  test('wakes the subagent within half a minute when set forward, and only once when set back', async () => {
    const { environment, set } = settable();
    const it = await watching([forAnHour], {}, { environment });
    set(2 * HOUR);
    await it.environment.advance(30_000);
    expect(it.prompts).toHaveLength(2);
    set(-5 * HOUR);
    await it.environment.advance(DAY);
    expect(it.prompts).toHaveLength(2);
    await it.close();
    const back = settable();
    const later = await watching([forAnHour], {}, { environment: back.environment });
    back.set(-HOUR);
    await later.environment.advance(90 * MINUTE);
    expect(later.prompts).toHaveLength(1);
    await later.environment.advance(HOUR);
    expect(later.prompts).toHaveLength(2);
    await later.close();
  });
});

test('unloads a session whose subagent is asleep, and wakes the session once at the right time', async () => {
  const environment = simulatedEnvironment({ startAt: START });
  const wakeTimes = memoryWakeTimes();
  const runtime = createRuntime({
    environment,
    journal: { ...memoryJournal({ keep: Infinity }), wakeTimes },
    snapshots: { trim: true },
  });
  const opened: string[] = [];
  let steps = 0;
  const script: Script = (prompt) => {
    steps += 1;
    return turns(calls(forAnHour), results)(prompt);
  };
  const pool = createSessionPool<TextSession>({
    runtime,
    idleMs: 1000,
    lookMs: Infinity,
    open(sessionId) {
      opened.push(sessionId);
      return textTalk({
        sessionId,
        runtime,
        environment,
        subagents: { watch: { script, config: asleep } },
      }).session;
    },
  });
  await pool.use('a', (session) => session.sendText('use watch'));
  await environment.advance(10_000);
  expect(pool.awakeCount).toBe(0);
  expect(await wakeTimes.earliest({ limit: 9 })).toEqual([{ scope: 'a', at: START + HOUR }]);
  await environment.advance(HOUR - 10_000 - 1);
  expect(opened).toHaveLength(1);
  await environment.advance(10_000);
  expect(opened).toHaveLength(2);
  expect(steps).toBe(2);
  await environment.advance(DAY);
  expect(steps).toBe(2);
  await pool.close();
});

test('pauses the work of an AI SDK agent', async () => {
  const model = scriptedModel({ otherwise: turns(calls(forAnHour), results) });
  const config = agentSubagent({
    name: 'watch',
    agent: { model, instructions: 'Watch' },
    maxSleepMs: HOUR,
  });
  const environment = simulatedEnvironment({ startAt: START });
  const { result } = runSubagent(config, 'Watch', {
    runtime: createRuntime({ environment }),
  });
  await environment.advance(HOUR);
  expect((await result).text).toContain('slept');
});

describe('a process that dies', async () => {
  async function played(snapshots: boolean, kill?: (of: World) => void) {
    const of = world(snapshots ? { snapshots: { afterEntries: 1, trim: true } } : {});
    kill?.(of);
    let isAsked = false;
    const woken: number[] = [];
    const begun = of.environment.clock.now();
    const script = turns(calls(forAnHour), (prompt) => {
      woken.push(of.environment.clock.now() - begun);
      return results(prompt);
    });
    for (let lives = 1; lives < 10; lives += 1) {
      const life = textLife(of, { subagents: { watch: { script, config: asleep } } });
      void life.start().catch(() => {});
      await of.environment.settle();
      if (!isAsked && life.isAlive()) {
        isAsked = true;
        void life.session.sendText('use watch').catch(() => {});
      }
      for (let minute = 0; minute < 150 && life.isAlive(); minute += 1)
        await of.environment.advance(MINUTE);
      if (!life.isAlive()) continue;
      const { written } = of;
      const states = life.state().subagents.map(({ state }) => state);
      await life.close();
      return { written, woken, states, lives };
    }
    throw new Error('Expected a process that lives to its end');
  }

  for (const snapshots of [false, true]) {
    const { written } = await played(snapshots);
    test.each(instantsOf(written))(
      `keeps the time when killed %s entry %i (snapshots: ${snapshots})`,
      async (when, entry) => {
        const { woken, states } = await played(snapshots, (of) => of.killAt(entry, when));
        if (states.length > 0) expect(states).toEqual(['completed']);
        // A model call that the kill interrupted is repeated, but none is made before the wake time.
        expect(woken.length).toBeLessThanOrEqual(2);
        for (const at of woken) expect(at).toBeGreaterThanOrEqual(HOUR);
      },
    );
  }
});
