// Runs on an engine: what `runSubagent` and `runWorker` refuse, and an engine that does not answer. The rest is in the
// conformance suite of runs.

import { describe, expect, test } from 'vitest';
import {
  JobError,
  localJobs,
  jobWorker,
  runWorker,
  type RunEngine,
} from '../../../src/entries/jobs.ts';
import { createRuntime, createSubAgentTool, runSubagent } from '../../../src/index.ts';
import {
  runsConformanceAgents,
  simulatedEnvironment,
  simulatedJobs,
  simulatedRuns,
} from '../../../src/testing/index.ts';
import { tool } from 'ai';
import { z } from 'zod';

const config = { name: 'rides', instructions: 'Book.', runs: 'jobs' } as const;

function setUp() {
  const environment = simulatedEnvironment();
  const { configs, model } = runsConformanceAgents(() => Promise.resolve());
  const jobs = simulatedJobs({ hands: jobWorker({ environment, configs, model }) });
  const hands = runWorker({ environment, configs, jobs });
  const engine = simulatedRuns({ environment, hands });
  const runtime = createRuntime({ environment });
  return { environment, engine, runtime, traveller: configs['traveller'] ?? config };
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
  const jobs = simulatedJobs({ hands: jobWorker({ environment, configs: {} }) });
  const one = (given: object) => ({ environment, jobs, configs: { a: given } });
  const search = tool({ description: 's', inputSchema: z.object({}), execute: () => 1 });
  const child = createSubAgentTool(
    { name: 'child', instructions: '', outputSchema: z.object({}) },
    z.object({}),
  );
  test.each([
    [{ environment, configs: {} }, 'jobs'],
    [
      {
        environment,
        configs: {},
        jobs: localJobs({ hands: jobWorker({ environment, configs: {} }) }),
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

  test('nothing of a tool that runs here and is idempotent', () => {
    const tools = { search: { ...search, runs: 'here', idempotent: true } };
    expect(() => runWorker(one({ ...config, tools }) as never)).not.toThrow();
  });
});

describe('a run on an engine', () => {
  test('ENGINE-RUN-3: an engine that cannot be reached is asked again', async () => {
    const { environment, engine, runtime, traveller } = setUp();
    let failures = 0;
    const flaky = <T>(ask: () => Promise<T>): Promise<T> => {
      failures += 1;
      const error = new JobError('JOBS_UNREACHABLE', 'away', { retryable: true });
      return failures % 3 === 0 ? ask() : Promise.reject(error);
    };
    const reported: string[] = [];
    const own: RunEngine = {
      name: 'flaky',
      start: (order) => flaky(() => engine.start(order)),
      view: (...given) => flaky(() => engine.view(...given)),
      answer: (...given) => flaky(() => engine.answer(...given)),
      cancel: (...given) => flaky(() => engine.cancel(...given)),
    };
    const { result } = runSubagent(traveller, 'Go [trip t: ask]', {
      runtime,
      engine: own,
      id: 'r1',
      onQuestion: () => ({ text: 'The cheap one' }),
      onError: (_, where) => void reported.push(where),
    });
    let isOver = false;
    void result.then(() => {
      isOver = true;
    });
    while (!isOver) await environment.advance(1_000);
    expect(await result).toMatchObject({
      status: 'completed',
      text: expect.stringContaining('cheap'),
    });
    expect(reported).toContain('flaky: r1');
  });

  test('ENGINE-RUN-1: an engine that refuses the run ends it as lost', async () => {
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

  test('without handlers its questions are withdrawn, and the run goes on', async () => {
    const { engine, runtime, traveller } = setUp();
    const { result } = runSubagent(traveller, 'Go [trip t: ask, input, charge]', {
      runtime,
      engine,
      id: 'r',
    });
    expect(await result).toMatchObject({ status: 'completed', text: 'Done: {"did":"charge"}' });
  });

  test('RUN-WORKER: a journal above `maxChars` ends the run as lost, and names the limit', async () => {
    const { runtime, traveller } = setUp();
    const environment = simulatedEnvironment();
    const { configs, model } = runsConformanceAgents(() => Promise.resolve());
    const jobs = simulatedJobs({ hands: jobWorker({ environment, configs, model }) });
    const hands = runWorker({ environment, configs, jobs, maxChars: 100 });
    const engine = simulatedRuns({ environment, hands });
    const { result } = runSubagent(traveller, 'Go [trip t: ask]', { runtime, engine, id: 'r' });
    expect(await result).toMatchObject({ status: 'lost', error: { code: 'RUN_TOO_LARGE' } });
  });
});
