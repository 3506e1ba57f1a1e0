// `runSubagent` with an id, whose run survives its process, and without an id, whose run leaves nothing behind.

import { describe, expect, test } from 'vitest';
import { JournalError, type JournalEntry } from '../../../src/entries/journal.ts';
import {
  createRuntime,
  memoryJournal,
  OffstageError,
  type Journal,
  type Outcome,
} from '../../../src/index.ts';
import { createSubagentService, runSubagent } from '../../../src/entries/subagents.ts';
import { simulatedEnvironment, type Script } from '../../../src/testing/index.ts';
import { turns, world, type World } from '../../support/crashes.ts';
import { calls, never, say, simpleTool } from '../../support/subagent-runs.ts';
import { castOf, configOf } from '../../support/text-talk.ts';

const looking: Script = turns(
  calls(['look', {}]),
  calls(['ask_user', { question: 'Which class?' }]),
  ({ results }) => say(`Booked ${JSON.stringify(results[0])}`),
);

interface Seen {
  readonly keys: Set<string>;
  asked: number;
  modelCalls: number;
}

function run(of: World, seen: Seen, { id = 'order-17' } = {}) {
  const { process, runtime } = of.begin();
  const config = configOf('order', {
    interactive: true,
    tools: {
      look: simpleTool(
        ({ idempotencyKey = '' }) => ({ seen: seen.keys.add(idempotencyKey).size }),
        {
          idempotent: true,
        },
      ),
    },
  });
  const errors: unknown[] = [];
  const begin = () =>
    runSubagent(config, 'Order it', {
      id,
      runtime,
      model: castOf({
        subagents: { order: { script: (prompt) => ((seen.modelCalls += 1), looking(prompt)) } },
      }),
      onQuestion: () => ((seen.asked += 1), { text: 'comfort' }),
      onError: (error) => void errors.push(error),
    });
  return { process, runtime, begin, errors, run: begin() };
}

const nothingSeen = (): Seen => ({ keys: new Set(), asked: 0, modelCalls: 0 });

/** Returns the outcome, or null if there is none yet. */
async function outcome(of: World, result: Promise<Outcome>): Promise<Outcome | null> {
  let found: Outcome | null = null;
  void result.then((outcome_) => (found = outcome_));
  await of.environment.advance(5000);
  return found;
}

const booked = { status: 'completed', text: 'Booked {"userResponse":"comfort"}' };

