// METERED-JOURNAL-1 to METERED-JOURNAL-4, with the official SDK: what is measured in a conversation.

import { metrics, type MeterProvider } from '@opentelemetry/api';
import {
  AggregationTemporality,
  type DataPoint,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider as SdkMeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  InMemoryLogRecordExporter,
  LoggerProvider,
  SimpleLogRecordProcessor,
} from '@opentelemetry/sdk-logs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { meteredJournal } from '../../../src/adapters/otel/index.ts';
import { JournalError, type JournalEntry } from '../../../src/entries/journal.ts';
import {
  ConfigurationError,
  defineSubagent,
  defineTool,
  memoryJournal,
  TextSession,
  type Journal,
} from '../../../src/index.ts';
import {
  scriptedModel,
  simulatedEnvironment,
  type ScriptedStep,
  type SimulatedEnvironment,
} from '../../../src/testing/index.ts';
import { entry, withEvent } from '../../../src/testing/journal-conformance/case.ts';
import { world } from '../../support/crashes.ts';
import { askingOrder, programLife } from '../../support/program-life.ts';
import { call } from './support/call.ts';
import { ride, storeOf } from './support/ride.ts';
import { apiError } from '../../support/api-error.ts';

const payer = defineTool({
  name: 'payer',
  description: 'Pays',
  parameters: z.object({}),
  execution: 'background',
});

function sdk() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter });
  const meterProvider = new SdkMeterProvider({ readers: [reader] });
  onTestFinished(() => meterProvider.shutdown());
  /** Returns each measurement with its attributes in order and its sum or value. */
  const measured = async (): Promise<Readonly<Record<string, readonly string[]>>> => {
    exporter.reset();
    await reader.forceFlush();
    const all = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    return Object.fromEntries(
      all
        .flatMap((scope) => scope.metrics)
        .map(({ descriptor, dataPoints }) => [
          descriptor.name,
          (dataPoints as DataPoint<number | Histogram>[]).map(({ attributes, value }) => {
            const of = typeof value === 'number' ? `${value}` : `${value.count}: ${value.sum}`;
            return [...Object.values(attributes), of].join(' ');
          }),
        ]),
    );
  };
  return { meterProvider, measured };
}

test('measures a conversation with a question, an approval and a late result (METERED-JOURNAL-1)', async () => {
  const { meterProvider, measured } = sdk();
  const environment = simulatedEnvironment();
  const { journal } = storeOf();
  const answers: (() => void)[] = [];
  const session = ride({
    journal: meteredJournal(journal, { meterProvider }),
    environment,
    price: () => 0.5,
    thinks: () => new Promise((answer) => answers.push(answer)),
  });
  await session.start();
  await session.sendText('a ride, please');
  const told = session.nextResult();
  for (const count of [1, 2]) {
    while (answers.length < count) await environment.advance(10);
    await environment.advance(3_000);
    expect(await measured()).toMatchObject({
      'offstage.subagent.active': ['0'],
      'offstage.subagent.parked': ['1'],
    });
    answers.at(-1)?.();
  }
  while (session.store.getSnapshot().context.subagents.some(({ endedAt }) => endedAt === null))
    await environment.advance(10);
  await environment.advance(1_000);
  await told;
  const all = await measured();
  await session.close();
  expect(all).toMatchObject({
    'gen_ai.client.inference.usage.input_tokens': [
      'lead lead offstage scripted chat unknown 30',
      'ride_booker ride_booker offstage scripted chat unknown 30',
    ],
    'gen_ai.client.inference.usage.output_tokens': [
      'lead lead offstage scripted chat unknown 15',
      'ride_booker ride_booker offstage scripted chat unknown 15',
    ],
    'gen_ai.client.inference.operation.input_tokens': [
      'lead lead offstage scripted chat 3: 30',
      'ride_booker ride_booker offstage scripted chat 3: 30',
    ],
    'gen_ai.client.inference.operation.output_tokens': [
      'lead lead offstage scripted chat 3: 15',
      'ride_booker ride_booker offstage scripted chat 3: 15',
    ],
    'offstage.cost': [
      'lead lead offstage scripted 1.5',
      'ride_booker ride_booker offstage scripted 1.5',
    ],
    'offstage.question.wait': [
      expect.stringMatching(/^question answered 1: 3/),
      expect.stringMatching(/^approval answered 1: 3/),
    ],
    'offstage.subagent.active': ['0'],
    'offstage.subagent.parked': ['0'],
  });
  expect(all['offstage.subagent.duration']?.[0]).toMatch(/^ride_booker completed 1: /);
  expect(all['offstage.time_to_heard']).toHaveLength(1);
});

