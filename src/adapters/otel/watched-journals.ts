// Journal wrappers that watch a session: one wrapper writes traces, and the other records metrics and log records for
// alerts. Each wrapper follows the scopes that its process owns. It works independently of the session and has no
// effect on it.
//
// Owns:     the set of scopes that this process owns, and when an entry is traced and measured.
// Does not: interpret events (`scope-fold.ts`); record messages, arguments or results; export data (the app's SDK
//           does).
//
// Invariants
//   WATCHED-JOURNAL-1. A reader that does not own a scope, such as an inspector, does not change the watcher's state
//       for that scope.
//   WATCHED-JOURNAL-2. A fault in a watcher does not reach the session.
//   TRACED-JOURNAL-1. A scope has one trace, even after a crash or hibernation. A scope's events contain the contexts
//       of its spans, so that the next process can read them.
//   TRACED-JOURNAL-2. A span covers work and never a wait. A subagent's span ends when the subagent waits for an
//       answer, and the next span links to it.
//   TRACED-JOURNAL-3. A span ends only after its last event has been written. Retrying an event does not start a second
//       span.
//   TRACED-JOURNAL-5. Without a registered provider, events are forwarded unchanged and no spans are started. If a
//       provider is registered later, it takes effect from then on.
//   TRACED-JOURNAL-7. With each request, a relay sends its agent the span of the subagent's work (ids, no content).
//       After a crash, the span belongs to the same trace. Nothing is sent unless a provider is listening.
//   TRACED-JOURNAL-8. Work for a caller that sends its span is a child of that span. A conversation stays in its trace,
//       so a caller in a different trace is linked instead. A span context that cannot be read is ignored.
//   TRACED-JOURNAL-9. The app's tools, models and approvals run while the span of their work is active, regardless of
//       the session's own context. The spans of the app's code and of instrumented requests are therefore children of
//       that span. Jobs receive this span as well.
//   TRACED-JOURNAL-10. A snapshot contains the trace state of the entries that it replaces, because these entries may
//       be trimmed.
//   TRACED-JOURNAL-6. Either this journal or the AI SDK's integration writes the span of a model call. Both write it
//       only if the app asks for this.
//   METERED-JOURNAL-1. Only the process that appends an event measures it, after it has been written. Earlier entries
//       are read but not measured, so that durations are correct even after a crash.
//   METERED-JOURNAL-3. Without a registered provider, no entries are read or measured.
//   METERED-JOURNAL-4. Each condition that should alert an operator produces a log record without messages.
//                      docs/tracing.md lists these records.

import {
  context,
  createNoopMeter,
  diag,
  isSpanContextValid,
  type MeterProvider,
  metrics,
  ROOT_CONTEXT,
  type SpanContext,
  trace,
  type TracerProvider,
} from '@opentelemetry/api';
import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import { journalSchema } from '../../actors/ports/journal-entry.ts';
import { passedOn, type Journal, type JournalEntry } from '../../actors/ports/journal.ts';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import { codeOf, isA, OffstageError } from '../../values/errors.ts';
import type { TraceContext } from '../../values/traceparent.ts';
import { OFFSTAGE_VERSION } from '../../values/version.ts';
import {
  instrumentsOf,
  secondsBetween,
  type EventLoggerProvider,
  type Measured,
} from './instruments.ts';
import * as names from './names.ts';
import { ScopeFold, type Observed } from './scope-fold.ts';
import { traceparentOf } from './scope-spans.ts';

/** The options of `tracedJournal`. */
export interface TracedJournalOptions {
  /** The tracer provider. @defaultValue the provider registered with `@opentelemetry/api` */
  readonly tracerProvider?: TracerProvider;
  /**
   * Whether `@ai-sdk/otel`, if registered, also writes spans for model calls, as children of this journal's spans.
   * @defaultValue false
   */
  readonly sdkSpans?: boolean;
  /**
   * Whether external agents and engine workers receive the trace context of their work (ids only), so that their spans
   * join the trace. @defaultValue true
   */
  readonly propagates?: boolean;
}

const tracedSchema = z.strictObject({
  tracerProvider: anObject('a TracerProvider', 'getTracer').optional(),
  sdkSpans: z.boolean().optional(),
  propagates: z.boolean().optional(),
} satisfies ChecksOf<TracedJournalOptions>);

