// Tests the parts of a simulation: chance, faults, shrinking, scripts, values, the journal, and processes.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { chanceOf } from '../../../src/testing/doubles/chance.ts';
import { Faults } from '../../../src/testing/simulate/faults.ts';
import { lineOf } from '../../../src/testing/simulate/line.ts';
import { valueFor } from '../../../src/testing/simulate/generated-model.ts';
import {
  parseScript,
  scriptInWords,
  type Script,
} from '../../../src/testing/simulate/log/script.ts';
import { shrink } from '../../../src/testing/simulate/simulate.ts';
import { SimulatedProcess } from '../../../src/testing/doubles/simulated-process.ts';
import { WorldJournal } from '../../../src/testing/simulate/world-journal.ts';
import { Effects } from '../../../src/testing/simulate/effects.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { FakeTransport } from '../../support/fake-transport.ts';
import { runJournalConformance } from '../journal-conformance/support/run-journal-conformance.ts';
import {
  FAULT_POINTS,
  type FaultPlan,
  type Strike,
} from '../../../src/testing/simulate/log/fault-points.ts';

const silent = (): void => {};

describe('faults', () => {
  test("decides each occurrence only from the seed, the fault point and the point's count", () => {
    const plan: FaultPlan = { 'journal.slow': 0.5, 'tool.fails': 0.5 };
    const alone = new Faults(3, plan, silent);
    const among = new Faults(3, plan, silent);
    const first = Array.from({ length: 40 }, () => alone.strikes('journal.slow') !== null);
    const second = Array.from({ length: 40 }, () => {
      among.strikes('tool.fails');
      return among.strikes('journal.slow') !== null;
    });
    expect(second).toEqual(first);
    expect(new Set(first)).toEqual(new Set([true, false]));
  });

  test('repeats exactly the listed occurrences with the same randomness', () => {
    const planned = new Faults(5, { 'line.drops': 0.3 }, silent);
    const chances = Array.from({ length: 50 }, () => planned.strikes('line.drops')?.next());
    const listed = new Faults(5, planned.struck, silent);
    expect(Array.from({ length: 50 }, () => listed.strikes('line.drops')?.next())).toEqual(chances);
    expect(listed.strikes('tool.fails')).toBeNull();
  });

  test('occurs at the given counts, up to a maximum number of times', () => {
    const told: Strike[] = [];
    const faults = new Faults(
      1,
      { 'tool.fails': { at: [2, 5] }, 'tool.hangs': { probability: 1, most: 2 } },
      (strike) => told.push(strike),
    );
    for (let count = 0; count < 6; count += 1) {
      faults.strikes('tool.fails');
      faults.strikes('tool.hangs');
    }
    const of = (point: string) =>
      told.flatMap((one) => (one.point === point ? [one.occurrence] : []));
    expect(of('tool.fails')).toEqual([2, 5]);
    expect(of('tool.hangs')).toEqual([1, 2]);
    faults.disarm();
    expect(faults.strikes('tool.hangs')).toBeNull();
  });
});

test('lists every fault point and its description in the guide', () => {
  const guide = readFileSync(new URL('../../../docs/simulation.md', import.meta.url), 'utf8');
  const listed = [...guide.matchAll(/^\| `(\w+\.\w+)` \| (.*) \|$/gm)];
  expect(Object.fromEntries(listed.map(([, point, what]) => [point, what]))).toEqual(FAULT_POINTS);
});

describe('shrinking', () => {
  test('finds the two items that fail only together, and nothing else', async () => {
    const items = Array.from({ length: 40 }, (_, index) => index);
    const fails = (some: readonly number[]) =>
      Promise.resolve(some.includes(7) && some.includes(31));
    expect(await shrink(items, fails, 1000)).toEqual([7, 31]);
  });

  test('removes all faults from a case that fails without them', async () => {
    expect(await shrink([1, 2, 3], () => Promise.resolve(true), 10)).toEqual([]);
  });

  test('stops after a limited number of attempts', async () => {
    let tries = 0;
    const fails = (some: readonly number[]) => {
      tries += 1;
      return Promise.resolve(some.length === 64);
    };
    await shrink(
      Array.from({ length: 64 }, (_, index) => index),
      fails,
      20,
    );
    expect(tries).toBeLessThanOrEqual(20);
  });
});

