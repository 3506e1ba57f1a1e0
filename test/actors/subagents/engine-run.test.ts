// Runs on an engine: what `runSubagent` and `runWorker` refuse, and an engine that does not answer. The conformance
// suite for runs covers the rest.

import { describe, expect, test } from 'vitest';
import {
  JobError,
  localJobs,
  jobWorker,
  packedHandler,
  packedEngine,
  runWorker,
  type JobPacking,
  type RunEngine,
  type RunHandler,
  type RunTurn,
} from '../../../src/entries/jobs.ts';
import { createRuntime, createSubAgentTool } from '../../../src/index.ts';
import { runsConformanceAgents } from '../../suites/runs/index.ts';
import { simulatedEnvironment, simulatedJobs, simulatedRuns } from '../../../src/testing/index.ts';
import { type RunMessageOptions, runSubagent } from '../../../src/entries/subagents.ts';
import { testCodec } from '../../support/job-packing.ts';
import { tool } from 'ai';
import { z } from 'zod';

const config = { name: 'rides', instructions: 'Book.', runs: 'jobs' } as const;

function setUp() {
  const environment = simulatedEnvironment();
  const { configs, model } = runsConformanceAgents(() => Promise.resolve());
  const jobs = simulatedJobs({ handler: jobWorker({ environment, configs, model }) });
  const handler = runWorker({ environment, configs, jobs });
  const engine = simulatedRuns({ environment, handler });
  const runtime = createRuntime({ environment });
  return { environment, engine, runtime, configs, jobs, traveller: configs['traveller'] ?? config };
}

/**
 * The same setup with an engine that stores texts plain or packed; `as` is the form in which a program reads and writes
 * them.
 */
function packingSetUp(texts: 'plain' | 'packed') {
  const { environment, runtime, traveller, configs, jobs } = setUp();
  const packing = { codec: testCodec('a key') };
  const turns = runWorker({ environment, configs, jobs });
  const isPacked = texts === 'packed';
  const handler = isPacked ? packedHandler(turns, packing) : turns;
  const kept = simulatedRuns({ environment, handler });
  const as = (engine: RunEngine) => (isPacked ? packedEngine(engine, packing) : engine);
  return { environment, runtime, traveller, kept, as };
}

describe('runSubagent with an engine refuses', () => {
  const { engine, runtime } = setUp();
  test.each([
    [{ engine }, 'options).id'],
    [{ engine, id: '' }, '`id`'],
    [{ engine, id: 'x'.repeat(201) }, 'options).id'],
    [{ engine, id: 'a', onProgress: () => {} }, 'onProgress: expected none beside `engine`'],
    [{ engine, id: 'a', onStep: () => {} }, 'onStep: expected none beside `engine`'],
    [{ engine: { start() {} }, id: 'a' }, 'an engine such as restateRuns'],
    [{ engine, id: 'a', by: 7 }, 'by'],
  ])('%#', (options, message) => {
    expect(() => runSubagent(config, 'Go', { runtime, ...options } as never)).toThrow(message);
  });
});

describe('runWorker refuses', () => {
  const environment = simulatedEnvironment();
  const jobs = simulatedJobs({ handler: jobWorker({ environment, configs: {} }) });
  const one = (given: object) => ({ environment, jobs, configs: { a: given } });
  const search = tool({ description: 's', inputSchema: z.object({}), execute: () => 1 });
  const child = createSubAgentTool(
    { name: 'child', instructions: '', outputSchema: z.object({}) },
    z.object({}),
  );
  test.each([
    [{ environment, configs: {} }, 'expected `steps`, such as jobWorker({ … }), or `jobs`'],
    [{ environment, configs: {}, jobs, steps: jobs }, 'a handler such as that of jobWorker'],
    [
      { environment, configs: {}, jobs, steps: jobWorker({ environment, configs: {} }) },
      'got both',
    ],
    [
      {
        environment,
        configs: {},
        jobs: localJobs({ handler: jobWorker({ environment, configs: {} }) }),
      },
      'keeps the ends of its jobs',
    ],
    [one({ name: 'a', instructions: '' }), "expected `runs: 'jobs'`"],
    [
      one({ ...config, tools: { search: { ...search, runs: 'here' } } }),
      'search to be `idempotent`',
    ],
    [one({ ...config, tools: { child } }), 'configs.a.tools.child'],
    [{ environment, jobs, configs: { a: { ...config }, b: { ...config } } }, 'got two'],
    [{ ...one(config), maxChars: 0 }, 'maxChars'],
    [{ ...one(config), colour: 'blue' }, 'colour'],
  ])('%#', (options, message) => {
    expect(() => runWorker(options as never)).toThrow(message);
  });

  test('accepts an idempotent tool that runs in the process', () => {
    const tools = { search: { ...search, runs: 'here', idempotent: true } };
    expect(() => runWorker(one({ ...config, tools }) as never)).not.toThrow();
  });
});

