// Steps that run elsewhere belong to the trace of the session that requests them: on every in-memory engine, after a
// kill in the middle, and in whole runs (TRACED-HANDLER-1 to -3, TRACED-JOURNAL-9).

import { SpanKind, type TracerProvider } from '@opentelemetry/api';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { tracedHandler, tracedJournal } from '../../../src/adapters/otel/index.ts';
import {
  jobWorker,
  localJobs,
  packedHandler,
  packedEngine,
  runWorker,
  type Job,
  type JobHandler,
  type Jobs,
} from '../../../src/entries/jobs.ts';
import {
  createRuntime,
  memoryJournal,
  type SubagentConfig,
  createSubAgentTool,
} from '../../../src/index.ts';
import { runSubagent } from '../../../src/entries/subagents.ts';
import {
  scriptedModel,
  simulatedEnvironment,
  simulatedJobs,
  simulatedRuns,
} from '../../../src/testing/index.ts';
import { turns } from '../../support/crashes.ts';
import { testCodec } from '../../support/job-packing.ts';
import { calls, never, say } from '../../support/subagent-runs.ts';
import { storeOf } from './support/ride.ts';
import { placesOf, sdk, tracesIn, withContexts } from './support/traces.ts';

const INSTRUCTIONS = 'You book rides.';
const CALLER = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/** A worker in another process, with its own tracing. */
function worker(charged: () => Promise<unknown> = () => Promise.resolve()) {
  const { tracerProvider, spans } = sdk();
  const tracer = tracerProvider.getTracer('app');
  const probe = async (name: string): Promise<void> => {
    await Promise.resolve();
    tracer.startSpan(name).end();
  };
  const config: SubagentConfig = {
    name: 'rides',
    instructions: INSTRUCTIONS,
    runs: 'jobs',
    tools: {
      charge: tool({
        inputSchema: z.object({}),
        execute: async () => {
          await probe('POST /charges');
          await charged();
          return 'charged';
        },
      }),
    },
  };
  const script = turns(calls(['charge', {}, 'c1']), say('Booked.'));
  const model = scriptedModel({
    scripts: [
      {
        when: INSTRUCTIONS,
        script: async (prompt) => {
          await probe('POST /model');
          return script(prompt);
        },
      },
    ],
  });
  const environment = simulatedEnvironment();
  const bare = jobWorker({ environment, model, configs: { rides: config } });
  return { environment, config, bare, handler: tracedHandler(bare, { tracerProvider }), spans };
}

const PLACES = [
  'POST /model < offstage.job model of rides < chat scripted < invoke_agent rides < offstage.session',
  'POST /charges < offstage.job tool charge of rides < execute_tool charge < invoke_agent rides < offstage.session',
];

test.each<[string, (handler: JobHandler) => Jobs]>([
  ['localJobs', (handler) => localJobs({ handler })],
  ['simulatedJobs', (handler) => simulatedJobs({ handler })],
  [
    'packed jobs',
    (handler) => {
      const packing = { codec: testCodec('a key') };
      return packedEngine(simulatedJobs({ handler: packedHandler(handler, packing) }), packing);
    },
  ],
])('%s: spans of a model and of a tool at the worker are below its steps', async (_, engine) => {
  withContexts();
  const { environment, config, handler, spans } = worker();
  const session = sdk();
  const journal = tracedJournal(memoryJournal(), { tracerProvider: session.tracerProvider });
  const runtime = createRuntime({ environment, jobs: engine(handler), journal });
  const { result } = runSubagent(config, 'To the airport', { runtime, id: 'trip' });
  expect(await result).toMatchObject({ status: 'completed' });
  const all = [...session.spans(), ...spans()];
  expect(tracesIn(all)).toBe(1);
  expect(placesOf(all)).toEqual(PLACES);
  const done = spans().filter(({ name }) => name.startsWith('offstage.job'));
  expect(done.map(({ kind }) => kind)).toEqual([
    SpanKind.CONSUMER,
    SpanKind.CONSUMER,
    SpanKind.CONSUMER,
  ]);
  for (const { attributes } of done)
    expect(attributes).toMatchObject({
      'session.id': 'trip',
      'gen_ai.conversation.id': 'trip',
      'offstage.subagent.id': expect.stringMatching(/^sub_/),
    });
});

