// The metric instruments and the log of a metered journal: their names, units, buckets and attributes.
//
// Owns:     the name of each measurement, taken from the semantic conventions where possible.
// Does not: interpret events (`scope-fold.ts`), or collect or export data (the app's SDK does).

import {
  type Attributes,
  type Context,
  type Meter,
  ROOT_CONTEXT,
  type SpanContext,
  trace,
} from '@opentelemetry/api';
import type { z } from 'zod';
import type { Clock } from '../../actors/ports/environment.ts';
import * as names from './names.ts';
import type { usageShape } from './traced-events.ts';

/** The part of the `LoggerProvider` of `@opentelemetry/api-logs` that this file uses. */
export interface EventLoggerProvider {
  /**
   * Like `LoggerProvider.getLogger`. It is called once for each journal, with the name `offstage` and the package's
   * version.
   */
  getLogger(name: string, version?: string): { emit(record: EventLogRecord): void };
}

/** A log record without content: only a name, ids, kinds and counts. */
export interface EventLogRecord {
  readonly eventName: string;
  readonly timestamp: Date;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly attributes: Attributes;
  /** The span that the record belongs to, if a `tracedJournal` wraps this journal. */
  readonly context?: Context;
}

interface Used {
  readonly usage: z.infer<typeof usageShape>;
  readonly model?: names.ModelNames | undefined;
  /** In milliseconds. */
  readonly tookMs?: number | undefined;
}

interface Logged {
  readonly name: string;
  readonly at: number;
  readonly severity: Severity;
  readonly attributes: Attributes;
}

export type Severity = keyof typeof SEVERITIES;
const SEVERITIES = { INFO: 9, WARN: 13, ERROR: 17 } as const;
/** The part of a scope that the gauges observe. */
interface MeasuredScope {
  /** Returns the number of unfinished subagents that are waiting for an answer (`isParked`) or are not. */
  countOf(isParked: boolean): number;
  /** Returns the due times of the results that have not been heard. */
  unheard(): readonly number[];
  /** Whether this process owns the scope. */
  readonly isLive: boolean;
}

export type Measured = ReturnType<typeof instrumentsOf>;

