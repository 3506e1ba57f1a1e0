// Wraps a worker's handler (`jobWorker`) so that each job has a span that is a child of the session's span.
//
// Invariants
//   TRACED-HANDLER-1. The span of a job is a child of the span that the job names, and it is active while the job runs.
//       If a job contains no readable span, no span and no new trace are started.
//   TRACED-HANDLER-2. Each attempt has its own span, even if the worker refuses the attempt. The span contains names
//                     and codes, but no content.
//   TRACED-HANDLER-3. A fault of the SDK has no effect on the job.

import {
  type Attributes,
  context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type TracerProvider,
} from '@opentelemetry/api';
import { z } from 'zod';
import type { Job, JobEnd, JobHandler, JobRefusal } from '../../actors/ports/jobs.ts';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import { readTraceContext } from '../../values/traceparent.ts';
import { OFFSTAGE_VERSION } from '../../values/version.ts';
import * as names from './names.ts';
import { contextOf } from './scope-spans.ts';
import { quietly } from './watched-journals.ts';

/** The options of `tracedHandler`. */
export interface TracedHandlerOptions {
  /** The tracer provider. @defaultValue the provider registered with `@opentelemetry/api` */
  readonly tracerProvider?: TracerProvider;
}

const optionsSchema = z.strictObject({
  tracerProvider: anObject('a TracerProvider', 'getTracer').optional(),
} satisfies ChecksOf<TracedHandlerOptions>);

/**
 * Runs each job in a span `offstage.job <name>`. In a session with `tracedJournal`, it is a child of the span of the
 * model call or tool call. Use it to wrap `jobWorker({ … })`, either inside or outside of `packedHandler`.
 * @throws {ConfigurationError} if the handler or an option is invalid
 */
export function tracedHandler(handler: JobHandler, options: TracedHandlerOptions = {}): JobHandler {
  check(
    'tracedHandler(handler, options)',
    anObject('a handler such as that of jobWorker({ … })', 'do'),
    handler,
  );
  check('tracedHandler', optionsSchema, options);
  const tracer = (options.tracerProvider ?? trace).getTracer('offstage', OFFSTAGE_VERSION);

  const begun = (job: Job): Span | undefined =>
    quietly(() => {
      const { traceparent = '', tracestate } = readTraceContext(job.trace) ?? {};
      const caller = contextOf(traceparent);
      if (!caller) return undefined;
      const state = tracestate === undefined ? {} : { traceState: createTraceState(tracestate) };
      return tracer.startSpan(
        `offstage.job ${job.name}`,
        { kind: SpanKind.CONSUMER, attributes: attributesOf(job) },
        trace.setSpanContext(ROOT_CONTEXT, { ...caller, ...state }),
      );
    });
  const ended = (span: Span, code: string | null): void =>
    quietly(() => {
      if (code !== null) {
        span.setAttribute(names.ERROR_TYPE, code);
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
      span.end();
    });

  return {
    async do(job, signal, said) {
      const span = begun(job);
      const within = span && quietly(() => trace.setSpan(ROOT_CONTEXT, span));
      if (!span || !within) return handler.do(job, signal, said);
      try {
        const end = await context.with(within, () => handler.do(job, signal, said));
        ended(span, failureOf(end));
        return end;
      } catch (error) {
        ended(span, 'CANCELLED');
        throw error;
      }
    },
  };
}

/** The key of a step starts with its session and subagent. */
function attributesOf({ key, name }: Job): Attributes {
  const { scope, subagent } = /^(?<scope>.+?)\/(?<subagent>[^/:]+):\d+:/.exec(key)?.groups ?? {};
  return {
    [names.JOB]: name,
    [names.CONVERSATION_ID]: scope,
    [names.SESSION_ID]: scope,
    [names.SUBAGENT_ID]: subagent,
  };
}

function failureOf(end: JobEnd | JobRefusal): string | null {
  if ('failed' in end) return end.failed.code;
  if ('refused' in end) return end.refused.code;
  return 'lost' in end ? 'JOB_LOST' : null;
}
