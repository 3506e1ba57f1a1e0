// The official SDK as an app sets it up: spans in memory, and contexts that survive an `await`.

import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { onTestFinished } from 'vitest';

export function sdk() {
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  return { exporter, tracerProvider, spans: () => exporter.getFinishedSpans() };
}

/** Registers a context manager for the test. */
export function withContexts(): void {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  onTestFinished(() => {
    context.disable();
    propagation.disable();
    trace.disable();
  });
}

/** Begins and ends a span of the app, after a turn of the event loop, in whichever context is active then. */
export function probeOf(provider: BasicTracerProvider) {
  const tracer = provider.getTracer('app');
  return async (name: string): Promise<void> => {
    await new Promise(setImmediate);
    tracer.startSpan(name).end();
  };
}

/** The names of the spans above a span, the nearest first. */
export function above(spans: readonly ReadableSpan[], span: ReadableSpan): readonly string[] {
  const parent = spans.find((one) => one.spanContext().spanId === span.parentSpanContext?.spanId);
  return parent ? [parent.name, ...above(spans, parent)] : [];
}

/** Where the spans of the app are: `name < parent < …`, each once. */
export function placesOf(spans: readonly ReadableSpan[]): readonly string[] {
  const own = spans.filter(({ instrumentationScope }) => instrumentationScope.name === 'app');
  return [...new Set(own.map((span) => [span.name, ...above(spans, span)].join(' < ')))];
}

export const tracesIn = (spans: readonly ReadableSpan[]): number =>
  new Set(spans.map((span) => span.spanContext().traceId)).size;
