// The official SDK as an app configures it, with spans in memory and contexts that survive an `await`.

import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { onTestFinished } from 'vitest';

export function sdk() {
  const exporter = new InMemorySpanExporter();
  /** The names of the spans that have started and not ended. */
  const open: string[] = [];
  const watching: SpanProcessor = {
    // The span that detects a provider is never ended.
    onStart: ({ name }) => void (name === 'offstage.probe' || open.push(name)),
    onEnd: ({ name }) => void open.splice(open.indexOf(name), 1),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  const tracerProvider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(exporter), watching],
  });
  return { exporter, tracerProvider, spans: () => exporter.getFinishedSpans(), open };
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

/** Starts and ends a span of the app after a turn of the event loop, in the context that is then active. */
export function probeOf(provider: BasicTracerProvider) {
  const tracer = provider.getTracer('app');
  return async (name: string): Promise<void> => {
    await new Promise(setImmediate);
    tracer.startSpan(name).end();
  };
}

/** Returns the spans as a tree, each with its links, and the children in the order in which they ended. */
export function drawn(spans: readonly ReadableSpan[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanContext().spanId, span]));
  const depthOf = (span: ReadableSpan): number => {
    const parent = byId.get(span.parentSpanContext?.spanId ?? '');
    return parent ? 1 + depthOf(parent) : 0;
  };
  const nameOf = (spanId: string): string => byId.get(spanId)?.name ?? 'lost';
  const line = (span: ReadableSpan): string => {
    const { attributes } = span;
    const notes = ['cause', 'parked', 'outcome', 'heard'].flatMap((name) => {
      const value = attributes[`offstage.${name}`];
      return value === undefined ? [] : [`${name}=${String(value)}`];
    });
    const links = span.links.map(
      ({ context, attributes: { 'offstage.link': kind } = {} }) =>
        `${String(kind)}→${nameOf(context.spanId)}`,
    );
    return ['  '.repeat(depthOf(span)) + span.name, ...notes, ...links].join(' ');
  };
  const below = (span: ReadableSpan): string[] => [
    line(span),
    ...spans
      .filter(({ parentSpanContext }) => parentSpanContext?.spanId === span.spanContext().spanId)
      .flatMap(below),
  ];
  return spans
    .filter(({ parentSpanContext }) => !byId.has(parentSpanContext?.spanId ?? ''))
    .flatMap(below);
}

/** Returns the names of a span's ancestors, nearest first. */
export function above(spans: readonly ReadableSpan[], span: ReadableSpan): readonly string[] {
  const parent = spans.find((one) => one.spanContext().spanId === span.parentSpanContext?.spanId);
  return parent ? [parent.name, ...above(spans, parent)] : [];
}

/** Returns the places of the app's spans: `name < parent < …`, each once. */
export function placesOf(spans: readonly ReadableSpan[]): readonly string[] {
  const own = spans.filter(({ instrumentationScope }) => instrumentationScope.name === 'app');
  return [...new Set(own.map((span) => [span.name, ...above(spans, span)].join(' < ')))];
}

export const tracesIn = (spans: readonly ReadableSpan[]): number =>
  new Set(spans.map((span) => span.spanContext().traceId)).size;