test('requests a job again if killed during a tool call, in a new span of the same trace', async () => {
  withContexts();
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const { environment, config, handler, spans } = worker(() => {
    begun.resolve();
    return gate.promise;
  });
  const asked: Job[] = [];
  const jobs = simulatedJobs({ handler });
  let isKilled = false;
  /** A killed process receives no more results. */
  const jobsOf = (isDead: () => boolean): Jobs => ({
    ...jobs,
    run: async (job, options) => {
      asked.push(job);
      const end = await jobs.run(job, options);
      return isDead() ? never() : end;
    },
  });
  const first = storeOf();
  const before = sdk();
  runSubagent(config, 'To the airport', {
    runtime: createRuntime({
      environment,
      jobs: jobsOf(() => isKilled),
      journal: tracedJournal(first.journal, { tracerProvider: before.tracerProvider }),
    }),
    id: 'trip',
  });
  await begun.promise;
  isKilled = true;
  const spansBefore = [...before.spans()];
  const after = sdk();
  const { result } = runSubagent(config, 'To the airport', {
    runtime: createRuntime({
      environment,
      jobs: jobsOf(() => false),
      journal: tracedJournal(storeOf(first.kept).journal, {
        tracerProvider: after.tracerProvider,
      }),
    }),
    id: 'trip',
  });
  await environment.settle();
  gate.resolve();
  expect(await result).toMatchObject({ status: 'completed' });
  const [one, again] = asked.filter(({ name }) => name === 'tool charge of rides');
  expect(again?.key).toBe(one?.key);
  expect(again?.trace?.traceparent).not.toBe(one?.trace?.traceparent);
  const all = [...spansBefore, ...spans(), ...after.spans()];
  expect(tracesIn(all)).toBe(1);
  // It was executed once, for the first request, whose span died with its process.
  expect(placesOf(all)).toEqual([
    'POST /model < offstage.job model of rides < chat scripted',
    'POST /charges < offstage.job tool charge of rides',
    PLACES[0],
  ]);
});

test.each([false, true])(
  "nests a whole run on an engine under its caller's span (packed: %s)",
  async (isPacked) => {
    withContexts();
    const { tracerProvider, spans } = sdk();
    const tracer = tracerProvider.getTracer('app');
    const charge = (name: string) =>
      tool({
        inputSchema: z.object({}),
        execute: async () => {
          await Promise.resolve();
          tracer.startSpan(name).end();
          return 'charged';
        },
      });
    const child = {
      name: 'payer',
      instructions: 'You pay.',
      runs: 'jobs',
      outputSchema: z.object({ paid: z.boolean() }),
      structured: 'off',
      tools: { charge: charge('POST /charges') },
    } as const;
    const config: SubagentConfig = {
      name: 'rides',
      instructions: INSTRUCTIONS,
      runs: 'jobs',
      tools: {
        look: charge('GET /rides'),
        pay: createSubAgentTool(child, z.object({}), { onParentClose: 'cancel' }),
      },
    };
    const model = scriptedModel({
      scripts: [
        {
          when: INSTRUCTIONS,
          script: turns(calls(['look', {}, 'l1']), calls(['pay', {}, 'p1']), say('Booked.')),
        },
        { when: 'You pay', script: turns(calls(['charge', {}, 'c1']), say('{"paid":true}')) },
      ],
    });
    const environment = simulatedEnvironment();
    const configs = { rides: config };
    const steps = tracedHandler(jobWorker({ environment, model, configs }), { tracerProvider });
    const packing = { codec: testCodec('a key') };
    const turnsOf = runWorker({ environment, configs, steps });
    const engine = simulatedRuns({
      environment,
      steps: isPacked ? 'none' : 'one',
      handler: isPacked ? packedHandler(turnsOf, packing) : turnsOf,
    });
    const { result } = runSubagent(config, 'To the airport', {
      runtime: createRuntime({ environment }),
      id: 'trip',
      engine: isPacked ? packedEngine(engine, packing) : engine,
      traceparent: CALLER,
    });
    for (let at = 0; at < 60; at += 1) await environment.advance(1_000);
    expect(await result).toMatchObject({ status: 'completed' });
    expect(placesOf(spans())).toEqual([
      'GET /rides < offstage.job tool look of rides',
      'POST /charges < offstage.job tool charge of payer',
    ]);
    const jobs = spans().filter(({ name }) => name.startsWith('offstage.job'));
    expect(jobs).toHaveLength(7);
    for (const { parentSpanContext } of jobs)
      expect(CALLER).toBe(`00-${parentSpanContext?.traceId}-${parentSpanContext?.spanId}-01`);
  },
);