test('times each model and tool call once, and records the code of a failed call', async () => {
  const { meterProvider, measured } = sdk();
  const environment = simulatedEnvironment();
  const limited = apiError(429, 'Slow down');
  const failed = new Set<string>();
  /** Each agent's first call fails, and each call takes a second. */
  const limitedOnce = async (who: string, step: ScriptedStep): Promise<ScriptedStep> => {
    await new Promise<void>((resolve) => environment.scheduler.schedule(resolve, 1_000));
    if (failed.has(who)) return step;
    failed.add(who);
    return { error: limited };
  };
  const waiting = (ms: number) => ({
    description: 'Takes its time',
    inputSchema: z.object({}),
    execute: async () => {
      await new Promise<void>((resolve) => environment.scheduler.schedule(resolve, ms));
      if (ms > 2_000) throw new Error('Too late');
      return 'done';
    },
  });
  const session = new TextSession({
    environment,
    journal: meteredJournal(memoryJournal(), { meterProvider }),
    model: scriptedModel({
      agents: {
        payer: ({ results }) =>
          limitedOnce(
            'payer',
            results.length > 0
              ? { text: 'Paid.' }
              : { calls: ['quick', 'slow'].map((name) => ({ name, input: {} })) },
          ),
      },
      otherwise: ({ results, user }) =>
        limitedOnce(
          'lead',
          results.length > 0 || user !== 'pay'
            ? { text: 'Done.' }
            : { calls: ['payer', 'look'].map((name) => ({ name, input: {} })) },
        ),
    }),
    agents: [
      {
        name: 'lead',
        instructions: 'You talk.',
        tools: [
          payer,
          defineTool({
            name: 'look',
            description: 'Looks something up',
            parameters: z.object({}),
            execute: waiting(500).execute,
          }),
        ],
      },
    ],
    subagentConfigs: {
      payer: defineSubagent({
        name: 'payer',
        instructions: 'You pay.',
        tools: { quick: waiting(250), slow: waiting(3_000) },
      }),
    },
  });
  session.parts.subscribe(() => {});
  await session.start();
  await session.sendText('pay');
  await environment.advance(60_000);
  await session.close();
  const all = await measured();
  const durations = (name: string) => [...(all[name] ?? [])].toSorted();
  expect(durations('gen_ai.client.inference.duration')).toEqual([
    'lead lead offstage scripted chat 3: 3',
    'lead lead offstage scripted chat RATE_LIMITED 1: 1',
    'payer payer offstage scripted chat 2: 2',
    'payer payer offstage scripted chat RATE_LIMITED 1: 1',
  ]);
  expect(durations('gen_ai.execute_tool.duration')).toEqual([
    'lead lead execute_tool look function 1: 0.5',
    'payer payer execute_tool quick function 1: 0.25',
    'payer payer execute_tool slow function FAILED 1: 3',
  ]);
  expect(all['offstage.model.failures']).toBeUndefined();
});

test('measures only new entries after a crash, but counts the time before the crash (METERED-JOURNAL-1)', async () => {
  const environment = simulatedEnvironment();
  const { journal, kept } = storeOf();
  const stopped = Promise.withResolvers<void>();
  const first = ride({
    journal,
    environment,
    thinks: () => {
      stopped.resolve();
      return new Promise<never>(() => {});
    },
  });
  await first.start();
  await first.sendText('a ride, please');
  for (let waits = 0; waits < 5; waits += 1) await environment.advance(100);
  await stopped.promise;
  const before = kept.length;

  const { meterProvider, measured } = sdk();
  const later = simulatedEnvironment();
  await later.advance(60_000);
  const second = ride({
    journal: meteredJournal(storeOf(kept.slice(0, before)).journal, { meterProvider }),
    environment: later,
  });
  await second.start();
  for (let waits = 0; waits < 20; waits += 1) await later.advance(1_000);
  const all = await measured();
  await second.close();
  // The process that died had either measured the subagent's first step or lost it.
  expect(all['gen_ai.client.inference.operation.input_tokens']).toEqual([
    'ride_booker ride_booker offstage scripted chat 2: 20',
    'lead lead offstage scripted chat 1: 10',
  ]);
  const [asked] = all['offstage.question.wait'] ?? [];
  expect(Number(asked?.split(': ')[1])).toBeGreaterThan(50);
});

