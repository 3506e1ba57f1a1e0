// TRACED-JOURNAL-6, MODEL-TELEMETRY-1 and -2, with the real `@ai-sdk/otel`, registered as in an app.

import { OpenTelemetry } from '@ai-sdk/otel';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { registerTelemetry } from 'ai';
import { afterEach, expect, test } from 'vitest';
import { meteredJournal, tracedJournal } from '../../../src/adapters/otel/index.ts';
import type { Journal } from '../../../src/actors/ports/journal.ts';
import { encryptedJournal } from '../../../src/adapters/encrypted-journal/index.ts';
import { redactingJournal } from '../../../src/actors/runtime/redacting-journal.ts';
import { memoryJournal } from '../../../src/index.ts';
import { ride, storeOf } from './support/ride.ts';

/** Creates the app's provider with the AI SDK's integration, which names spans by agent, as its docs recommend. */
function app() {
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  registerTelemetry(
    new OpenTelemetry({ tracer: tracerProvider.getTracer('ai'), agentSpanName: 'functionId' }),
  );
  return {
    tracerProvider,
    /** Returns the sorted names of the SDK's or Offstage's spans, and the ids of their traces. */
    spansOf(instrumentation: 'ai' | 'offstage') {
      const spans = exporter
        .getFinishedSpans()
        .filter(({ instrumentationScope }) => instrumentationScope.name === instrumentation);
      return {
        names: spans.map(({ name }) => name).toSorted(),
        agents: new Set(spans.map(({ attributes }) => attributes['gen_ai.agent.name'])),
        traces: new Set(spans.map((span) => span.spanContext().traceId)).size,
      };
    },
  };
}

async function rides(journal: Journal): Promise<void> {
  const session = ride({ journal });
  await session.start();
  await session.sendText('a ride, please');
  await session.nextResult();
  await session.close();
}

const agentsOf = (names: readonly string[]) =>
  names.filter((name) => name.startsWith('invoke_agent'));

afterEach(() => {
  globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = undefined;
});

test('writes a single trace without SDK spans if the journal is traced (TRACED-JOURNAL-6)', async () => {
  const { tracerProvider, spansOf } = app();
  await rides(tracedJournal(storeOf().journal, { tracerProvider }));
  expect(spansOf('ai').names).toEqual([]);
  const { names, traces } = spansOf('offstage');
  expect(traces).toBe(1);
  // Two turns of the lead agent, and three periods in which the subagent works.
  expect(agentsOf(names)).toEqual([
    'invoke_agent lead',
    'invoke_agent lead',
    'invoke_agent ride_booker',
    'invoke_agent ride_booker',
    'invoke_agent ride_booker',
  ]);
});

test('writes SDK spans named after the agent if no journal is traced (MODEL-TELEMETRY-2)', async () => {
  const { spansOf } = app();
  await rides(memoryJournal());
  expect(spansOf('offstage').names).toEqual([]);
  const { names, agents } = spansOf('ai');
  expect([...new Set(agentsOf(names))]).toEqual(['invoke_agent lead', 'invoke_agent ride_booker']);
  expect(agentsOf(names).filter((name) => name.endsWith('ride_booker'))).toHaveLength(3);
  expect(agents).toContain('lead');
  expect(agents).toContain('ride_booker');
});

test('writes both kinds of spans with `sdkSpans`', async () => {
  const { tracerProvider, spansOf } = app();
  await rides(tracedJournal(storeOf().journal, { tracerProvider, sdkSpans: true }));
  expect(agentsOf(spansOf('ai').names)).toContain('invoke_agent ride_booker');
  expect(agentsOf(spansOf('offstage').names)).toContain('invoke_agent ride_booker');
});

test("preserves the SDK's spans if the traced journal has no provider", async () => {
  const { spansOf } = app();
  await rides(tracedJournal(storeOf().journal));
  expect(agentsOf(spansOf('ai').names)).toContain('invoke_agent ride_booker');
});

test('passes every call to an integration without spans, even if traced (MODEL-TELEMETRY-1)', async () => {
  const { tracerProvider, spansOf } = app();
  const called: unknown[] = [];
  registerTelemetry({ onStart: (event) => void called.push(event.functionId) });
  await rides(tracedJournal(storeOf().journal, { tracerProvider }));
  expect(spansOf('ai').names).toEqual([]);
  expect(called.filter((name) => name === 'ride_booker')).toHaveLength(3);
  expect(called).toContain('lead');
});

test.each<[string, (journal: Journal) => Journal]>([
  ['meteredJournal', (journal) => meteredJournal(journal)],
  ['redactingJournal', (journal) => redactingJournal(journal)],
  ['encryptedJournal', (journal) => encryptedJournal(journal, { key: new Uint8Array(32) })],
])(
  'suppresses the spans of the SDK when the traced journal stands behind a %s',
  async (_, wrap) => {
    const { tracerProvider, spansOf } = app();
    await rides(wrap(tracedJournal(storeOf().journal, { tracerProvider })));
    expect(spansOf('ai').names).toEqual([]);
  },
);