describe('a run on an engine', () => {
  test('ENGINE-RUN-3: retries when the engine is unreachable', async () => {
    const { environment, engine, runtime, traveller } = setUp();
    let failures = 0;
    const flaky = <T>(ask: () => Promise<T>): Promise<T> => {
      failures += 1;
      const error = new JobError('JOBS_UNREACHABLE', 'away', { retryable: true });
      return failures % 3 === 0 ? ask() : Promise.reject(error);
    };
    const reported: string[] = [];
    const taken: string[] = [];
    const haveAll = Promise.withResolvers<void>();
    const own: RunEngine = {
      name: 'flaky',
      start: (order) => flaky(() => engine.start(order)),
      view: (...given) => flaky(() => engine.view(...given)),
      answer: (...given) => flaky(() => engine.answer(...given)),
      message: (id, message) =>
        flaky(async () => {
          taken.push(message.content);
          if (taken.length === 3) haveAll.resolve();
          return (await engine.message?.(id, message)) ?? { refused: 'over' };
        }),
      cancel: (...given) => flaky(() => engine.cancel(...given)),
    };
    const { result, send } = runSubagent(traveller, 'Go [trip t: ask]', {
      runtime,
      engine: own,
      id: 'r1',
      onQuestion: () => haveAll.promise.then(() => ({ text: 'The cheap one' })),
      onError: (_, where) => void reported.push(where),
    });
    const receipts = ['one', 'two', 'three'].map((word) => send(`hear ${word}`));
    let isOver = false;
    void result.then(() => {
      isOver = true;
    });
    while (!isOver) await environment.advance(1_000);
    expect(await result).toMatchObject({
      status: 'completed',
      text: expect.stringContaining('heard one after 1 two after 1 three after 1.'),
    });
    expect(taken).toEqual(['hear one', 'hear two', 'hear three']);
    for (const receipt of receipts) expect(await receipt).toEqual({ applied: true });
    expect(reported).toContain('flaky: r1');
  });

  test('ENGINE-RUN-5: explains in the receipt why the engine did not deliver a message', async () => {
    const { environment, engine, runtime, traveller } = setUp();
    const { message, ...deaf } = engine;
    const refusing: RunEngine = {
      ...engine,
      message: () =>
        Promise.reject(new JobError('JOBS_REFUSED', 'not today', { retryable: false })),
    };
    const reasons: string[] = [];
    for (const [id, own] of Object.entries({ deaf, refusing, engine })) {
      const run = runSubagent(traveller, 'Go [trip t: input]', { runtime, engine: own, id });
      if (own === engine) run.cancel('not needed');
      const receipt = run.send('Hurry');
      let isOver = false;
      void receipt.then(() => {
        isOver = true;
      });
      while (!isOver) await environment.advance(1_000);
      const settled = await receipt;
      if (!settled.applied) reasons.push(settled.reason);
    }
    expect(message).toBeDefined();
    expect(reasons).toEqual([
      'The engine "simulated" takes no messages for runs',
      'not today',
      'The run ended before it read it',
    ]);
  });

  test.each([['plain'], ['packed']] as const)(
    'ENGINE-RUN-5: reports a message as read even if the run ended before confirming it (%s)',
    async (texts) => {
      const { environment, runtime, traveller, kept, as } = packingSetUp(texts);
      // An engine that accepts each message and dies before it answers.
      const dying: RunEngine = {
        ...kept,
        async message(id, message) {
          await kept.message?.(id, message);
          throw new JobError('JOBS_UNREACHABLE', 'away', { retryable: true });
        },
      };
      const answered = Promise.withResolvers<{ text: string }>();
      const begin = (engine: RunEngine) =>
        runSubagent(traveller, 'Go [trip t: ask]', {
          runtime,
          engine: as(engine),
          id: 'r',
          onQuestion: () => answered.promise,
          onError: () => {},
        });
      const run = begin(dying);
      const cut = run.send('hear left', { idempotencyKey: 'words' });
      await environment.settle();
      answered.resolve({ text: 'The cheap one' });
      let isOver = false;
      void run.result.then(() => {
        isOver = true;
      });
      while (!isOver) await environment.advance(50);
      expect(await run.result).toMatchObject({ text: expect.stringContaining('heard left') });
      await environment.advance(60_000);
      expect(await cut).toEqual({ applied: true });
      // Another process sends that message again, and also a new one.
      const later = begin(kept);
      const again = [later.send('hear left', { idempotencyKey: 'words' }), later.send('hear more')];
      await environment.advance(60_000);
      expect(await Promise.all(again)).toEqual([
        { applied: true },
        { applied: false, reason: 'The run ended before it read it' },
      ]);
    },
  );

  test('refuses an invalid message without sending it', async () => {
    const { engine, runtime, traveller } = setUp();
    const run = runSubagent(traveller, 'Go [trip t: input]', { runtime, engine, id: 'r' });
    for (const [words, options, expected] of [
      ['', {}, 'run.send(content)'],
      ['x'.repeat(100_001), {}, '100000'],
      [7, {}, 'expected string'],
      ['Go', { mode: 'now' }, 'mode'],
      ['Go', { idempotencyKey: '' }, 'idempotencyKey'],
      ['Go', { by: 7 }, 'by'],
      ['Go', { colour: 'blue' }, 'colour'],
    ] as const) {
      const sent = run.send(words as string, options as RunMessageOptions);
      await expect(sent).rejects.toMatchObject({
        name: 'ConfigurationError',
        message: expect.stringContaining(expected),
      });
    }
  });

  test('ENGINE-RUN-1: fails as lost when the engine refuses it', async () => {
    const { engine, runtime } = setUp();
    const start = () =>
      Promise.reject(new JobError('JOBS_REFUSED', 'no such service', { retryable: false }));
    const { result } = runSubagent(config, 'Go', {
      runtime,
      engine: { ...engine, start },
      id: 'r',
    });
    expect(await result).toMatchObject({
      status: 'lost',
      error: { code: 'JOBS_REFUSED', message: 'no such service' },
    });
  });

  test.each([['plain'], ['packed']] as const)(
    'RUN-ENGINE-1: fails as lost when its id belongs to another run, which continues (%s)',
    async (texts) => {
      const { environment, runtime, traveller, kept, as } = packingSetUp(texts);
      const engine = as(kept);
      const asked: ((answer: { text: string }) => void)[] = [];
      const begin = (task: string, name = 'traveller') =>
        runSubagent({ ...traveller, name }, task, {
          runtime,
          engine,
          id: 'r',
          onQuestion: () => new Promise((resolve) => asked.push(resolve)),
        });
      const first = begin('Go [trip t: ask]');
      while (asked.length === 0) await environment.advance(1_000);
      for (const other of [begin('Go [trip u: ask]'), begin('Go [trip t: ask]', 'guide')])
        expect(await other.result).toMatchObject({ status: 'lost', error: { code: 'ID_REUSED' } });
      expect(asked.length).toBe(1);
      asked[0]?.({ text: 'The cheap one' });
      await environment.advance(1_000);
      expect(await first.result).toMatchObject({ status: 'completed' });
      expect(await begin('Go [trip t: ask]').result).toMatchObject({ status: 'completed' });
      expect(await begin('Go [trip u: ask]').result).toMatchObject({ status: 'lost' });
    },
  );

  test('ENGINE-RUN-4: fails as lost with an explanation if client and worker use different packing', async () => {
    const packing = { codec: testCodec('a key') };
    const other = { codec: testCodec('another key') };
    const ends: [JobPacking | null, JobPacking | null][] = [
      [packing, null],
      [null, packing],
      [packing, other],
    ];
    for (const [asked, done] of ends) {
      const { environment, runtime, traveller, configs, jobs } = setUp();
      // Workers of a later version may know this packing. This worker has refused it for long enough.
      const turns = runWorker({ environment, configs, jobs, offerMs: 0 });
      const kept = simulatedRuns({
        environment,
        handler: done ? packedHandler(turns, done) : turns,
      });
      const { result } = runSubagent(traveller, 'Go [trip t: ask, charge]', {
        runtime,
        engine: asked ? packedEngine(kept, asked) : kept,
        id: 'r',
        onQuestion: () => ({ text: 'The cheap one' }),
      });
      const { status, error } = await result;
      expect([status, error?.code]).toEqual(['lost', 'JOB_UNREADABLE']);
      expect(error?.message).toMatch(/both ends need the same packing/iu);
    }
  });

  test('ENGINE-RUN-4: does not pass a question with an unknown shape to a handler', async () => {
    const { engine, runtime, traveller } = setUp();
    const asked: unknown[] = [];
    const { result } = runSubagent(traveller, 'Go [trip t: ask]', {
      runtime,
      engine: {
        ...engine,
        async view(...given) {
          const view = await engine.view(...given);
          return {
            ...view,
            waiting: view.waiting.map((wait) => ({ ...wait, asked: { packed: 'x' } })),
          };
        },
      },
      id: 'r',
      onQuestion: (question) => (asked.push(question), null),
    });
    expect(await result).toMatchObject({ status: 'lost', error: { code: 'JOB_UNREADABLE' } });
    expect(asked).toEqual([]);
  });

  test('RUN-WORKER-6: continues on new workers when an old one refuses a turn, without repeating steps', async () => {
    const { environment, runtime, traveller, configs, jobs } = setUp();
    const handler = runWorker({ environment, configs, jobs });
    const old = runWorker({ environment, configs, jobs });
    let refused = 0;
    const engine = simulatedRuns({
      environment,
      handler: {
        step: handler.step,
        async turn(turn, signal) {
          if (turn.number === 1 || refused > 0 || typeof turn.journal === 'string')
            return handler.turn(turn, signal);
          const journal = turn.journal.map((one) => ({
            ...one,
            definitionVersion: 9_999,
            event: { ...one.event, versions: { form: 9_999 } },
          }));
          refused += 1;
          const left = await old.turn({ ...turn, journal }, signal);
          expect(left.missing).toBe('another worker');
          return left;
        },
      },
    });
    const { result } = runSubagent(traveller, 'Go [trip t: charge, ask, look_up]', {
      runtime,
      engine,
      id: 'r',
      onQuestion: () => ({ text: 'The cheap one' }),
    });
    expect(await result).toMatchObject({ status: 'completed' });
    expect(refused).toBe(1);
    const charges = jobs.begun.filter(({ name }) => name.startsWith('tool charge'));
    expect(charges).toHaveLength(1);
  });

  test('RUN-WORKER-9: continues from memory only after the recorded turn', async () => {
    const { environment, runtime, traveller } = setUp();
    const { configs, model } = runsConformanceAgents(() => Promise.resolve());
    const steps = jobWorker({ environment, configs, model });
    const handler = runWorker({ environment, configs, steps });
    const held: boolean[] = [];
    let strays = 0;
    const engine = simulatedRuns({
      environment,
      steps: 'one',
      handler: {
        step: handler.step,
        async turn(turn, signal) {
          if (turn.number > 1) held.push(handler.holds?.(turn) ?? false);
          const end = await handler.turn(turn, signal);
          if (turn.number !== 2 || strays > 0) return end;
          // The engine records another process's attempt for this turn.
          strays += 1;
          return runWorker({ environment, configs, steps }).turn(turn, signal);
        },
      },
    });
    const { result } = runSubagent(traveller, 'Go [trip t: look_up, look_up, charge]', {
      runtime,
      engine,
      id: 'r',
    });
    const { status, toolLedger } = await result;
    expect([status, toolLedger.length]).toEqual(['completed', 3]);
    // The third turn runs in a different process from the second.
    expect(held.slice(0, 3)).toEqual([true, false, true]);
  });

  test('RUN-FLOW-5: starts the calls of one answer concurrently, unless they must run alone', async () => {
    const { environment, runtime, traveller } = setUp();
    const under = new Set<string>();
    let most = 0;
    const { configs, model } = runsConformanceAgents(async (what) => {
      if (what.includes('model')) return;
      under.add(what);
      most = Math.max(most, under.size);
      await environment.advance(10);
      under.delete(what);
    });
    const steps = jobWorker({ environment, configs, model });
    const engine = simulatedRuns({
      environment,
      steps: 'one',
      handler: runWorker({ environment, configs, steps }),
    });
    const { result } = runSubagent(traveller, 'Go [trip t: look_up & look_up & charge, charge]', {
      runtime,
      engine,
      id: 'r',
    });
    const { status, toolLedger } = await result;
    expect(status).toBe('completed');
    expect(toolLedger.map((one) => one.status)).toEqual(['ok', 'ok', 'ok', 'ok']);
    expect(most).toBe(3);
  });

  test('treats a call as failed, and continues, when the engine does not store its result', async () => {
    const { environment, runtime } = setUp();
    const { model } = runsConformanceAgents(() => Promise.resolve());
    const look = tool({
      description: 'l',
      inputSchema: z.object({ trip: z.string() }),
      execute: () => 'x'.repeat(50_000),
    });
    const configs = { traveller: { ...config, name: 'traveller', tools: { look_up: look } } };
    const steps = jobWorker({ environment, configs, model });
    const engine = simulatedRuns({
      environment,
      steps: 'one',
      handler: runWorker({ environment, configs, steps, maxChars: 20_000 }),
    });
    const { result } = runSubagent(configs.traveller, 'Go [trip t: look_up]', {
      runtime,
      engine,
      id: 'r',
    });
    const { status, toolLedger } = await result;
    expect([status, toolLedger[0]?.status]).toEqual(['completed', 'error']);
    expect(JSON.stringify(toolLedger)).toContain('expected at most 20000 bytes');
  });

  test('RUN-WORKER-1: does not abandon a job during a turn, because the turn may be repeated', async () => {
    const { environment, runtime, traveller, configs, jobs } = setUp();
    const given: string[] = [];
    const told = { ...jobs, ended: (prefix: string) => void given.push(prefix) };
    const handler = runWorker({ environment, configs, jobs: told });
    const engine = simulatedRuns({ environment, handler });
    const { result } = runSubagent(traveller, 'Go [trip t: charge]', { runtime, engine, id: 'r' });
    expect(await result).toMatchObject({ status: 'completed' });
    expect(given).toEqual([]);
  });

  test('continues without handlers, but withdraws its questions', async () => {
    const { engine, runtime, traveller } = setUp();
    const { result } = runSubagent(traveller, 'Go [trip t: ask, input, charge]', {
      runtime,
      engine,
      id: 'r',
    });
    expect(await result).toMatchObject({ status: 'completed', text: 'Done: {"did":"charge"}' });
  });

  test('RUN-WORKER: fails as lost when its journal exceeds `maxChars`, and names the limit', async () => {
    const { runtime, traveller } = setUp();
    const environment = simulatedEnvironment();
    const { configs, model } = runsConformanceAgents(() => Promise.resolve());
    const jobs = simulatedJobs({ handler: jobWorker({ environment, configs, model }) });
    const handler = runWorker({ environment, configs, jobs, maxChars: 1_000 });
    const engine = simulatedRuns({ environment, handler });
    const { result } = runSubagent(traveller, 'Go [trip t: ask]', { runtime, engine, id: 'r' });
    expect(await result).toMatchObject({ status: 'lost', error: { code: 'RUN_TOO_LARGE' } });
  });
});