test('counts subagents at any depth until they end, even if no call waits for them', async () => {
  const { meterProvider, measured } = sdk();
  const metered = meteredJournal(storeOf().journal, { meterProvider });
  let seq = 0;
  const happens = (
    unit: string,
    event: { readonly type: string; readonly [name: string]: unknown },
  ) => metered.append(withEvent(event, { unit, seq: (seq += 1), scope: 's' }));
  const spawned = (unit: string, callId: string | null, parentId: string | null) =>
    happens(unit, { type: 'subagent.spawned', name: unit, callId, parentId });
  const active = async () => (await measured())['offstage.subagent.active'];
  await spawned('a', 'call_1', null);
  await spawned('b', 'call_2', 'a');
  await spawned('c', 'call_3', 'b');
  await spawned('d', null, 'a');
  expect(await active()).toEqual(['4']);
  await happens('d', { type: 'subagent.cancel' });
  await happens('c', { type: 'subagent.cancel' });
  // If a call waits for a subagent, the subagent has ended when the call has.
  expect(await active()).toEqual(['3']);
  await happens('a', { type: 'tool.settled', callId: 'call_2', outcome: { status: 'error' } });
  expect(await active()).toEqual(['1']);
  const durations = (await measured())['offstage.subagent.duration'] ?? [];
  expect(durations.map((line) => line.split(' ').slice(0, 2).join(' ')).toSorted()).toEqual([
    'b failed',
    'c failed',
    'd cancelled',
  ]);
});

test('measures a subagent whose first entries were trimmed, but not in a reader (METERED-JOURNAL-1, -5)', async () => {
  const { measured, meterProvider } = sdk();
  const of = world({
    snapshots: { afterEntries: 1, trim: true },
    wraps: (journal) => meteredJournal(journal, { meterProvider }),
  });
  const order = { onQuestion: () => ({ text: 'comfort' }) };
  const first = programLife(of, askingOrder);
  await first.service.recover();
  const id = first.wanted();
  await of.environment.advance(1_000);
  first.kill();
  const after = sdk();
  const kept = memoryJournal();
  for (const each of of.entries) kept.append(each);
  // An inspector in another process.
  const reading = meteredJournal(kept, { meterProvider: after.meterProvider });
  await reading.read({ scope: 'orders' });
  expect(of.entries.map(({ event }) => event.type)).toEqual(['service.snapshot']);
  expect((await after.measured())['offstage.subagent.parked']).toEqual(['0']);
  const [snapshot] = of.entries;
  const next = { scope: 'orders', unit: 'orders', seq: (snapshot?.seq ?? 0) + 1 };
  await reading.append(withEvent({ type: 'service.recovered' }, next));
  expect((await after.measured())['offstage.subagent.parked']).toEqual(['1']);
  const resumed = programLife(of, askingOrder, order);
  await resumed.service.recover();
  await of.environment.advance(5_000);
  expect(await resumed.resultOf(id)).toContain('Booked');
  const found = await measured();
  expect(found['gen_ai.client.inference.usage.input_tokens']).toEqual([
    'order order offstage scripted chat unknown 20',
  ]);
  expect(found['offstage.subagent.duration']).toEqual(['order completed 1: 1']);
  await resumed.close();
});