describe('scripts', () => {
  const script: Script = {
    seed: 7,
    session: 'voice',
    steps: [
      { at: 0, do: 'say', words: 'Please use research', calls: ['research'] },
      { at: 1500, do: 'crash' },
      { at: 1500, do: 'schedule', text: 'It is noon', inMs: 500 },
      { at: 1500, do: 'schedule', text: 'Drink', inMs: 500, everyMs: 9000 },
      { at: 2000, do: 'read', nth: 1 },
    ],
    strikes: [{ point: 'line.drops', occurrence: 22 }],
  };

  test('parses a printed script back into the same script', () => {
    expect(parseScript(JSON.stringify(script))).toEqual(script);
  });

  test('prints a script as readable text', () => {
    expect(scriptInWords(script)).toBe(
      [
        'Seed 7, by voice.',
        '     0.000 s  the user says "Please use research" (and means research)',
        '     1.500 s  the process is killed',
        '     1.500 s  the app schedules "It is noon" in 500 ms',
        '     1.500 s  the app schedules "Drink" every 9000 ms',
        '     2.000 s  the user reads message 1 of those that were sent',
        'What goes wrong:',
        '  line.drops, the 22nd time it could: the connection is lost, up to 3 s after the model started to speak or listen',
      ].join('\n'),
    );
  });

  test.each([
    ['no JSON', 'oops'],
    ['an unknown step', JSON.stringify({ ...script, steps: [{ at: 0, do: 'fly' }] })],
    ['an unknown fault', JSON.stringify({ ...script, strikes: [{ point: 'x', occurrence: 1 }] })],
    ['a step too many', JSON.stringify({ ...script, steps: [{ at: 0, do: 'crash', why: 'x' }] })],
  ])('refuses %s', (_, json) => {
    expect(() => parseScript(json)).toThrow(expect.objectContaining({ code: 'INVALID_SCRIPT' }));
  });
});

test('makes a value that matches its schema', () => {
  const schema = {
    type: 'object',
    properties: {
      kind: { enum: ['a', 'b'] },
      count: { type: 'integer', minimum: 3, maximum: 5 },
      tags: { type: 'array', items: { type: 'string' }, minItems: 1 },
      nested: { anyOf: [{ type: 'boolean' }, { const: 'x' }] },
    },
    required: ['kind', 'count', 'tags', 'nested'],
  };
  for (let seed = 0; seed < 50; seed += 1) {
    const value = valueFor(schema, chanceOf(seed, 'value')) as Record<string, unknown>;
    expect(['a', 'b']).toContain(value['kind']);
    expect([3, 4, 5]).toContain(value['count']);
    expect(value['tags']).toEqual(expect.arrayContaining([expect.any(String)]));
    expect([true, false, 'x']).toContain(value['nested']);
  }
});

describe('the journal of a world', () => {
  const entry = (unit: string, seq: number) => ({
    scope: 's',
    unit,
    seq,
    at: 0,
    actor: 'a',
    definitionVersion: 1,
    event: { type: 'x' },
  });
  const setUp = (plan: FaultPlan) => {
    const environment = simulatedEnvironment();
    const process = new SimulatedProcess(1, environment);
    const journal = new WorldJournal({
      environment,
      faults: new Faults(1, plan, silent),
      crash: () => process.kill(),
      kept: silent,
    });
    const names = () => journal.read().map(({ unit, seq }) => `${unit}${seq}`);
    return { environment, process, journal, mine: journal.of(process), names };
  };

  test('WORLD-JOURNAL-1: keeps a prefix of the pending appends, possibly an empty one, when it crashes', () => {
    for (const [share, kept] of [
      [0, []],
      [0.5, ['a1', 'b1']],
      [1, ['a1', 'b1', 'a2', 'c1']],
    ] as const) {
      const { process, journal, mine, names } = setUp({ 'journal.slow': 1 });
      for (const [unit, seq] of [
        ['a', 1],
        ['b', 1],
        ['a', 2],
        ['c', 1],
      ] as const)
        void mine.append(entry(unit, seq));
      process.kill();
      journal.settleCrash(share);
      expect(names()).toEqual(kept);
    }
  });

  test('WORLD-JOURNAL-1: also delays an append that follows a slow one', async () => {
    const { environment, mine, names } = setUp({ 'journal.slow': { at: [1] } });
    const done: string[] = [];
    void Promise.resolve(mine.append(entry('a', 1))).then(() => done.push('a'));
    void Promise.resolve(mine.append(entry('b', 1))).then(() => done.push('b'));
    await environment.settle();
    expect(done).toEqual([]);
    await environment.advance(300);
    expect(done).toEqual(['a', 'b']);
    expect(names()).toEqual(['a1', 'b1']);
  });

  test('keeps an append only if the crash comes after it; WORLD-JOURNAL-2: leaves both unsettled', async () => {
    for (const [point, kept] of [
      ['crash.beforeAppend', []],
      ['crash.afterAppend', ['a1']],
    ] as const) {
      const { environment, process, mine, names } = setUp({ [point]: { at: [1] } });
      let hasSettled = false;
      void Promise.resolve(mine.append(entry('a', 1))).then(() => (hasSettled = true));
      void mine.append(entry('a', 2));
      await environment.settle();
      expect(names()).toEqual(kept);
      expect(process.isAlive).toBe(false);
      expect(hasSettled).toBe(false);
    }
  });

  test('does not keep any part of an append that fails', async () => {
    const { mine, names } = setUp({ 'journal.fails': 1 });
    await expect(mine.append(entry('a', 1))).rejects.toThrow('no room');
    expect(names()).toEqual([]);
  });
});

