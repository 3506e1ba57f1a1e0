// TRACED-JOURNAL-1 to TRACED-JOURNAL-5, with the official SDK: the trace of a conversation, span by span.

import { SpanKind, trace, TraceFlags, type TracerProvider } from '@opentelemetry/api';
import { BasicTracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { expect, onTestFinished, test } from 'vitest';
import type { JournalEntry } from '../../../src/actors/ports/journal.ts';
import { tracedJournal } from '../../../src/adapters/otel/index.ts';
import { memoryJournal } from '../../../src/index.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';
import { call } from './support/call.ts';
import { ride, storeOf } from './support/ride.ts';
import { drawn, sdk } from './support/traces.ts';
import { entry, withEvent } from '../../../src/testing/journal-conformance/case.ts';

const traceIds = (spans: readonly ReadableSpan[]) =>
  new Set(spans.map((span) => span.spanContext().traceId));

test('writes a conversation with a question, an approval and a late result as one trace (TRACED-JOURNAL-1, -2)', async () => {
  const { exporter, tracerProvider } = sdk();
  const session = ride({ journal: tracedJournal(storeOf().journal, { tracerProvider }) });
  await session.start();
  await session.sendText('a ride, please');
  await session.nextResult();
  await session.close();
  const spans = exporter.getFinishedSpans();
  expect(traceIds(spans).size).toBe(1);
  expect(drawn(spans)).toMatchInlineSnapshot(`
    [
      "offstage.session",
      "  invoke_agent lead cause=user",
      "    execute_tool book_ride",
      "      invoke_agent ride_booker parked=waiting_for_input",
      "        chat scripted",
      "    chat scripted",
      "  invoke_agent ride_booker parked=waiting_for_input continues→invoke_agent ride_booker",
      "    chat scripted",
      "  invoke_agent ride_booker outcome=completed continues→invoke_agent ride_booker",
      "    execute_tool charge outcome=ok",
      "    chat scripted",
      "  invoke_agent lead cause=delivery heard=true delivers→invoke_agent ride_booker",
      "    chat scripted",
    ]
  `);
  const chats = spans.filter(({ name }) => name.startsWith('chat'));
  expect(chats.map(({ kind }) => kind)).toEqual(chats.map(() => SpanKind.CLIENT));
  for (const { attributes } of spans)
    expect(attributes).toMatchObject({
      'gen_ai.conversation.id': 'ses_ride',
      'session.id': 'ses_ride',
    });
  expect(chats[0]?.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.agent.name': 'ride_booker',
    'gen_ai.usage.input_tokens': 10,
    'gen_ai.response.finish_reasons': ['tool-calls'],
  });
  // The spans contain nothing that was said: no user message, no question and no result.
  const written = JSON.stringify(
    spans.map(({ name, attributes, events }) => [name, attributes, events]),
  );
  for (const word of ['please', 'Window', 'charged', 'Booked']) expect(written).not.toContain(word);
});

test('continues the trace of a conversation that was killed during a model call (TRACED-JOURNAL-1)', async () => {
  const before = sdk();
  const first = storeOf();
  const { promise, resolve } = Promise.withResolvers<void>();
  const killed = ride({
    journal: tracedJournal(first.journal, { tracerProvider: before.tracerProvider }),
    hangs: resolve,
  });
  await killed.start();
  await killed.sendText('a ride, please');
  await promise;
  // As after a SIGKILL, the next process has the journal but none of the objects.
  const earlier = JSON.parse(JSON.stringify(first.kept)) as JournalEntry[];
  const spansBefore = [...before.exporter.getFinishedSpans()];
  const after = sdk();
  const session = ride({
    journal: tracedJournal(storeOf(earlier).journal, { tracerProvider: after.tracerProvider }),
  });
  await session.start();
  await session.nextResult();
  await session.close();
  const spans = [...spansBefore, ...after.exporter.getFinishedSpans()];
  expect(traceIds(spans).size).toBe(1);
  expect(drawn(spans)).toMatchInlineSnapshot(`
    [
      "offstage.session",
      "  invoke_agent lead cause=user",
      "    execute_tool book_ride",
      "      invoke_agent ride_booker parked=waiting_for_input",
      "        chat scripted",
      "    chat scripted",
      "  invoke_agent ride_booker parked=waiting_for_input continues→lost",
      "    chat scripted continues→lost",
      "  invoke_agent ride_booker outcome=completed continues→invoke_agent ride_booker",
      "    execute_tool charge outcome=ok",
      "    chat scripted",
      "  invoke_agent lead cause=delivery heard=true delivers→invoke_agent ride_booker",
      "    chat scripted",
    ]
  `);
  // The call that the crash interrupted was repeated, with a link to the span that never ended.
  expect(JSON.stringify(earlier)).toContain('traceparents');
  await killed.close();
});

test('starts only one span for an append that is refused and retried (TRACED-JOURNAL-3)', async () => {
  const { exporter, tracerProvider } = sdk();
  const { journal } = storeOf();
  let refusals = 1;
  const appended: JournalEntry[] = [];
  const traced = tracedJournal(
    {
      ...journal,
      append(given) {
        appended.push(given);
        if (refusals-- > 0) return Promise.reject(new Error('the disk is full'));
        return journal.append(given);
      },
    },
    { tracerProvider },
  );
  const first = withEvent({ type: 'response.requested' }, { seq: 1 });
  await expect(traced.append(first)).rejects.toThrow('the disk is full');
  expect(exporter.getFinishedSpans()).toEqual([]);
  await traced.append(first);
  expect(appended[1]).toEqual(appended[0]);
  expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual(['offstage.session']);
});