test('counts the cost of a subtree at its root (METERED-JOURNAL-1)', async () => {
  const { meterProvider, measured } = sdk();
  const journal = meteredJournal(memoryJournal(), { meterProvider });
  const add = (unit: string, event: Parameters<typeof withEvent>[0], seq: number): void =>
    void journal.append(withEvent(event, { unit, seq }));
  const used = (cost: number) => ({
    type: 'model.responded',
    step: 1,
    calls: [{ callId: 'c', kind: 'delegation' }],
    response: {
      usage: { cost, cachedInputTokens: 4, cacheWriteTokens: 3, reasoningTokens: 2 },
      calls: [],
    },
  });
  for (const [unit, parentId] of [
    ['a', null],
    ['b', 'a'],
    ['c', 'b'],
    ['d', null],
  ] as const)
    add(unit, { type: 'subagent.spawned', name: unit, parentId, callId: `${unit}1` }, 1);
  for (const [unit, cost] of [
    ['a', 1],
    ['b', 10],
    ['c', 100],
    ['d', 1000],
  ] as const)
    add(unit, used(cost), 2);
  const all = await measured();
  expect(all['offstage.cost']).toEqual(['a a 1', 'b a 10', 'c a 100', 'd d 1000']);
  const tokens = 'gen_ai.client.inference.usage';
  expect(all[`${tokens}.cache_read.input_tokens`]?.[1]).toBe('b a chat unknown 4');
  expect(all[`${tokens}.cache_write.input_tokens`]?.[1]).toBe('b a chat unknown 3');
  expect(all[`${tokens}.reasoning.output_tokens`]?.[1]).toBe('b a chat unknown 2');
});

test("separates a voice model's audio tokens from other tokens", async () => {
  const { meterProvider, measured } = sdk();
  const journal = meteredJournal(memoryJournal(), { meterProvider });
  const usage = { inputTokens: 10, outputTokens: 3, audioInputTokens: 8, audioOutputTokens: 3 };
  const event = { type: 'usage.reported', agentName: 'lead', usage: { ...usage, cost: 2 } };
  void journal.append(withEvent(event, { unit: 'ses', seq: 1 }));
  const all = await measured();
  const tokens = 'gen_ai.client.inference.usage';
  expect(all[`${tokens}.input_tokens`]).toEqual([
    'lead lead chat audio 8',
    'lead lead chat unknown 2',
  ]);
  expect(all[`${tokens}.output_tokens`]).toEqual(['lead lead chat audio 3']);
  expect(all['offstage.cost']).toEqual(['lead lead 2']);
});

test('counts and prices an answer that was rejected as unusable', async () => {
  const { meterProvider, measured } = sdk();
  const journal = meteredJournal(memoryJournal(), { meterProvider });
  const [spawned, failed] = [
    { type: 'subagent.spawned', name: 'rides' },
    {
      type: 'model.failed',
      step: 1,
      error: { code: 'EMPTY_RESPONSE' },
      response: {
        text: '',
        usage: { inputTokens: 7, outputTokens: 2, cost: 0.5 },
        model: { provider: 'google.vertex.chat', modelId: 'gemini-4' },
      },
    },
  ];
  await journal.append(withEvent(spawned, { seq: 1, unit: 'sub_1' }));
  await journal.append(withEvent(failed, { seq: 2, unit: 'sub_1' }));
  expect(await measured()).toMatchObject({
    'gen_ai.client.inference.usage.input_tokens': [
      'rides rides gcp.vertex_ai gemini-4 chat unknown 7',
    ],
    'offstage.cost': ['rides rides gcp.vertex_ai gemini-4 0.5'],
  });
});

test('protects the journal from faults in the SDK (WATCHED-JOURNAL-2)', async () => {
  const meterProvider = {
    getMeter() {
      throw new Error('broken');
    },
  } satisfies MeterProvider;
  const { journal, kept } = storeOf();
  const metered = meteredJournal(journal, { meterProvider });
  await metered.append(entry(1));
  expect(kept).toHaveLength(1);
});