export function instrumentsOf(
  meter: Meter,
  clock: Clock | undefined,
  scopes: ReadonlyMap<string, MeasuredScope>,
  logger: ReturnType<EventLoggerProvider['getLogger']> | undefined,
) {
  const histogram = (
    name: string,
    unit: string,
    explicitBucketBoundaries: number[],
    description: string,
  ) => meter.createHistogram(name, { unit, advice: { explicitBucketBoundaries }, description });
  const wait = histogram(
    'offstage.question.wait',
    's',
    SECONDS,
    'Time from the asking of a question to its end',
  );
  const duration = histogram(
    'offstage.subagent.duration',
    's',
    SECONDS,
    'Time from the start of a subagent to its end',
  );
  const timeToHeard = histogram(
    'offstage.time_to_heard',
    's',
    SECONDS,
    'Time from the end of the work to the end of its telling',
  );
  const timeToFirstAudio = histogram(
    'offstage.time_to_first_audio',
    's',
    SECONDS,
    'Time from the end of the words of the user to the first sound after them',
  );
  const bargeInSilence = histogram(
    'offstage.barge_in.silence',
    's',
    SHORT,
    'Time from when the user breaks in until the speaker is silent',
  );
  const attempts = histogram(
    'offstage.delivery.attempts',
    '{attempt}',
    [1, 2, 3, 5, 10],
    'Attempts until a delivery was heard',
  );
  const append = histogram('offstage.journal.append', 's', SHORT, 'Time until an event was kept');
  const inference = histogram(names.INFERENCE_DURATION, 's', OF_ONE, 'Time of one model call');
  const toolTime = histogram(names.TOOL_DURATION, 's', OF_ONE, 'Time of one tool call');
  const ofCall = (kind: string, description: string) =>
    histogram(`${names.TOKENS_OF_CALL}.${kind}`, '{token}', TOKENS, description);
  const tokensOfCall = {
    inputTokens: ofCall('input_tokens', 'Input of one model call'),
    outputTokens: ofCall('output_tokens', 'Output of one model call'),
  };
  const counter = (name: string, unit: string, description: string) =>
    meter.createCounter(name, { unit, description });
  const interruptions = counter(
    'offstage.delivery.interruptions',
    '{interruption}',
    'Deliveries that were cut off, and are told again',
  );
  const failures = counter(
    'offstage.model.failures',
    '{failure}',
    'Model calls of subagents and lead agents that failed for good',
  );
  const tokensAs = (kind: string, description: string) =>
    counter(`${names.USED_TOKENS}.${kind}`, '{token}', description);
  const tokens = {
    inputTokens: tokensAs('input_tokens', 'Input of model calls'),
    outputTokens: tokensAs('output_tokens', 'Output of model calls'),
    cachedInputTokens: tokensAs('cache_read.input_tokens', 'Input that was read from a cache'),
    cacheWriteTokens: tokensAs('cache_write.input_tokens', 'Input that was written to a cache'),
    reasoningTokens: tokensAs('reasoning.output_tokens', 'Output that was reasoning'),
  };
  const cost = meter.createCounter('offstage.cost', {
    description: 'Cost of model calls, in the currency of `price`',
  });
  const gauge = (name: string, unit: string, description: string, value: () => number): void =>
    meter
      .createObservableGauge(name, { unit, description })
      .addCallback((result) => result.observe(value()));
  const live = (): readonly MeasuredScope[] => [...scopes.values()].filter(({ isLive }) => isLive);
  const count = (isParked: boolean): number =>
    live().reduce((sum, scope) => sum + scope.countOf(isParked), 0);
  const waiting = (): readonly number[] => live().flatMap((scope) => scope.unheard());
  gauge(
    'offstage.outbox.depth',
    '{result}',
    'Results that were not heard yet',
    () => waiting().length,
  );
  if (clock)
    gauge('offstage.outbox.age', 's', 'Age of the oldest result that was not heard yet', () => {
      const now = clock.now();
      return secondsBetween(Math.min(now, ...waiting()), now);
    });
  gauge(
    'offstage.subagent.active',
    '{subagent}',
    'Subagents that run, or wait for a run slot',
    () => count(false),
  );
  gauge('offstage.subagent.parked', '{subagent}', 'Subagents that wait for an answer', () =>
    count(true),
  );

  return {
    wait,
    duration,
    timeToHeard,
    timeToFirstAudio,
    bargeInSilence,
    attempts,
    append,
    interruptions,
    failures,

    log({ name, at, severity, attributes }: Logged, span: SpanContext | undefined): void {
      logger?.emit({
        eventName: name,
        timestamp: new Date(at),
        severityNumber: SEVERITIES[severity],
        severityText: severity,
        attributes,
        ...(span && { context: trace.setSpanContext(ROOT_CONTEXT, span) }),
      });
    },

    /** Records one model call. `code`: the error code of a failed call. */
    asked({ model, tookMs }: Omit<Used, 'usage'>, agent: Attributes, code?: string): void {
      if (tookMs === undefined) return;
      inference.record(secondsBetween(0, tookMs), {
        ...agent,
        ...names.namesOfModel(model),
        [names.OPERATION]: 'chat',
        ...(code !== undefined && { [names.ERROR_TYPE]: code }),
      });
    },

    /** Records one tool call. */
    ran(
      { tool, tookMs }: { readonly tool: string | undefined; readonly tookMs: number | undefined },
      agent: Attributes,
      code: string | undefined,
    ): void {
      if (tookMs === undefined) return;
      toolTime.record(secondsBetween(0, tookMs), {
        ...agent,
        [names.OPERATION]: 'execute_tool',
        ...(tool !== undefined && { [names.TOOL_NAME]: tool }),
        [names.TOOL_TYPE]: 'function',
        ...(code !== undefined && { [names.ERROR_TYPE]: code }),
      });
    },

    used({ usage: used, model }: Used, agent: Attributes): void {
      const of = { ...agent, ...names.namesOfModel(model) };
      const ofOne = { ...of, [names.OPERATION]: 'chat' };
      const sound: { readonly [kind in TokenKind]?: number | undefined } = {
        inputTokens: used.audioInputTokens,
        outputTokens: used.audioOutputTokens,
      };
      for (const kind of ['inputTokens', 'outputTokens'] as const) {
        const amount = used[kind];
        if (amount !== undefined) tokensOfCall[kind].record(amount, ofOne);
      }
      for (const kind of TOKEN_KINDS) {
        const amount = used[kind];
        if (amount === undefined) continue;
        const { [kind]: heard = 0 } = sound;
        const ofModality = (modality: string) => ({ ...ofOne, [names.TOKEN_MODALITY]: modality });
        if (heard > 0) tokens[kind].add(heard, ofModality('audio'));
        // The journal does not show whether the remaining tokens are text tokens.
        if (amount > heard || heard === 0)
          tokens[kind].add(Math.max(0, amount - heard), ofModality('unknown'));
      }
      if (used.cost !== undefined) cost.add(used.cost, of);
    },
  };
}

const TOKEN_KINDS = [
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'reasoningTokens',
] as const;
type TokenKind = (typeof TOKEN_KINDS)[number];
const SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86_400];
/** The buckets that the conventions define for one call. */
const OF_ONE = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
const SHORT = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5];
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576];

export function secondsBetween(from: number, to: number): number {
  return Math.max(0, to - from) / 1000;
}
