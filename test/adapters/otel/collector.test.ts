// The signals that conversations send to an OTLP receiver through the official SDK and its exporters: by text, by
// voice, after a crash, and for failed work. A receiver that is down, is slow or refuses signals does not delay
// anything. `OTEL_COLLECTOR` names a build of the OpenTelemetry Collector with its `otlp` receiver and its `otlp_http`
// exporter; if it is set, all signals also pass through the Collector.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { meteredJournal, tracedJournal } from '../../../src/adapters/otel/index.ts';
import type { JournalEntry } from '../../../src/entries/journal.ts';
import type { Journal } from '../../../src/index.ts';
import { simulatedEnvironment, type SimulatedEnvironment } from '../../../src/testing/index.ts';
import { simpleTool } from '../../support/subagent-runs.ts';
import { textTalk } from '../../support/text-talk.ts';
import { call } from './support/call.ts';
import { ride, storeOf } from './support/ride.ts';
import { attributesOf, exportingTo, receiver, type Receiver } from './support/receiver.ts';

const { version } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { version: string };

/** What users, models, tools and the app say, which no signal may contain. */
const WORDS = [
  'please',
  'Window',
  'window',
  'charged',
  'Booked',
  'On it',
  'You book rides',
  'deposit',
  '42 sales',
  'what time is it',
  'secret-of-the-tool',
  'secret-of-the-model',
  'You said',
];

type Sdk = ReturnType<typeof exportingTo>;

function watched(sdk: Sdk, environment: SimulatedEnvironment, kept = storeOf()) {
  const { tracerProvider, meterProvider, loggerProvider } = sdk;
  const metered = meteredJournal(kept.journal, { meterProvider, loggerProvider, environment });
  return tracedJournal(metered, { tracerProvider });
}

async function rides(journal: Journal): Promise<void> {
  const session = ride({ journal, price: () => 0.25 });
  await session.start();
  await session.sendText('a ride, please');
  await session.nextResult();
  await session.close();
}

/** The process dies during a model call, and another one continues. */
async function ridesWithACrash(sdk: Sdk): Promise<void> {
  const environment = simulatedEnvironment();
  const first = storeOf();
  const { promise, resolve } = Promise.withResolvers<void>();
  const killed = ride({ journal: watched(sdk, environment, first), hangs: resolve });
  await killed.start();
  await killed.sendText('a ride, please');
  await promise;
  const earlier = JSON.parse(JSON.stringify(first.kept)) as JournalEntry[];
  const session = ride({ journal: watched(sdk, environment, storeOf(earlier)) });
  await session.start();
  await session.nextResult();
  await session.close();
  await killed.close();
}

async function talksByVoice(sdk: Sdk): Promise<void> {
  const environment = simulatedEnvironment();
  const talk = call(watched(sdk, environment), environment);
  await talk.start();
  await talk.asks();
  await talk.breaksIn(await talk.untilTold());
  await environment.advance(1_000);
  await talk.plays('There were 42 sales.', 2_000);
  await talk.session.close();
}

/** A subagent's tool throws, and then its model does. */
async function fails(sdk: Sdk): Promise<void> {
  const environment = simulatedEnvironment();
  const talk = textTalk({
    environment,
    sessionId: 'ses_fails',
    journal: watched(sdk, environment),
    subagents: {
      report: {
        script: ({ prompt }) => {
          if (prompt.some(({ role }) => role === 'tool')) throw new Error('secret-of-the-model');
          return { calls: [{ name: 'look', input: {} }] };
        },
        config: {
          retry: { maxAttempts: 1 },
          tools: {
            look: simpleTool(() => Promise.reject(new Error('secret-of-the-tool'))),
          },
        },
      },
    },
  });
  await talk.start();
  await talk.type('use report');
  await environment.advance(60_000);
  await talk.close();
}

const stories = {
  'by text': (sdk: Sdk) => rides(watched(sdk, simulatedEnvironment())),
  'by voice': talksByVoice,
  'after a crash': ridesWithACrash,
  'where a tool and a model fail': fails,
};