test('starts counting once a provider is registered (METERED-JOURNAL-3)', async () => {
  const { journal } = storeOf();
  const metered = meteredJournal(journal);
  const failed = (seq: number) =>
    withEvent({ type: 'model.failed', error: { code: 'OVERLOADED' } }, { seq });
  void metered.append(failed(1));
  const { meterProvider, measured } = sdk();
  metrics.setGlobalMeterProvider(meterProvider);
  onTestFinished(() => metrics.disable());
  void metered.append(failed(2));
  // An event in another form is passed on.
  void metered.append(withEvent({ type: 'question.asked', requestId: 7 }, { seq: 3 }));
  expect(await measured()).toMatchObject({ 'offstage.model.failures': ['OVERLOADED 1'] });
});

test.each([
  [{ meterProvider: {} }, 'a MeterProvider'],
  [{ provider: 1 }, 'provider'],
])('refuses %o, and names the invalid option', (options, named) => {
  const make = (): unknown => meteredJournal(memoryJournal(), options as never);
  expect(make).toThrow(ConfigurationError);
  expect(make).toThrow(named);
});

/** Returns the log records without their trace. */
function logs() {
  const exporter = new InMemoryLogRecordExporter();
  const loggerProvider = new LoggerProvider({
    processors: [new SimpleLogRecordProcessor({ exporter })],
  });
  return {
    loggerProvider,
    written: () =>
      exporter.getFinishedLogRecords().map(({ eventName, severityText, attributes }) => ({
        eventName,
        severityText,
        ...attributes,
      })),
  };
}

test('measures first audio, interruptions, attempts and waiting deliveries in a call (METERED-JOURNAL-1)', async () => {
  const { meterProvider, measured } = sdk();
  const { loggerProvider, written } = logs();
  const environment = simulatedEnvironment();
  const { journal, kept } = storeOf();
  const talk = call(
    meteredJournal(journal, { meterProvider, loggerProvider, environment }),
    environment,
  );
  await talk.start();
  await talk.asks();
  const spoken = await talk.untilTold();
  expect(await measured()).toMatchObject({
    'offstage.time_to_first_audio': ['1: 0.4'],
    'offstage.outbox.depth': ['1'],
    // The item stopped after 3.4 s of 6.8 s.
    'offstage.outbox.age': ['3.4'],
  });
  await talk.breaksIn(spoken);
  expect(await measured()).toMatchObject({
    'offstage.barge_in.silence': [expect.stringMatching(/^1: /)],
    'offstage.delivery.interruptions': ['1'],
  });
  await environment.advance(1_000);
  await talk.plays('There were 42 sales.', 2_000);
  expect(await measured()).toMatchObject({
    'offstage.time_to_heard': [expect.stringMatching(/^1: 8/)],
    'offstage.delivery.attempts': ['1: 2'],
    'offstage.outbox.depth': ['0'],
    'offstage.outbox.age': ['0'],
    'offstage.journal.append': [expect.stringMatching(new RegExp(`^${kept.length}: `))],
  });
  const of = { 'gen_ai.conversation.id': 'ses_call', 'offstage.delivery.id': 'call_1' };
  expect(written()).toEqual([
    { eventName: 'offstage.delivery.offered', severityText: 'INFO', ...of, 'offstage.attempt': 1 },
    { eventName: 'offstage.delivery.offered', severityText: 'INFO', ...of, 'offstage.attempt': 2 },
    { eventName: 'offstage.delivery.heard', severityText: 'INFO', ...of, 'offstage.attempt': 2 },
  ]);
});

test('logs questions that open and close, and a lost lease, without any text', async () => {
  const { loggerProvider, written } = logs();
  const { journal } = storeOf();
  const session = ride({ journal: meteredJournal(journal, { loggerProvider }) });
  await session.start();
  await session.sendText('a ride, please');
  await session.nextResult();
  await session.close();
  const questions = written().filter(({ eventName }) => eventName?.startsWith('offstage.question'));
  expect(questions).toMatchObject([
    { eventName: 'offstage.question.opened', 'offstage.question.kind': 'question' },
    { eventName: 'offstage.question.closed', 'offstage.outcome': 'answered' },
    { eventName: 'offstage.question.opened', 'offstage.question.kind': 'approval' },
    { eventName: 'offstage.question.closed', 'offstage.outcome': 'answered' },
  ]);
  for (const word of ['please', 'Window', 'Booked'])
    expect(JSON.stringify(written())).not.toContain(word);

  for (const how of ['throws', 'rejects'] as const) {
    const fenced = logs();
    const lost = new JournalError('FENCED', 'another process has it', { retryable: false });
    const refusing = meteredJournal(
      {
        read: () => [],
        append() {
          if (how === 'throws') throw lost;
          return Promise.reject(lost);
        },
      },
      { loggerProvider: fenced.loggerProvider },
    );
    await expect((async () => refusing.append(entry(1)))()).rejects.toBe(lost);
    expect(fenced.written()).toEqual([
      {
        eventName: 'offstage.lease.lost',
        severityText: 'ERROR',
        'gen_ai.conversation.id': 'scope',
      },
    ]);
  }
});

