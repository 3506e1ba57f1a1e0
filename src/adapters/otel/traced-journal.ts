// A journal that writes an OpenTelemetry trace of the sessions whose events pass through it.
//
// Owns:     the open spans, and the field `traceparents` of the events that begin one.
// Does not: record words, arguments or results; export spans, which the app's SDK does.
//
// Invariants
//   TRACED-JOURNAL-1. A scope has one trace, also after a crash or hibernation: its events keep the contexts of its
//       spans, and the next process reads them.
//   TRACED-JOURNAL-2. A span is work, never waiting: the span of a subagent ends when it waits for an answer, and the
//       next one links to it.
//   TRACED-JOURNAL-3. A span ends after its last event is kept. A retried event begins no second span.
//   TRACED-JOURNAL-5. Without a registered provider an event is passed on unchanged, and no span is begun for it. A provider
//       that is registered later counts from then on.
//   TRACED-JOURNAL-7. An agent behind a relay is told the span of its subagent's work beside each request, after a crash one
//       of the same trace: ids, no content. Nobody is told anything where nobody listens.
//   TRACED-JOURNAL-8. Work for a caller that names its span is below that. A conversation stays in its trace: a caller in
//       another one is linked. A name that cannot be read is ignored.
//   TRACED-JOURNAL-9. Tools, models and approvals of the app run with the span of their work active, in whichever context
//       the session was: spans that they begin, and requests that an instrumentation sees, are below it. Jobs of other
//       processes are told that span.
//   TRACED-JOURNAL-10. A snapshot holds what the trace needs of the entries that it stands for: they may be trimmed.
//   TRACED-JOURNAL-6. A model call has a span here, or spans of an integration of the AI SDK, not both, unless the app
//       says so.

import {
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  trace,
  type TracerProvider,
} from '@opentelemetry/api';
import { z } from 'zod';
import { journalSchema } from '../../actors/ports/journal-entry.ts';
import type { Journal } from '../../actors/ports/journal.ts';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import { codeOf } from '../../values/errors.ts';
import type { TraceContext } from '../../values/traceparent.ts';
import { OFFSTAGE_VERSION } from '../../values/version.ts';
import { ScopeTrace, traceparentOf, type Observed } from './scope-trace.ts';
import { quietly, watchedJournal } from './watched-journal.ts';

export interface TracedJournalOptions {
  /** The provider of the spans. @defaultValue the one that the app registered with `@opentelemetry/api` */
  readonly tracerProvider?: TracerProvider;
  /**
   * Whether `@ai-sdk/otel`, where the app has registered it, also writes its spans of the model calls that have a span here,
   * below that. @defaultValue false
   */
  readonly sdkSpans?: boolean;
  /**
   * Whether agents behind a relay, and workers of an engine, are told the trace of their work (its ids, and nothing else), so
   * that their own spans are part of it. @defaultValue true
   */
  readonly propagates?: boolean;
}

const optionsSchema = z.strictObject({
  tracerProvider: anObject('a TracerProvider', 'getTracer').optional(),
  sdkSpans: z.boolean().optional(),
  propagates: z.boolean().optional(),
} satisfies ChecksOf<TracedJournalOptions>);

/**
 * Writes one trace for each session (or service) on `journal`: turns of the lead agent, its tool calls, each stretch of
 * work of a subagent, its model steps and tool calls. Spans hold names, ids, times and token counts, no content.
 * Put it in front of the other journals.
 * @throws {ConfigurationError} for an invalid journal or option.
 */
export function tracedJournal(journal: Journal, options: TracedJournalOptions = {}): Journal {
  check('tracedJournal(journal, options)', journalSchema, journal);
  check('tracedJournal', optionsSchema, options);
  const { tracerProvider = trace, sdkSpans = false, propagates = true } = options;
  const tracer = tracerProvider.getTracer('offstage', OFFSTAGE_VERSION);
  const scopes = new Map<string, ScopeTrace>();

  let isOn = false;
  let deaf: TracerProvider | null = null;

  /** A tracer without a provider returns spans without a context. Each provider is tried once (TRACED-JOURNAL-5). */
  const isListening = (): boolean =>
    quietly(() => {
      const provider = behind(
        tracerProvider === trace ? trace.getTracerProvider() : tracerProvider,
      );
      if (provider === deaf) return false;
      deaf = provider;
      const probe = tracer.startSpan('offstage.probe', { root: true });
      return isSpanContextValid(probe.spanContext());
    }) ?? false;

  const traceOf = (scope: string): ScopeTrace => {
    let found = scopes.get(scope);
    if (!found) {
      found = new ScopeTrace(tracer, scope);
      scopes.set(scope, found);
    }
    return found;
  };
  const { rest, leave } = watchedJournal(journal, {
    scopes,
    // TRACED-JOURNAL-5. A provider is registered once, and stays.
    isOn: () => (isOn ||= isListening()),
    restore: (scope, kept) => traceOf(scope).restore(kept),
  });

  return {
    ...rest,
    append(entry) {
      // TRACED-JOURNAL-5. A provider is registered once, and stays.
      isOn ||= isListening();
      if (!isOn) return journal.append(entry);
      const observed = quietly<Observed>(() => traceOf(entry.scope).observe(entry));
      if (!observed) return journal.append(entry);
      const appended = journal.append(observed.entry);
      if (appended === undefined) {
        quietly(observed.kept);
        return;
      }
      return appended.then(
        () => {
          quietly(observed.kept);
        },
        (error: unknown) => {
          // Another process has gone on: its entries are read before this one does.
          if (codeOf(error) === 'FENCED') leave(entry.scope);
          throw error;
        },
      );
    },
    tracesModelCalls: () => !sdkSpans && (isOn ||= isListening()),
    // The scopes of those who do not listen are empty.
    traceContextOf: ({ scope, ...work }) => {
      const span = propagates ? quietly(() => scopes.get(scope)?.spanOf(work)) : null;
      return span ? written(span) : null;
    },
    inSpanOf({ scope, ...work }, call) {
      // TRACED-JOURNAL-9
      const within = quietly(() => {
        const span = scopes.get(scope)?.placeOf(work);
        return span && trace.setSpanContext(ROOT_CONTEXT, span);
      });
      return within ? context.with(within, call) : call();
    },
  };
}

/** The provider that a proxy of the API stands for: one without a delegate gives the same each time. */
function behind(provider: TracerProvider): TracerProvider {
  return 'getDelegate' in provider && typeof provider.getDelegate === 'function'
    ? (provider.getDelegate() as TracerProvider)
    : provider;
}

/** As W3C Trace Context writes it. */
function written(span: SpanContext): TraceContext {
  const tracestate = span.traceState?.serialize() ?? '';
  const traceparent = traceparentOf(span);
  return tracestate === '' ? { traceparent } : { traceparent, tracestate };
}