describe('RUN-SUBAGENT-KR-1: a run with an id', () => {
  test.each([
    ['all entries', {}],
    ['the last snapshot', { snapshots: { afterEntries: 1000, trim: true } }],
  ] as const)('returns the same outcome from %s without repeating any work', async (_, on) => {
    const of = world(on);
    const seen = nothingSeen();
    const first = run(of, seen);
    expect(first.run.id).toBe('order-17');
    expect(await outcome(of, first.run.result)).toMatchObject(booked);
    const { modelCalls } = seen;
    // The same is true in this process and in later ones.
    expect(await outcome(of, first.begin().result)).toMatchObject(booked);
    for (let process = 2; process <= 3; process += 1) {
      const later = run(of, seen);
      expect(await outcome(of, later.run.result)).toMatchObject(booked);
      expect(later.errors).toEqual([]);
    }
    expect(seen).toMatchObject({ modelCalls, asked: 1 });
    expect(await outcome(of, run(of, seen, { id: 'order-18' }).run.result)).toMatchObject(booked);
    expect(seen.modelCalls).toBe(2 * modelCalls);
    expect(of.environment.pendingTimers).toBe(0);
  });

  test('returns the same run if it is started twice in one process', async () => {
    const of = world();
    const seen = nothingSeen();
    const { run: first, begin } = run(of, seen);
    const second = begin();
    expect(second).toBe(first);
    expect(await outcome(of, second.result)).toMatchObject(booked);
    expect(seen.asked).toBe(1);
  });

  test('resumes from its last step if killed before or after any entry', async () => {
    const whole = world();
    await outcome(whole, run(whole, nothingSeen()).run.result);
    expect(whole.written).toBeGreaterThan(8);
    for (let entry = 1; entry <= whole.written; entry += 1)
      for (const when of ['before', 'after'] as const) {
        const of = world();
        const seen = nothingSeen();
        of.killAt(entry, when);
        let found = await outcome(of, run(of, seen).run.result);
        found ??= await outcome(of, run(of, seen).run.result);
        expect([entry, when, found, seen.keys.size]).toMatchObject([entry, when, booked, 1]);
      }
  });

  test('remains cancelled if it was cancelled before its first step', async () => {
    const of = world();
    const seen = nothingSeen();
    const first = run(of, seen);
    first.run.cancel('changed my mind');
    expect(await outcome(of, first.run.result)).toMatchObject({ status: 'cancelled' });
    expect(await outcome(of, run(of, seen).run.result)).toMatchObject({ status: 'cancelled' });
    expect(seen.asked).toBe(0);
  });

  test('RUN-SUBAGENT-2: ends as lost if the journal fails, even if the error handler throws', async () => {
    const environment = simulatedEnvironment();
    const inner = memoryJournal({ keep: Infinity });
    let entries = 0;
    const journal: Journal = {
      append(entry) {
        entries += 1;
        if (entries > 3) throw new JournalError('FENCED', 'taken over', { retryable: false });
        inner.append(entry);
      },
      read: (query) => inner.read(query),
    };
    const { result } = runSubagent(
      configOf('order', { tools: { look: simpleTool(never) } }),
      'Do',
      {
        id: 'one',
        runtime: createRuntime({ environment, journal }),
        model: castOf({ subagents: { order: { script: () => calls(['look', {}]) } } }),
        onError() {
          throw new Error('of the handler');
        },
      },
    );
    await environment.settle();
    expect(await result).toMatchObject({ status: 'lost', error: { code: 'FENCED' } });
  });

  test('RUN-SUBAGENT-2: ends as lost if the journal is unreachable, and can be run again', async () => {
    const environment = simulatedEnvironment();
    const inner = memoryJournal({ keep: Infinity });
    let isThere = false;
    const journal: Journal = {
      append: (entry) => inner.append(entry),
      read(query) {
        if (!isThere) throw new OffstageError('JOURNAL_UNREACHABLE', 'it is away');
        return inner.read(query);
      },
    };
    const runtime = createRuntime({ environment, journal });
    const model = castOf({ subagents: { order: { script: turns(say('Done.')) } } });
    const begin = () => runSubagent(configOf('order'), 'Do it', { id: 'one', runtime, model });
    expect(await begin().result).toMatchObject({
      status: 'lost',
      error: { code: 'JOURNAL_UNREACHABLE', retryable: true },
    });
    isThere = true;
    expect(await begin().result).toMatchObject({ status: 'completed', text: 'Done.' });
  });

  test('RUN-SUBAGENT-2: ends as lost in this process if the journal permanently refuses it', async () => {
    const environment = simulatedEnvironment();
    const inner = memoryJournal({ keep: Infinity });
    let isOurs = true;
    const journal: Journal = {
      append(entry) {
        if (!isOurs) throw new JournalError('FENCED', 'another one has it', { retryable: false });
        inner.append(entry);
      },
      read: (query) => inner.read(query),
    };
    const runtime = createRuntime({ environment, journal });
    const model = castOf({
      subagents: { order: { script: turns(calls(['look', {}]), say('Done.')) } },
    });
    const config = configOf('order', {
      tools: {
        look: simpleTool(() => {
          isOurs = false;
          return {};
        }),
      },
    });
    const { result } = runSubagent(config, 'Do it', { id: 'one', runtime, model });
    await environment.advance(5000);
    expect(await result).toMatchObject({ status: 'lost', error: { code: 'FENCED' } });
    expect(environment.pendingTimers).toBe(0);
  });

  test('throws immediately if the configuration is impossible or the id is in use', async () => {
    const runtime = createRuntime({ environment: simulatedEnvironment() });
    const bad = configOf('order', { maxSteps: 0 });
    expect(() => runSubagent(bad, 'Do it', { id: 'one', runtime })).toThrow(/maxSteps/);
    const service = createSubagentService({ runtime, id: 'taken' });
    expect(() => runSubagent(configOf('order'), 'Do it', { id: 'taken', runtime })).toThrow(
      /taken/,
    );
    await service.close();
  });
});

test('leaves nothing behind without an id, even in a journal that deletes only whole scopes', async () => {
  const appended: JournalEntry[] = [];
  const journal: Journal = {
    append: (entry) => void appended.push(entry),
    read: () => appended,
    forget: () => {},
  };
  const environment = simulatedEnvironment();
  const runtime = createRuntime({ environment, journal });
  const model = castOf({ subagents: { order: { script: turns(say('Done.')) } } });
  const { result } = runSubagent(configOf('order'), 'Do it', { runtime, model });
  expect(await result).toMatchObject({ status: 'completed' });
  const service = createSubagentService({ runtime, model, onQuestion: () => never() });
  service.spawn({
    config: configOf('order'),
    task: { toolName: 'order', args: {}, description: 'Do it' },
    caller: { subagentId: null },
  });
  await environment.settle();
  expect(appended).toEqual([]);
  await service.close();
});