test('keeps the session running despite faults in the SDK (WATCHED-JOURNAL-2)', async () => {
  const refuse = (): never => {
    throw new Error('no span');
  };
  const store = storeOf();
  const traced = tracedJournal(store.journal, {
    tracerProvider: {
      getTracer: () => ({ startSpan: refuse, startActiveSpan: refuse }),
    },
  });
  const given = entry(1);
  await traced.append(given);
  expect(store.kept).toEqual([given]);
});

test('passes on events unchanged without a provider (TRACED-JOURNAL-5)', async () => {
  const store = storeOf();
  const given = entry(1);
  await tracedJournal(store.journal).append(given);
  expect(store.kept[0]).toBe(given);
});

test('tries the SDK once without a provider, and uses a provider registered later (TRACED-JOURNAL-5)', async () => {
  const store = storeOf();
  let tried = 0;
  const deaf = {
    getTracer: () => {
      const { startSpan, startActiveSpan } = trace.getTracer('none');
      return {
        startActiveSpan,
        startSpan: (name: string) => {
          tried += 1;
          return startSpan(name);
        },
      };
    },
  } satisfies TracerProvider;
  const journal = tracedJournal(store.journal, { tracerProvider: deaf });
  for (let seq = 1; seq <= 100; seq += 1) await journal.append(entry(seq));
  expect([tried, store.kept.length]).toEqual([1, 100]);

  const unregistered = tracedJournal(storeOf().journal);
  await unregistered.append(entry(1));
  const { exporter, tracerProvider } = sdk();
  trace.setGlobalTracerProvider(tracerProvider);
  onTestFinished(() => trace.disable());
  await unregistered.append(entry(2));
  expect(exporter.getFinishedSpans().map(({ name }) => name)).toContain('offstage.session');
});

test('leaves an unsampled trace unsampled in the next process', async () => {
  const unsampled = new BasicTracerProvider({
    sampler: { shouldSample: () => ({ decision: 0 }), toString: () => 'none' },
  });
  const first = storeOf();
  await tracedJournal(first.journal, { tracerProvider: unsampled }).append(entry(1));
  const { exporter, tracerProvider } = sdk();
  const next = tracedJournal(storeOf(first.kept).journal, { tracerProvider });
  await next.read({ scope: first.kept[0]?.scope ?? '' });
  await next.append(withEvent({ type: 'response.requested' }, { seq: 2 }));
  await next.append(withEvent({ type: 'response.ended' }, { seq: 3 }));
  expect(exporter.getFinishedSpans()).toEqual([]);
  expect(JSON.stringify(first.kept)).toContain(`-0${TraceFlags.NONE}"`);
});

test('refuses an invalid journal or option, and names it in the error', () => {
  expect(() => tracedJournal({} as never)).toThrow('append');
  expect(() => tracedJournal(memoryJournal(), { tracerProvider: 7 as never })).toThrow(
    'tracerProvider',
  );
  expect(() => tracedJournal(memoryJournal(), { tracer: 7 } as never)).toThrow('tracer');
});

test('writes a call that is killed during a delivery as one complete trace (TRACED-JOURNAL-1, -2)', async () => {
  const environment = simulatedEnvironment();
  const before = sdk();
  const first = storeOf();
  const { tracerProvider } = before;
  const killed = call(tracedJournal(first.journal, { tracerProvider }), environment);
  await killed.start();
  await killed.asks();
  await killed.breaksIn(await killed.untilTold());
  await environment.advance(1_000);
  // In the middle of the second delivery.
  const second = killed.model().begin('There were 42 sales.', 2_000);
  await environment.advance(50);
  await killed.play(second.itemId, 500);
  const earlier = JSON.parse(JSON.stringify(first.kept)) as JournalEntry[];
  const spansBefore = [...before.exporter.getFinishedSpans()];

  const after = sdk();
  const later = simulatedEnvironment({ startAt: environment.clock.now() + 60_000 });
  const next = call(
    tracedJournal(storeOf(earlier).journal, { tracerProvider: after.tracerProvider }),
    later,
  );
  await next.start();
  await later.advance(1_000);
  await next.plays('There were 42 sales.', 2_000);
  await later.advance(1_000);
  const spans = [...spansBefore, ...after.exporter.getFinishedSpans()];
  expect(traceIds(spans).size).toBe(1);
  expect(drawn(spans)).toMatchInlineSnapshot(`
    [
      "offstage.session",
      "  user_input",
      "  invoke_agent lead cause=user answers→user_input",
      "    execute_tool report",
      "      invoke_agent report outcome=completed",
      "        chat scripted",
      "        execute_tool look outcome=ok",
      "        chat scripted",
      "    chat",
      "  user_input",
      "  invoke_agent lead cause=delivery heard=false delivers→invoke_agent report",
      "    chat",
      "  invoke_agent lead cause=delivery heard=true delivers→invoke_agent report",
      "    chat",
    ]
  `);
  const heard = spans.find(({ attributes }) => attributes['offstage.heard'] === true);
  expect(heard?.attributes['offstage.time_to_heard_ms']).toBeGreaterThan(60_000);
  const answer = spans.find(({ attributes }) => attributes['offstage.cause'] === 'user');
  // Measured from the end of the user's utterance: 400 ms of thinking.
  expect(answer?.attributes['offstage.time_to_first_audio_ms']).toBe(400);
  const told = spans.filter(({ attributes }) => 'offstage.attempt' in attributes);
  expect(told.map(({ attributes }) => attributes['offstage.attempt'])).toEqual([1, 2]);
});