runJournalConformance({
  name: 'the journal of a world',
  offers: ['scopes', 'trim', 'forget', 'reopen'],
  open() {
    const environment = simulatedEnvironment();
    const process = new SimulatedProcess(1, environment);
    const world = new WorldJournal({
      environment,
      faults: new Faults(1, {}, silent),
      crash: silent,
      kept: silent,
    });
    return {
      journal: world.of(process),
      reopen() {
        process.kill();
        world.settleCrash(0);
        return world.of(new SimulatedProcess(2, environment));
      },
    };
  },
});

test('SIMULATE-LINE-1: sends an answer to a late event only after all late events', async () => {
  const environment = simulatedEnvironment();
  const transport = new FakeTransport();
  const line = lineOf(
    new SimulatedProcess(1, environment),
    {
      environment,
      faults: new Faults(1, { 'line.slow': { at: [1] } }, silent),
      stage: { transport, models: [] },
      outage: { isOn: () => false, begin: silent },
      nextModel: () => 0,
      utterance: () => null,
      isNoisy: () => false,
      happened: silent,
      asked: silent,
    },
    new Map(),
  );
  const session = line.connect({ instructions: '', tools: [] }, { environment });
  await environment.settle();
  const model = transport.current;
  const told: string[] = [];
  session.events.subscribe(({ type }) => {
    told.push(type);
    if (type === 'utterance.started')
      model.events.next({
        type: 'transport.error',
        code: 'X',
        message: '',
        responseKey: null,
        raw: 0,
      });
  });
  model.speechStarted('user_1');
  const { end } = model.beginByItself('Hello', 0);
  end();
  await environment.advance(1000);
  expect(told).toEqual([
    'utterance.started',
    'response.started',
    'assistant.transcribed',
    'response.ended',
    'transport.error',
  ]);
});

describe('tools', () => {
  const setUp = (execute: () => unknown, plan: FaultPlan) => {
    const environment = simulatedEnvironment();
    const effects = new Effects(new Faults(1, plan, silent), () => 0);
    const process = new SimulatedProcess(1, environment);
    const watched = effects.watch({ tool: { execute } }, process)['tool'] as {
      execute(input: unknown, options: object): unknown;
    };
    return { environment, effects, call: () => watched.execute({}, { toolCallId: 'call_1' }) };
  };
  const broken = (): never => {
    throw new Error('broken');
  };

  test('treats a slow tool that throws as failed, without affecting other tools', async () => {
    const { environment, effects, call } = setUp(broken, { 'tool.slow': 1 });
    const [outcome] = await Promise.allSettled([call(), environment.advance(10_000)]);
    expect(outcome).toMatchObject({ status: 'rejected', reason: { message: 'broken' } });
    expect(effects.all).toMatchObject([{ status: 'threw' }]);
  });

  test('keeps the effect of a tool that never returns', async () => {
    const yields = async function* () {
      yield 1;
      await Promise.resolve();
    };
    for (const [execute, status] of [
      [() => 'value', 'returned'],
      [() => Promise.resolve('value'), 'returned'],
      [yields, 'returned'],
      [broken, 'threw'],
      [() => Promise.reject(new Error('broken')), 'threw'],
    ] as const) {
      const { environment, effects, call } = setUp(execute, { 'tool.hangs': 1 });
      let hasSettled = false;
      const settled = () => (hasSettled = true);
      void Promise.resolve(call()).then(settled, settled);
      await environment.settle();
      expect([effects.all[0]?.status, hasSettled]).toEqual([status, false]);
    }
  });
});

test('does nothing more in a process that has been killed', async () => {
  const environment = simulatedEnvironment();
  const process = new SimulatedProcess(1, environment);
  const done: string[] = [];
  process.environment.scheduler.schedule(() => done.push('timer'), 10);
  process.ofApp.scheduler.schedule(() => done.push('timer of the app'), 10);
  process.environment.scheduler.yieldThen(() => done.push('lane'));
  process.kill();
  process.environment.scheduler.schedule(() => done.push('later'), 0);
  await environment.advance(100);
  expect(done).toEqual([]);
  expect(environment.pendingTimers).toBe(0);
});