test('executes a job with an unreadable trace without starting a span (TRACED-HANDLER-1)', async () => {
  withContexts();
  const { bare, spans, handler } = worker();
  const job = { key: 'k', name: 'n', once: false, body: '{}' };
  const { signal } = new AbortController();
  const end = await bare.do(job, signal);
  const traces = [undefined, {}, { traceparent: 'no' }, { traceparent: 7 }, 'x', null, []];
  for (const trace of traces)
    expect(await handler.do({ ...job, trace } as Job, signal)).toEqual(end);
  expect(spans()).toEqual([]);
});

test('marks the spans of refused, failed, lost and cancelled jobs as errors (TRACED-HANDLER-2)', async () => {
  const { tracerProvider, spans } = sdk();
  const controller = new AbortController();
  const ends = [
    () => Promise.resolve({ refused: { code: 'NOT_RECOVERABLE', message: 'secret' } }),
    () => Promise.resolve({ failed: { code: 'NO_MODEL', message: 'secret', retryable: false } }),
    () => Promise.resolve({ lost: true } as const),
    () => Promise.resolve({ done: 'secret' }),
    () => Promise.reject(new Error('secret')),
  ];
  for (const give of ends) {
    const handler = tracedHandler({ do: give }, { tracerProvider });
    const trace = { traceparent: CALLER, tracestate: 'vendor=1' };
    const job = { key: 'a/b/sub_1:2:c1', name: 'tool x of y', once: false, body: 'secret', trace };
    await handler.do(job, controller.signal).catch(() => {});
  }
  expect(spans().map(({ attributes, status }) => [attributes['error.type'], status.code])).toEqual([
    ['NOT_RECOVERABLE', 2],
    ['NO_MODEL', 2],
    ['JOB_LOST', 2],
    [undefined, 0],
    ['CANCELLED', 2],
  ]);
  for (const span of spans()) {
    expect(span.spanContext().traceState?.serialize()).toBe('vendor=1');
    expect(span.attributes).toMatchObject({ 'session.id': 'a/b', 'offstage.subagent.id': 'sub_1' });
  }
  expect(
    JSON.stringify(
      spans().map(({ name, attributes, events, status }) => [name, attributes, events, status]),
    ),
  ).not.toContain('secret');
});

test('runs the job despite faults in the SDK (TRACED-HANDLER-3)', async () => {
  const refuse = (): never => {
    throw new Error('no span');
  };
  const broken: TracerProvider = {
    getTracer: () => ({ startSpan: refuse, startActiveSpan: refuse }),
  };
  const { bare } = worker();
  const job = { key: 'k', name: 'n', once: false, body: '{}', trace: { traceparent: CALLER } };
  const { signal } = new AbortController();
  expect(await tracedHandler(bare, { tracerProvider: broken }).do(job, signal)).toEqual(
    await bare.do(job, signal),
  );
});

test('executes jobs without a trace, and executes jobs with a trace even if tracing is off', async () => {
  const { environment, config, bare } = worker();
  const asked: Job[] = [];
  const jobs = localJobs({
    handler: {
      do: (job, signal) => {
        asked.push(job);
        return bare.do(job, signal);
      },
    },
  });
  const { result } = runSubagent(config, 'Go', { runtime: createRuntime({ environment, jobs }) });
  expect(await result).toMatchObject({ status: 'completed' });
  // Without tracing, no trace context is sent.
  for (const job of asked) expect(Object.keys(job)).toEqual(['key', 'name', 'once', 'body']);
});

test('refuses an invalid handler or option, and names it in the error', () => {
  const handler: JobHandler = { do: never };
  expect(() => tracedHandler({} as never)).toThrow('tracedHandler(handler, options): expected');
  expect(() => tracedHandler(handler, { tracerProvider: 7 as never })).toThrow('tracerProvider');
  expect(() => tracedHandler(handler, { tracer: 7 } as never)).toThrow('tracer');
});