/** Starts the Collector, which passes its input on; null if there is none. */
async function collectorBefore(to: Receiver): Promise<string | null> {
  const { OTEL_COLLECTOR: program } = process.env;
  if (program === undefined) return null;
  const probe = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => probe.once('listening', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  const signals = ['traces', 'metrics', 'logs'];
  const pipeline = { receivers: ['otlp'], exporters: ['otlp_http'] };
  const config = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: {
      otlp_http: {
        endpoint: to.url,
        encoding: 'json',
        compression: 'none',
        sending_queue: { enabled: false },
      },
    },
    service: {
      telemetry: { metrics: { level: 'none' } },
      pipelines: Object.fromEntries(signals.map((signal) => [signal, pipeline])),
    },
  };
  const collector = spawn(program, ['--config', `yaml:${JSON.stringify(config)}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void collector.kill('SIGKILL'));
  let said = '';
  await new Promise<void>((resolve, reject) => {
    collector.once('exit', () => reject(new Error(`The collector has ended: ${said}`)));
    collector.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes('Everything is ready')) resolve();
    });
  });
  return `http://127.0.0.1:${port}`;
}

/** Plays a story and flushes the app's signals. */
async function played(to: Receiver, url: string, form: 'json' | 'protobuf', story: string) {
  const sdk = exportingTo(url, form);
  await stories[story as keyof typeof stories](sdk);
  await sdk.forceFlush();
  await sdk.shutdown();
  return {
    spans: to.spans().map((span) => ({ ...span, attributes: attributesOf(span) })),
    logs: to.logs().map((log) => ({ ...log, attributes: attributesOf(log) })),
    metrics: to.metrics().map((metric) => {
      const { sum, gauge, histogram } = metric;
      const points = (sum ?? gauge ?? histogram)?.dataPoints ?? [];
      return { ...metric, points: points.map((point) => attributesOf(point)) };
    }),
  };
}

/** The attributes that a metric may have: names, kinds and codes, whose number does not grow with the conversations. */
const DIMENSIONS = [
  'gen_ai.agent.name',
  'gen_ai.operation.name',
  'gen_ai.provider.name',
  'gen_ai.request.model',
  'gen_ai.token.modality',
  'gen_ai.tool.name',
  'gen_ai.tool.type',
  'error.type',
  'offstage.root_agent.name',
  'offstage.outcome',
  'offstage.question.kind',
];

function checkAll({ spans, logs, metrics }: Awaited<ReturnType<typeof played>>): void {
  expect(spans.length).toBeGreaterThan(4);
  const traceId = spans[0]?.traceId;
  const conversation = spans[0]?.attributes['gen_ai.conversation.id'];
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  for (const span of spans) {
    const { attributes, name, kind, status, scope, links = [], parentSpanId = '' } = span;
    expect(scope).toEqual({ name: 'offstage', version });
    expect(span.traceId).toBe(traceId);
    expect(attributes['gen_ai.conversation.id']).toBe(conversation);
    expect(attributes['session.id']).toBe(conversation);
    expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano)).toBe(true);
    if (parentSpanId !== '') {
      const above = byId.get(parentSpanId);
      if (above)
        expect(BigInt(above.startTimeUnixNano) <= BigInt(span.startTimeUnixNano)).toBe(true);
    }
    for (const link of links) {
      expect(link.traceId).toBe(traceId);
      expect(Object.keys(attributesOf(link))).toEqual(['offstage.link']);
    }
    expect(status?.code ?? 0).toBe('error.type' in attributes ? 2 : 0);
    const operation = attributes['gen_ai.operation.name'];
    if (operation === undefined) expect(['offstage.session', 'user_input']).toContain(name);
    else expect(name.startsWith(String(operation))).toBe(true);
    if (operation === 'chat') expect(kind).toBe(3);
    // A provider that reports no counts does not name its model.
    if (attributes['gen_ai.usage.input_tokens'] !== undefined) {
      expect(attributes).toMatchObject({
        'gen_ai.provider.name': 'offstage',
        'gen_ai.request.model': 'scripted',
      });
      expect(name).toBe('chat scripted');
    }
  }
  for (const log of logs) {
    expect([log.eventName, log.traceId]).toEqual([log.eventName, traceId]);
    expect(log.scope).toEqual({ name: 'offstage', version });
    expect(log.attributes['gen_ai.conversation.id']).toBe(conversation);
    expect(log.severityText).toMatch(/^(INFO|WARN|ERROR)$/);
  }
  expect(metrics.length).toBeGreaterThan(10);
  for (const { name, unit = '', description = '', scope, points } of metrics) {
    expect(scope).toEqual({ name: 'offstage', version });
    expect(description).not.toBe('');
    // A cost is in the app's currency.
    expect([name, unit === '']).toEqual([name, name === 'offstage.cost']);
    for (const point of points)
      expect(DIMENSIONS).toEqual(expect.arrayContaining(Object.keys(point)));
  }
}

