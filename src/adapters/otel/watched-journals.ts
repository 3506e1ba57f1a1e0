// The journals with a watcher in front: one writes a trace, the other records metrics and the log records that alerts are made
// of. Each folds the scopes that its process continues beside the session, and never disturbs it.
//
// Owns:     which scopes this process continues; when an entry is traced, and when it is measured.
// Does not: know events (scope-fold.ts); record words, arguments or results; export, which the app's SDK does.
//
// Invariants
//   WATCHED-JOURNAL-1. A reader that does not continue a scope, such as an inspector, leaves what is known of it alone.
//   WATCHED-JOURNAL-2. A fault of the watcher never reaches the session.
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
//   METERED-JOURNAL-1. An event is measured once, after it is kept, by the process that appends it. What was kept
//       before is only read, so that times are right across a crash.
//   METERED-JOURNAL-3. Without a registered provider nothing is read or measured.
//   METERED-JOURNAL-4. What an operator is woken for is a log record, without words: docs/tracing.md lists them.

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

const tracedSchema = z.strictObject({
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
  check('tracedJournal', tracedSchema, options);
  const { tracerProvider = trace, sdkSpans = false, propagates = true } = options;
  const tracer = tracerProvider.getTracer('offstage', OFFSTAGE_VERSION);
  const scopes = new Map<string, ScopeFold>();

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

  const { rest, leave, foldOf } = watchedJournal(journal, scopes, {
    // TRACED-JOURNAL-5. A provider is registered once, and stays.
    isOn: () => (isOn ||= isListening()),
    isTraced: true,
  });

  return {
    ...rest,
    append(entry) {
      // TRACED-JOURNAL-5. A provider is registered once, and stays.
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

/** The options of `meteredJournal`. */
export interface MeteredJournalOptions {
  /** The provider of the meters. @defaultValue the one that the app has registered when the first event comes */
  readonly meterProvider?: MeterProvider;
  /** The provider of the loggers, such as that of `@opentelemetry/sdk-logs`. @defaultValue none: no log records */
  readonly loggerProvider?: EventLoggerProvider;
  /**
   * Time, such as `nodeEnvironment()`, for `offstage.outbox.age` and `offstage.journal.append`. @defaultValue none: these
   * two are not measured
   */
  readonly environment?: Pick<Environment, 'clock'>;
}

const meteredSchema = z.strictObject({
  meterProvider: anObject('a MeterProvider', 'getMeter').optional(),
  loggerProvider: anObject('a LoggerProvider', 'getLogger').optional(),
  environment: z.looseObject({ clock: anObject('a clock', 'now') }).optional(),
} satisfies ChecksOf<MeteredJournalOptions>);

/**
 * Records metrics of all sessions on `journal`: tokens and cost of the model calls, how long questions
 * wait, how long subagents take, when results are heard, how soon there is sound, and how many subagents run or wait.
 * Attributes are names, kinds and codes, no ids and no words. With a `loggerProvider` also writes what alerts are
 * made of: questions that open and close, deliveries that are offered and heard, lost leases, with their ids. Put it
 * in front of the other journals.
 * @throws {ConfigurationError} for an invalid journal or option.
 */
export function meteredJournal(journal: Journal, options: MeteredJournalOptions = {}): Journal {
  check('meteredJournal(journal, options)', journalSchema, journal);
  check('meteredJournal', meteredSchema, options);
  const scopes = new Map<string, ScopeFold>();
  const clock = options.environment?.clock;
  let instruments: Measured | null = null;

  /** METERED-JOURNAL-3. Instruments that are made before a provider is registered stay without effect. */
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
  /** False while no provider listens: nothing is folded then. */
  isOn(): boolean;
  /** Spans are written by this journal. */
  readonly isTraced: boolean;
}

/** Returns all but `append`. */
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
  /** WATCHED-JOURNAL-1. Without claims it is whoever appends first. */
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
