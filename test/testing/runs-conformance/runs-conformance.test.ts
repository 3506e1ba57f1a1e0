// The conformance suite of runs: in process on a journal, and on the engine in memory; each planted fault fails it.

import { describe, expect, test } from 'vitest';
import {
  forgetRun,
  jobWorker,
  packedHandler,
  packedJobs,
  packedRunHandler,
  packedRuns,
  runWorker,
  type ForgetRunStores,
  type JobPacking,
  type Jobs,
  type RunEngine,
  type RunHandler,
} from '../../../src/entries/jobs.ts';
import type { Journal } from '../../../src/actors/ports/journal.ts';
import { createRuntime, memoryJournal } from '../../../src/index.ts';
import { memoryClaims, realMoment, testCodec } from '../../support/job-packing.ts';
import {
  runsConformance,
  runsConformanceAgents,
  simulatedEnvironment,
  simulatedJobs,
  simulatedRuns,
  type RunsConformanceSetup,
  type SimulatedEnvironment,
} from '../../../src/testing/index.ts';

/** What a process that was killed leaves: its journal gets no entry any more, and no timer of it fires. */
function mortal(environment: SimulatedEnvironment, journal: Journal) {
  let isDead = false;
  const alive = (task: () => void) => () => {
    if (!isDead) task();
  };
  return {
    kill() {
      isDead = true;
    },
    runtime: createRuntime({
      environment: {
        ...environment,
        scheduler: {
          schedule: (task, ms, options) => environment.scheduler.schedule(alive(task), ms, options),
          yieldThen: (task) => environment.scheduler.yieldThen(alive(task)),
        },
      },
      journal: {
        append: (entry) => (isDead ? new Promise<void>(() => {}) : journal.append(entry)),
        read: (query) => journal.read(query),
      },
    }),
  };
}

function inProcess(): RunsConformanceSetup {
  const environment = simulatedEnvironment();
  return {
    name: 'in process',
    shows: ['program_dies'],
    isEngine: false,
    patience: 300,
    moment: () => environment.settle(),
    pass: (ms) => environment.advance(ms),
    open(tell) {
      const { model } = runsConformanceAgents(tell);
      const journal = memoryJournal({ keep: Infinity });
      return {
        program() {
          const { kill, runtime } = mortal(environment, journal);
          return { options: { runtime, model }, kill };
        },
      };
    },
  };
}

let salt = 0;

interface Faults {
  readonly packing?: () => JobPacking;
  readonly forgets?: (stores: ForgetRunStores) => ForgetRunStores;
  readonly engine?: (engine: RunEngine) => RunEngine;
  readonly handler?: (handler: RunHandler) => RunHandler;
  readonly jobs?: (jobs: Jobs) => Jobs;
}

const simulated = (): RunsConformanceSetup => simulatedWith({});

function simulatedWith({
  engine: change,
  handler: other,
  jobs: odd,
  packing,
  forgets: storesOf = (stores) => stores,
}: Faults): RunsConformanceSetup {
  const environment = simulatedEnvironment();
  return {
    name: 'simulated',
    shows: ['program_dies', 'worker_dies'],
    isEngine: true,
    deletes: true,
    patience: 300,
    moment: () => environment.settle(),
    pass: (ms) => environment.advance(ms),
    open(tell) {
      const { model, configs } = runsConformanceAgents(tell);
      const own = packing?.();
      const worker = jobWorker({ environment, configs, model });
      const bare = simulatedJobs({ handler: own ? packedHandler(worker, own) : worker });
      const jobs = own ? packedJobs(bare, own) : bare;
      const turns = runWorker({
        environment,
        configs,
        jobs: odd?.(jobs) ?? jobs,
        onError: () => {},
      });
      const handler = own ? packedRunHandler(turns, own) : turns;
      const kept = simulatedRuns({ environment, handler: other?.(handler) ?? handler });
      const engine = own ? packedRuns(kept, own) : kept;
      return {
        forget: (id) => forgetRun(id, storesOf({ engine, jobs })),
        program() {
          const end = new AbortController();
          const changed = change?.(engine) ?? engine;
          const own: RunEngine = {
            ...changed,
            view: (id, after, signal) =>
              changed.view(id, after, AbortSignal.any([signal, end.signal])),
          };
          return {
            options: { runtime: createRuntime({ environment }), engine: own },
            kill() {
              end.abort(new Error('the program was killed'));
            },
          };
        },
        killWorkers() {
          kept.killWorkers();
          bare.killWorkers();
        },
      };
    },
  };
}

function packed(): RunsConformanceSetup {
  const setup = simulatedWith({
    packing: () => ({
      codec: testCodec('a key'),
      claims: memoryClaims(),
      claimAboveBytes: 1_000,
      redact: {},
    }),
  });
  // References of claims have a digest, which Node makes on another thread.
  return { ...setup, name: 'simulated, packed', patience: 5_000, moment: realMoment(setup.moment) };
}