/**
 * Wraps `journal` and writes one trace for each session or service that uses it. The trace contains the lead agent's
 * turns and tool calls, and each stretch of a subagent's work with its model calls and tool calls. Spans contain names,
 * ids, times and token counts, but no content. Use it as the outermost wrapper of the journal.
 * @throws {ConfigurationError} if the journal or an option is invalid
 */
export function tracedJournal(journal: Journal, options: TracedJournalOptions = {}): Journal {
  check('tracedJournal(journal, options)', journalSchema, journal);
  check('tracedJournal', tracedSchema, options);
  const { tracerProvider = trace, sdkSpans = false, propagates = true } = options;
  const tracer = tracerProvider.getTracer('offstage', OFFSTAGE_VERSION);
  const scopes = new Map<string, ScopeFold>();

  let isOn = false;
  let deaf: TracerProvider | null = null;

  /** A tracer without a provider returns spans without a context. Each provider is tested once (TRACED-JOURNAL-5). */
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

  const { rest, leave, foldOf } = watchedJournal(journal, scopes, {
    //   TRACED-JOURNAL-5. A registered provider stays registered.
    isOn: () => (isOn ||= isListening()),
    isTraced: true,
  });

  return {
    ...rest,
    append(entry) {
      //   TRACED-JOURNAL-5. A registered provider stays registered.
      isOn ||= isListening();
      if (!isOn) return journal.append(entry);
      const observed = quietly<Observed>(() => foldOf(entry.scope).trace(entry, tracer));
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
          // Another process has owned the scope in the meantime, so the entries of that process are read first.
          if (codeOf(error) === 'FENCED') leave(entry.scope);
          throw error;
        },
      );
    },
    tracesModelCalls: () => !sdkSpans && (isOn ||= isListening()),
    // Scopes are followed only while a provider is listening.
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

/** Returns the provider behind the API's proxy. A proxy without a delegate always returns the same object. */
function behind(provider: TracerProvider): TracerProvider {
  return 'getDelegate' in provider && typeof provider.getDelegate === 'function'
    ? (provider.getDelegate() as TracerProvider)
    : provider;
}

/** Returns the W3C Trace Context of a span. */
function written(span: SpanContext): TraceContext {
  const tracestate = span.traceState?.serialize() ?? '';
  const traceparent = traceparentOf(span);
  return tracestate === '' ? { traceparent } : { traceparent, tracestate };
}

/** The options of `meteredJournal`. */
export interface MeteredJournalOptions {
  /** The meter provider. @defaultValue the provider that is registered when the first event arrives */
  readonly meterProvider?: MeterProvider;
  /** The logger provider, such as that of `@opentelemetry/sdk-logs`. @defaultValue none: no log records */
  readonly loggerProvider?: EventLoggerProvider;
  /**
   * The clock, such as `nodeEnvironment()`, for `offstage.outbox.age` and `offstage.journal.append`. @defaultValue
   * none: these two metrics are not measured
   */
  readonly environment?: Pick<Environment, 'clock'>;
}

const meteredSchema = z.strictObject({
  meterProvider: anObject('a MeterProvider', 'getMeter').optional(),
  loggerProvider: anObject('a LoggerProvider', 'getLogger').optional(),
  environment: z.looseObject({ clock: anObject('a clock', 'now') }).optional(),
} satisfies ChecksOf<MeteredJournalOptions>);

/**
 * Records metrics for all sessions that use `journal`: token usage and cost of model calls, waiting times of questions,
 * durations of subagents, results that were heard, audio delay, and the numbers of running and waiting subagents.
 * Attributes are names, kinds and codes, never ids or messages. With a `loggerProvider`, it also writes alert records
 * that contain ids. They report questions that open and close, deliveries that are offered and heard, and lost leases.
 * Use it as the outermost wrapper of the journal.
 * @throws {ConfigurationError} if the journal or an option is invalid
 */