describe.each(Object.keys(stories))('a conversation %s', (story) => {
  test.each(['json', 'protobuf'] as const)(
    'exports traces, metrics and logs without any text, as %s',
    async (form) => {
      const to = await receiver();
      const collector = await collectorBefore(to);
      const got = await played(to, collector ?? to.url, form, story);
      const paths = new Set(to.requests.map(({ path }) => path));
      expect([...paths].toSorted()).toEqual(['/v1/logs', '/v1/metrics', '/v1/traces']);
      // Both forms contain texts unchanged.
      for (const { body } of to.requests)
        expect(WORDS.filter((word) => body.includes(word))).toEqual([]);
      if (form === 'json' || collector !== null) checkAll(got);
      else expect(to.requests.every(({ type }) => type === 'application/x-protobuf')).toBe(true);
    },
  );
});

test('exports as many metric series after ten conversations as after two', async () => {
  const seriesOf = async (conversations: number): Promise<number> => {
    const to = await receiver();
    const sdk = exportingTo(to.url, 'json');
    for (let number = 0; number < conversations; number += 1) {
      await rides(watched(sdk, simulatedEnvironment()));
      await talksByVoice(sdk);
    }
    await sdk.forceFlush();
    await sdk.shutdown();
    return to
      .metrics()
      .reduce(
        (all, { sum, gauge, histogram }) =>
          all + ((sum ?? gauge ?? histogram)?.dataPoints.length ?? 0),
        0,
      );
  };
  expect(await seriesOf(10)).toBe(await seriesOf(2));
});

describe('a receiver with faults', () => {
  test('does not disturb the conversation when it is unreachable, but the SDK reports the failure', async () => {
    const to = await receiver();
    to.close();
    const sdk = exportingTo(to.url, 'json');
    await rides(watched(sdk, simulatedEnvironment()));
    const [flushed] = await Promise.allSettled([sdk.forceFlush()]);
    expect(flushed?.status).toBe('rejected');
  });

  test('does not delay conversations when it never answers', async () => {
    const to = await receiver();
    const held: (() => void)[] = [];
    const { promise: isAsked, resolve } = Promise.withResolvers<void>();
    to.answers((response) => {
      held.push(() => response.writeHead(200).end('{}'));
      resolve();
    });
    const sdk = exportingTo(to.url, 'json');
    await rides(watched(sdk, simulatedEnvironment()));
    const flushed = sdk.forceFlush();
    await isAsked;
    // The next export starts while the first batch is still being sent.
    await rides(watched(sdk, simulatedEnvironment()));
    expect(held.length).toBeGreaterThan(0);
    to.answers((response) => response.writeHead(200).end('{}'));
    for (const release of held) release();
    await flushed;
    await sdk.forceFlush();
    await sdk.shutdown();
    const roots = to.spans().filter(({ name }) => name === 'offstage.session');
    expect(roots).toHaveLength(2);
  });

  test.each([429, 503])('receives each span once if it first responds with %i', async (code) => {
    const to = await receiver();
    const refused = new Set<string>();
    to.answers((response, path) => {
      if (refused.has(path)) response.writeHead(200).end('{}');
      else response.writeHead(code, { 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }).end();
      refused.add(path);
    });
    const sdk = exportingTo(to.url, 'json');
    await rides(watched(sdk, simulatedEnvironment()));
    await sdk.forceFlush();
    await sdk.shutdown();
    const taken = to.spans();
    // The refused spans were sent twice.
    expect(taken.length).toBe(2 * new Set(taken.map(({ spanId }) => spanId)).size);
  });

  test('loses a batch when it responds with 500, but receives the next', async () => {
    const to = await receiver();
    to.answers((response) => response.writeHead(500).end());
    const sdk = exportingTo(to.url, 'json');
    await rides(watched(sdk, simulatedEnvironment()));
    const [flushed] = await Promise.allSettled([sdk.forceFlush()]);
    expect(flushed?.status).toBe('rejected');
    to.requests.length = 0;
    to.answers((response) => response.writeHead(200).end('{}'));
    await rides(watched(sdk, simulatedEnvironment()));
    await sdk.forceFlush();
    await sdk.shutdown();
    expect(to.spans().filter(({ name }) => name === 'offstage.session')).toHaveLength(1);
  });
});