describe.each([inProcess(), simulated(), packed()])('[H7] $name', (setup) => {
  test.each(runsConformance(setup).filter(({ skipped }) => skipped === null))('$name', ({ run }) =>
    run(),
  );
});

test('the cases for engines and their faults are skipped with a reason', () => {
  const skipped = runsConformance(inProcess()).flatMap(({ skipped: why }) => why ?? []);
  expect(skipped.length).toBeGreaterThan(4);
  expect(skipped[0]).toContain('in process');
});

const salted = (jobs: Jobs): Jobs => ({
  ...jobs,
  run: (job, options) => jobs.run({ ...job, key: `${job.key}~${(salt += 1)}` }, options),
});

describe('a planted fault fails a case', () => {
  test.each<[string, Faults]>([
    [
      'answers are lost on the way to the worker',
      {
        handler: (handler) => ({
          turn(turn, signal) {
            const news = turn.news.type === 'answered' ? ({ type: 'due' } as const) : turn.news;
            return handler.turn({ ...turn, news }, signal);
          },
        }),
      },
    ],
    [
      'the journal is lost, and so are the ends of jobs',
      {
        handler: (handler) => ({
          turn: (turn, signal) => handler.turn({ ...turn, journal: [] }, signal),
        }),
        jobs: salted,
      },
    ],
    ['a job that is asked for again is another job', { jobs: salted }],
    [
      'the time of a question begins anew in each turn',
      {
        handler: (handler) => ({
          turn: (turn, signal) => {
            const { clock } = simulatedEnvironment({ startAt: 4_000_000_000_000 });
            const waiting = turn.waiting.map((wait) => ({ ...wait, askedAt: clock.now() }));
            return handler.turn({ ...turn, waiting }, signal);
          },
        }),
      },
    ],
    ['the steps of a run that was deleted stay', { forgets: ({ engine }) => ({ engine }) }],
    [
      'a deleted run stays',
      {
        forgets: ({ engine, ...rest }) => ({
          ...rest,
          engine: { ...engine, forget: async (id) => [id] },
        }),
      },
    ],
    ['a cancel does nothing', { engine: (engine) => ({ ...engine, cancel: async () => {} }) }],
    [
      'a second answer counts',
      {
        engine: (engine) => ({
          ...engine,
          answer: async (...given) => {
            await engine.answer(...given);
            return true;
          },
        }),
      },
    ],
    ['an answer does nothing', { engine: (engine) => ({ ...engine, answer: async () => true }) }],
    [
      'each start is another run',
      {
        engine: (engine) => {
          const id = `run-${(salt += 1)}`;
          return {
            ...engine,
            start: (order) => engine.start({ ...order, id }),
            view: (_, after, signal) => engine.view(id, after, signal),
            answer: (_, answer) => engine.answer(id, answer),
          };
        },
      },
    ],
    [
      'views come without their questions',
      {
        engine: (engine) => ({
          ...engine,
          view: async (...given) => ({ ...(await engine.view(...given)), waiting: [] }),
        }),
      },
    ],
    [
      'children are not shown',
      {
        engine: (engine) => ({
          ...engine,
          view: async (...given) => ({ ...(await engine.view(...given)), children: [] }),
        }),
      },
    ],
    [
      'the outcome of a child is lost',
      {
        handler: (handler) => ({
          turn(turn, signal) {
            const { news } = turn;
            const lost = news.type === 'child' ? { ...news, outcome: null } : news;
            return handler.turn({ ...turn, news: lost }, signal);
          },
        }),
      },
    ],
    [
      'a child gets another outcome',
      {
        handler: (handler) => ({
          async turn(turn, signal) {
            const end = await handler.turn(turn, signal);
            if (!turn.order.above || end.outcome === null) return end;
            return { ...end, outcome: { ...end.outcome, output: { text: 'Nothing' } } };
          },
        }),
      },
    ],
    [
      'a child is not cancelled with its run',
      {
        handler: (handler) => ({
          turn(turn, signal) {
            if (!turn.order.above) return handler.turn(turn, signal);
            const news = turn.news.type === 'cancelled' ? ({ type: 'due' } as const) : turn.news;
            return handler.turn({ ...turn, news }, new AbortController().signal);
          },
        }),
      },
    ],
    [
      'every child is cancelled with its run',
      {
        handler: (handler) => ({
          async turn(turn, signal) {
            const end = await handler.turn(turn, signal);
            const children = end.children?.map((child) => ({
              ...child,
              onParentClose: 'cancel' as const,
            }));
            return children ? { ...end, children } : end;
          },
        }),
      },
    ],
  ])('%s', async (_, faults) => {
    const cases = runsConformance(simulatedWith(faults)).filter(({ skipped }) => skipped === null);
    for (const { run } of cases) {
      const isPassed = await run().then(
        () => true,
        () => false,
      );
      if (!isPassed) return;
    }
    expect.unreachable('no case failed');
  });
});