export function meteredJournal(journal: Journal, options: MeteredJournalOptions = {}): Journal {
  check('meteredJournal(journal, options)', journalSchema, journal);
  check('meteredJournal', meteredSchema, options);
  const scopes = new Map<string, ScopeFold>();
  const clock = options.environment?.clock;
  let instruments: Measured | null = null;

  /** METERED-JOURNAL-3. Instruments that are created before a provider is registered would never record anything. */
  const measured = (): Measured | null => {
    if (instruments) return instruments;
    const { meterProvider = metrics.getMeterProvider(), loggerProvider } = options;
    const meter = meterProvider.getMeter('offstage', OFFSTAGE_VERSION);
    if (meter === createNoopMeter() && !loggerProvider) return null;
    instruments = instrumentsOf(
      meter,
      clock,
      scopes,
      loggerProvider?.getLogger('offstage', OFFSTAGE_VERSION),
    );
    return instruments;
  };
  const { rest, leave, foldOf } = watchedJournal(journal, scopes, {
    isOn: () => measured() !== null,
    isTraced: false,
  });

  return {
    ...rest,
    append(entry) {
      const began = clock?.now() ?? 0;
      const kept = (): void =>
        quietly(() => {
          const to = measured();
          if (clock) to?.append.record(secondsBetween(began, clock.now()));
          if (to) foldOf(entry.scope).measure(entry, to);
        });
      const refused = (error: unknown): void =>
        quietly(() => {
          const isFenced = isA(error, OffstageError) && codeOf(error) === 'FENCED';
          const span = scopes.get(entry.scope)?.writtenSpanOf(entry.unit);
          if (isFenced) leave(entry.scope);
          const attributes = {
            [names.CONVERSATION_ID]: entry.scope,
            ...(!isFenced && {
              [names.ERROR_TYPE]: isA(error, OffstageError) ? codeOf(error) : '_OTHER',
            }),
          };
          const name = isFenced ? 'offstage.lease.lost' : 'offstage.journal.failed';
          const at = clock?.now() ?? entry.at;
          measured()?.log({ name, at, severity: 'ERROR', attributes }, span);
        });
      let appended: void | Promise<void>;
      try {
        appended = journal.append(entry);
      } catch (error) {
        refused(error);
        throw error;
      }
      if (appended === undefined) {
        kept();
        return;
      }
      return appended.then(kept, (error: unknown) => {
        refused(error);
        throw error;
      });
    },
  };
}

interface Watcher {
  /** False while no provider is listening. In this case, entries are not processed. */
  isOn(): boolean;
  /** Whether this journal writes spans. */
  readonly isTraced: boolean;
}

/** Returns all methods except `append`. */
function watchedJournal(
  journal: Journal,
  scopes: Map<string, ScopeFold>,
  { isOn, isTraced }: Watcher,
) {
  const foldOf = (scope: string): ScopeFold => {
    const fold = scopes.get(scope) ?? new ScopeFold(scope, isTraced);
    scopes.set(scope, fold);
    return fold;
  };
  const claimed = new Set<string>();
  const leave = (scope: string): void => {
    const left = scopes.get(scope);
    scopes.delete(scope);
    claimed.delete(scope);
    quietly(() => left?.leave());
  };
  /** WATCHED-JOURNAL-1. If the journal has no claims, the first process that appends to a scope owns it. */
  const isToContinue = (scope: string): boolean =>
    journal.claim ? claimed.has(scope) : scopes.get(scope)?.isLive !== true;
  const rest: Omit<Journal, 'append'> = {
    ...passedOn(journal),
    read(query) {
      const entries = journal.read(query);
      const scope = query?.scope;
      if (scope === undefined || query?.unit !== undefined || !isToContinue(scope)) return entries;
      if (quietly(isOn) !== true) return entries;
      const fold = (kept: readonly JournalEntry[]): readonly JournalEntry[] => {
        if (kept.length === 0 || scopes.get(scope)?.isLive === true) return kept;
        quietly(() => {
          scopes.delete(scope);
          foldOf(scope).restore(kept);
        });
        return kept;
      };
      return 'then' in entries ? entries.then(fold) : fold(entries);
    },
    claim:
      journal.claim &&
      (async (scope) => {
        await journal.claim?.(scope);
        claimed.add(scope);
      }),
    release(scope) {
      leave(scope);
      return journal.release?.(scope);
    },
    forget:
      journal.forget &&
      ((scope) => {
        leave(scope);
        return journal.forget?.(scope);
      }),
  };
  return { rest, leave, foldOf };
}

/** WATCHED-JOURNAL-2. */
export function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    diag.error('offstage/otel', error);
    return undefined;
  }
}
