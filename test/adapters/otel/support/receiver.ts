// An OTLP receiver over HTTP, and the official SDK that exports to it as an app does.

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { OTLPLogExporter as JsonLogs } from '@opentelemetry/exporter-logs-otlp-http';
import { OTLPLogExporter as ProtoLogs } from '@opentelemetry/exporter-logs-otlp-proto';
import { OTLPMetricExporter as JsonMetrics } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPMetricExporter as ProtoMetrics } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter as JsonTraces } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtoTraces } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { onTestFinished } from 'vitest';

type Value = string | number | boolean | readonly Value[];
export type Attributes = Readonly<Record<string, Value>>;

interface Raw {
  readonly stringValue?: string;
  readonly intValue?: string | number;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values?: readonly Raw[] };
}
interface KeyValues {
  readonly attributes?: readonly { readonly key: string; readonly value: Raw }[];
}
interface Scope {
  readonly scope?: { readonly name?: string; readonly version?: string };
}
export interface RawSpan extends KeyValues {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status?: { readonly code?: number; readonly message?: string };
  readonly links?: readonly (KeyValues & { readonly traceId: string; readonly spanId: string })[];
}
interface Points {
  readonly dataPoints: readonly (KeyValues & {
    readonly count?: string;
    readonly sum?: number;
    readonly asInt?: string;
    readonly asDouble?: number;
  })[];
}
interface RawMetric {
  readonly name: string;
  readonly unit?: string;
  readonly description?: string;
  readonly sum?: Points;
  readonly gauge?: Points;
  readonly histogram?: Points;
}
export interface RawLog extends KeyValues {
  readonly eventName?: string;
  readonly severityNumber?: number;
  readonly severityText?: string;
  readonly timeUnixNano?: string;
  readonly traceId?: string;
  readonly spanId?: string;
}
type Resource = { readonly resource?: KeyValues };
interface Payload {
  readonly resourceSpans?: readonly (Resource & {
    readonly scopeSpans: readonly (Scope & { readonly spans: readonly RawSpan[] })[];
  })[];
  readonly resourceMetrics?: readonly (Resource & {
    readonly scopeMetrics: readonly (Scope & { readonly metrics: readonly RawMetric[] })[];
  })[];
  readonly resourceLogs?: readonly (Resource & {
    readonly scopeLogs: readonly (Scope & { readonly logRecords: readonly RawLog[] })[];
  })[];
}

export function attributesOf({ attributes = [] }: KeyValues): Attributes {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));
}

function valueOf(raw: Raw): Value {
  if (raw.arrayValue) return (raw.arrayValue.values ?? []).map(valueOf);
  if (raw.intValue !== undefined) return Number(raw.intValue);
  return raw.stringValue ?? raw.doubleValue ?? raw.boolValue ?? '';
}

/** Answers a request; the default status is 200. */
export type Answer = (response: ServerResponse, path: string) => void;
const accepts: Answer = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
};

/** Creates a receiver that stores what it receives. `received` decodes JSON; for protobuf it contains the bytes. */
export async function receiver() {
  let answer = accepts;
  const requests: { path: string; type: string; body: Buffer }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const path = request.url ?? '';
      requests.push({
        path,
        type: request.headers['content-type'] ?? '',
        body: Buffer.concat(chunks),
      });
      answer(response, path);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  onTestFinished(close);
  const payloads = (): readonly Payload[] =>
    requests
      .filter(({ type }) => type.includes('json'))
      .map(({ body }) => JSON.parse(body.toString()) as Payload);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close,
    answers(next: Answer): void {
      answer = next;
    },
    spans: () =>
      payloads().flatMap(({ resourceSpans = [] }) =>
        resourceSpans.flatMap(({ scopeSpans }) =>
          scopeSpans.flatMap(({ scope, spans }) => spans.map((span) => ({ ...span, scope }))),
        ),
      ),
    metrics: () =>
      payloads().flatMap(({ resourceMetrics = [] }) =>
        resourceMetrics.flatMap(({ scopeMetrics }) =>
          scopeMetrics.flatMap(({ scope, metrics }) =>
            metrics.map((metric) => ({ ...metric, scope })),
          ),
        ),
      ),
    logs: () =>
      payloads().flatMap(({ resourceLogs = [] }) =>
        resourceLogs.flatMap(({ scopeLogs }) =>
          scopeLogs.flatMap(({ scope, logRecords }) =>
            logRecords.map((log) => ({ ...log, scope })),
          ),
        ),
      ),
    resources: () =>
      payloads()
        .flatMap(({ resourceSpans = [], resourceMetrics = [], resourceLogs = [] }) => [
          ...resourceSpans,
          ...resourceMetrics,
          ...resourceLogs,
        ])
        .map(({ resource = {} }) => attributesOf(resource)),
  };
}

export type Receiver = Awaited<ReturnType<typeof receiver>>;

/** Creates an app's SDK, which exports traces, metrics and logs in batches. */
export function exportingTo(url: string, form: 'json' | 'protobuf') {
  const of = (signal: string) => ({ url: `${url}/v1/${signal}`, timeoutMillis: 2_000 });
  const isJson = form === 'json';
  const tracerProvider = new BasicTracerProvider({
    spanProcessors: [
      new BatchSpanProcessor(
        isJson ? new JsonTraces(of('traces')) : new ProtoTraces(of('traces')),
        { maxExportBatchSize: 50, scheduledDelayMillis: 3_600_000 },
      ),
    ],
  });
  const meterProvider = new MeterProvider({
    readers: [
      new PeriodicExportingMetricReader({
        exporter: isJson ? new JsonMetrics(of('metrics')) : new ProtoMetrics(of('metrics')),
        exportIntervalMillis: 3_600_000,
        exportTimeoutMillis: 2_000,
      }),
    ],
  });
  const loggerProvider = new LoggerProvider({
    processors: [
      new BatchLogRecordProcessor({
        exporter: isJson ? new JsonLogs(of('logs')) : new ProtoLogs(of('logs')),
        scheduledDelayMillis: 3_600_000,
      }),
    ],
  });
  const providers = [tracerProvider, meterProvider, loggerProvider];
  return {
    tracerProvider,
    meterProvider,
    loggerProvider,
    forceFlush: () => Promise.all(providers.map((provider) => provider.forceFlush())),
    shutdown: () => Promise.all(providers.map((provider) => provider.shutdown())),
  };
}