describe('RUN-WORKER-9: a run that waits for an answer', () => {
  function worker(): RunHandler {
    const environment = simulatedEnvironment();
    const { configs, model } = runsConformanceAgents(() => Promise.resolve());
    return runWorker({ environment, configs, steps: jobWorker({ environment, configs, model }) });
  }

  const { signal } = new AbortController();

  /** Returns the turn that contains the answer. */
  async function answered(handler: RunHandler, id: string): Promise<RunTurn> {
    const task = { description: 'Go [trip t: ask, charge]', toolName: 'traveller', args: {} };
    const begun: RunTurn = {
      order: { id, config: 'traveller', task },
      number: 1,
      journal: [],
      waiting: [],
      news: { type: 'begun' },
      steps: 'one',
    };
    for (let turn = begun; ;) {
      const { journal, isMore, waiting, steps = [], mark } = await handler.turn(turn, signal);
      const [asked] = waiting;
      const [step] = steps;
      if (!mark || !(asked || step)) throw new Error(`${id} does not ask`);
      turn = {
        ...turn,
        number: turn.number + 1,
        ...(isMore ? { since: [...(turn.since ?? []), journal] } : { journal, since: [] }),
        waiting,
        mark,
        ...(step ? { news: { type: 'next', step } } : {}),
      };
      if (!asked) continue;
      const answer = { requestId: asked.requestId, given: { text: 'The cheap one' } };
      return { ...turn, news: { type: 'answered', answer } };
    }
  }

  const isPlayedAgain = async (handler: RunHandler, turn: RunTurn): Promise<boolean> =>
    JSON.stringify(await handler.turn(turn, signal)).includes('service.recovered');

  test('continues from memory in the same process, and from the journal in another process', async () => {
    const handler = worker();
    const turn = await answered(handler, 'r');
    const other = worker();
    expect([handler.holds?.(turn), other.holds?.(turn)]).toEqual([true, false]);
    const copy = structuredClone(turn);
    // The worker does not need the entries that it already has.
    expect(await isPlayedAgain(handler, { ...turn, journal: [], since: [] })).toBe(false);
    expect(await isPlayedAgain(other, copy)).toBe(true);
  });

  test('continues from the journal when a hundred other runs are waiting', async () => {
    const handler = worker();
    const turns: RunTurn[] = [];
    for (let run = 0; run <= 100; run += 1) turns.push(await answered(handler, `r${run}`));
    expect(turns.map((turn) => handler.holds?.(turn)).indexOf(true)).toBe(1);
    const [first] = turns;
    expect(first && (await isPlayedAgain(handler, first))).toBe(true);
  });
});