/** Lets time pass in an environment until a promise settles. */
const untilIn =
  (environment: SimulatedEnvironment) =>
  async (promise: Promise<unknown>): Promise<void> => {
    let isPending = true;
    void promise.finally(() => (isPending = false)).catch(() => {});
    while (isPending) await environment.advance(100);
    await promise;
  };

describe('log records for an operator (METERED-JOURNAL-4)', () => {
  /** A session whose subagent makes a payment and whose lead agent looks something up, until the process is killed. */
  function paying(journal: Journal) {
    const environment = simulatedEnvironment();
    const { promise: isPaying, resolve: pays } = Promise.withResolvers<void>();
    const { promise: isLooking, resolve: looks } = Promise.withResolvers<void>();
    const session = new TextSession({
      sessionId: 'ses_pay',
      journal,
      environment,
      model: scriptedModel({
        agents: {
          payer: ({ results }) =>
            results.length > 0
              ? { text: 'Done.' }
              : { calls: [{ name: 'pay', input: { to: 'the secret shop' } }] },
        },
        otherwise: ({ results }) =>
          results.length > 0
            ? { text: 'On it.' }
            : {
                calls: [
                  { name: 'payer', input: {} },
                  { name: 'look', input: {} },
                ],
              },
      }),
      agents: [
        {
          name: 'lead',
          instructions: 'You talk.',
          tools: [
            payer,
            defineTool({
              name: 'look',
              description: 'Looks',
              parameters: z.object({}),
              execute: () => {
                looks();
                return new Promise<never>(() => {});
              },
            }),
          ],
        },
      ],
      subagentConfigs: {
        payer: defineSubagent({
          name: 'payer',
          instructions: 'You pay.',
          tools: {
            pay: {
              description: 'Pays',
              inputSchema: z.object({ to: z.string() }),
              execute: () => {
                pays();
                return new Promise<never>(() => {});
              },
            },
          },
        }),
      },
    });
    const begun = Promise.all([isPaying, isLooking]);
    return { session, begun, until: untilIn(environment) };
  }

  test('report a call of a subagent or of the lead agent as in doubt after a crash', async () => {
    const first = storeOf();
    const killed = paying(first.journal);
    await killed.until(killed.session.start());
    void killed.session.sendText('pay');
    await killed.until(killed.begun);
    const earlier = JSON.parse(JSON.stringify(first.kept)) as JournalEntry[];
    const { loggerProvider, written } = logs();
    const next = paying(meteredJournal(storeOf(earlier).journal, { loggerProvider }));
    await next.until(next.session.start());
    await next.until(next.session.idle());
    await next.until(next.session.close());
    const doubts = written().filter(({ eventName }) => eventName === 'offstage.call_in_doubt');
    const of = { severityText: 'ERROR', 'gen_ai.conversation.id': 'ses_pay' };
    expect(doubts).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          ...of,
          'gen_ai.tool.name': 'look',
          'gen_ai.tool.call.id': 'call_2',
        }),
        expect.objectContaining({
          ...of,
          'gen_ai.tool.name': 'pay',
          'gen_ai.agent.name': 'payer',
          'offstage.subagent.id': expect.stringMatching(/^sub_/),
        }),
      ]),
    );
    expect(doubts).toHaveLength(2);
    expect(written().map(({ eventName }) => eventName)).toContain('offstage.session.recovered');
    expect(JSON.stringify(written())).not.toContain('secret');
    await killed.until(killed.session.close());
  });

  const error = { code: 'DOWN', message: 'a secret word', retryable: true };
  test.each([
    [{ type: 'transport.lost', error, retryInMs: 100 }, 'offstage.connection.lost', 'WARN', 'DOWN'],
    [
      { type: 'transport.lost', error, retryInMs: null },
      'offstage.connection.lost',
      'ERROR',
      'DOWN',
    ],
    [{ type: 'model.failed', step: 1, error }, 'offstage.model.failed', 'WARN', 'DOWN'],
    [
      { type: 'budget.exhausted', graceful: true, message: 'a secret word' },
      'offstage.budget.exhausted',
      'WARN',
    ],
    [{ type: 'delivery.failed', generation: 1 }, 'offstage.delivery.failed', 'WARN'],
    [
      { type: 'entry.set_aside', seq: 1, event: 'user.said', reason: 'a secret word' },
      'offstage.entry.set_aside',
      'ERROR',
    ],
    [
      { type: 'session.lost', seq: 1, event: 'user.said', reason: 'a secret word' },
      'offstage.session.lost',
      'ERROR',
    ],
  ])('report %o', (event, name, severity, code?: string) => {
    const { loggerProvider, written } = logs();
    void meteredJournal(memoryJournal(), { loggerProvider }).append(withEvent(event, { seq: 1 }));
    expect(written()).toEqual([
      expect.objectContaining({
        eventName: name,
        severityText: severity,
        'gen_ai.conversation.id': 'scope',
        ...(code !== undefined && { 'error.type': code }),
      }),
    ]);
    expect(JSON.stringify(written())).not.toContain('secret');
  });

  test('report a failed subagent, and a journal that cannot be written', async () => {
    const { loggerProvider, written } = logs();
    const environment = simulatedEnvironment();
    const until = untilIn(environment);
    const session = new TextSession({
      sessionId: 'ses_fail',
      journal: meteredJournal(memoryJournal(), { loggerProvider }),
      environment,
      model: scriptedModel({
        agents: { payer: () => ({ calls: [{ name: 'pay', input: {} }] }) },
        otherwise: ({ results }) =>
          results.length > 0 ? { text: 'On it.' } : { calls: [{ name: 'payer', input: {} }] },
      }),
      agents: [
        {
          name: 'lead',
          instructions: 'You talk.',
          tools: [payer],
        },
      ],
      subagentConfigs: {
        payer: defineSubagent({
          name: 'payer',
          instructions: 'You pay.',
          maxSteps: 1,
          tools: { pay: { description: 'Pays', inputSchema: z.object({}), execute: () => 'x' } },
        }),
      },
    });
    await until(session.start());
    await until(session.sendText('pay'));
    await until(session.idle());
    await until(session.close());
    expect(written().filter(({ severityText }) => severityText !== 'INFO')).toEqual([
      {
        eventName: 'offstage.subagent.failed',
        severityText: 'WARN',
        'gen_ai.conversation.id': 'ses_fail',
        'gen_ai.agent.name': 'payer',
        'offstage.subagent.id': expect.stringMatching(/^sub_/),
        'offstage.outcome': 'failed',
        'error.type': 'STEP_LIMIT',
      },
      // The lead agent is asked to deliver the result, but makes calls instead in each of three attempts.
      ...Array.from({ length: 3 }, () => ({
        eventName: 'offstage.model.failed',
        severityText: 'WARN',
        'gen_ai.conversation.id': 'ses_fail',
        'gen_ai.agent.name': 'lead',
        'error.type': 'TOOL_CHOICE_VIOLATION',
      })),
    ]);

    const full = logs();
    const down = new JournalError('JOURNAL_UNREACHABLE', 'a secret word', { retryable: true });
    const refusing = meteredJournal(
      { read: () => [], append: () => Promise.reject(down) },
      { loggerProvider: full.loggerProvider },
    );
    await expect((async () => refusing.append(entry(1)))()).rejects.toBe(down);
    expect(full.written()).toEqual([
      {
        eventName: 'offstage.journal.failed',
        severityText: 'ERROR',
        'gen_ai.conversation.id': 'scope',
        'error.type': 'JOURNAL_UNREACHABLE',
      },
    ]);
  });
});
