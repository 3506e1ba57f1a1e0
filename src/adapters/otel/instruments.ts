// The instruments of a metered journal, and its log: their names, units, buckets and attributes.
//
// Owns:     what is recorded under which name, which are those of the semantic conventions where these have one.
// Does not: know events (metered-journal.ts), or collect or export, which the app's SDK does.

import {
  type Attributes,
  type Context,
  type Meter,
  ROOT_CONTEXT,
  type SpanContext,
  trace,
} from '@opentelemetry/api';
import { z } from 'zod';
import type { Clock } from '../../actors/ports/environment.ts';
import * as names from './names.ts';

const amount = z.number().optional().catch(undefined);

/** The part of a `LoggerProvider` of `@opentelemetry/api-logs` that is used. */
export interface EventLoggerProvider {
  getLogger(name: string, version?: string): { emit(record: EventLogRecord): void };
}

/** A log record without content: a name, ids, kinds and counts. */
export interface EventLogRecord {
  readonly eventName: string;
  readonly timestamp: Date;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly attributes: Attributes;
  /** The span that it is about, of a `tracedJournal` in front. */
  readonly context?: Context;
}

export const usageShape = z.object({
  inputTokens: amount,
  outputTokens: amount,
  cachedInputTokens: amount,
  cacheWriteTokens: amount,
  reasoningTokens: amount,
  audioInputTokens: amount,
  audioOutputTokens: amount,
  cost: amount,
});
export interface Used {
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
  /** The subagents that have not ended. */
  readonly subagents: ReadonlyMap<string, { readonly isParked: boolean }>;
  /** The results that were not heard yet, since when. */
  readonly unheard: ReadonlyMap<string, number>;
  /** It goes on in this process. */
  readonly isLive: boolean;
}

export class Measured {
  readonly wait;
  readonly duration;
  readonly timeToHeard;
  readonly timeToFirstAudio;
  readonly bargeInSilence;
  readonly attempts;
  readonly append;
  readonly interruptions;
  readonly failures;
  readonly #inference;
  readonly #tool;
  readonly #tokens;
  readonly #tokensOfCall;
  readonly #logger: ReturnType<EventLoggerProvider['getLogger']> | undefined;
  readonly #cost;

  constructor(
    meter: Meter,
    clock: Clock | undefined,
    scopes: ReadonlyMap<string, MeasuredScope>,
    logger: ReturnType<EventLoggerProvider['getLogger']> | undefined,
  ) {
    this.#logger = logger;
    const seconds = { unit: 's', advice: { explicitBucketBoundaries: SECONDS } };
    this.wait = meter.createHistogram('offstage.question.wait', {
      ...seconds,
      description: 'Time from the asking of a question to its end',
    });
    this.duration = meter.createHistogram('offstage.subagent.duration', {
      ...seconds,
      description: 'Time from the start of a subagent to its end',
    });
    this.timeToHeard = meter.createHistogram('offstage.time_to_heard', {
      ...seconds,
      description: 'Time from the end of the work to the end of its telling',
    });
    this.timeToFirstAudio = meter.createHistogram('offstage.time_to_first_audio', {
      ...seconds,
      description: 'Time from the end of the words of the user to the first sound after them',
    });
    this.bargeInSilence = meter.createHistogram('offstage.barge_in.silence', {
      unit: 's',
      advice: { explicitBucketBoundaries: SHORT },
      description: 'Time from when the user breaks in until the speaker is silent',
    });
    this.attempts = meter.createHistogram('offstage.delivery.attempts', {
      unit: '{attempt}',
      advice: { explicitBucketBoundaries: [1, 2, 3, 5, 10] },
      description: 'Attempts until a delivery was heard',
    });
    this.append = meter.createHistogram('offstage.journal.append', {
      unit: 's',
      advice: { explicitBucketBoundaries: SHORT },
      description: 'Time until an event was kept',
    });
    this.interruptions = meter.createCounter('offstage.delivery.interruptions', {
      unit: '{interruption}',
      description: 'Deliveries that were cut off, and are told again',
    });
    this.failures = meter.createCounter('offstage.model.failures', {
      unit: '{failure}',
      description: 'Model calls of subagents and lead agents that failed for good',
    });
    const ofOne = { unit: 's', advice: { explicitBucketBoundaries: OF_ONE } };
    this.#inference = meter.createHistogram(names.INFERENCE_DURATION, {
      ...ofOne,
      description: 'Time of one model call',
    });
    this.#tool = meter.createHistogram(names.TOOL_DURATION, {
      ...ofOne,
      description: 'Time of one tool call',
    });
    const tokens = (kind: string, description: string) =>
      meter.createCounter(`${names.USED_TOKENS}.${kind}`, { unit: '{token}', description });
    this.#tokens = {
      inputTokens: tokens('input_tokens', 'Input of model calls'),
      outputTokens: tokens('output_tokens', 'Output of model calls'),
      cachedInputTokens: tokens('cache_read.input_tokens', 'Input that was read from a cache'),
      cacheWriteTokens: tokens('cache_write.input_tokens', 'Input that was written to a cache'),
      reasoningTokens: tokens('reasoning.output_tokens', 'Output that was reasoning'),
    };
    const ofCall = (kind: string, description: string) =>
      meter.createHistogram(`${names.TOKENS_OF_CALL}.${kind}`, {
        unit: '{token}',
        description,
        advice: { explicitBucketBoundaries: TOKENS },
      });
    this.#tokensOfCall = {
      inputTokens: ofCall('input_tokens', 'Input of one model call'),
      outputTokens: ofCall('output_tokens', 'Output of one model call'),
    };
    this.#cost = meter.createCounter('offstage.cost', {
      description: 'Cost of model calls, in the currency of `price`',
    });
    const count = (isParked: boolean): number => {
      let found = 0;
      for (const { subagents, isLive } of scopes.values())
        if (isLive)
          for (const subagent of subagents.values()) if (subagent.isParked === isParked) found += 1;
      return found;
    };
    /** The deliveries that wait to be heard, since when. */
    const waiting = (): readonly number[] =>
      [...scopes.values()].flatMap(({ unheard, isLive }) => (isLive ? [...unheard.values()] : []));
    meter
      .createObservableGauge('offstage.outbox.depth', {
        unit: '{result}',
        description: 'Results that were not heard yet',
      })
      .addCallback((result) => result.observe(waiting().length));
    if (clock)
      meter
        .createObservableGauge('offstage.outbox.age', {
          unit: 's',
          description: 'Age of the oldest result that was not heard yet',
        })
        .addCallback((result) => {
          const now = clock.now();
          result.observe(
            secondsBetween(
              waiting().reduce((first, at) => Math.min(first, at), now),
              now,
            ),
          );
        });
    meter
      .createObservableGauge('offstage.subagent.active', {
        unit: '{subagent}',
        description: 'Subagents that run, or wait for a run slot',
      })
      .addCallback((result) => result.observe(count(false)));
    meter
      .createObservableGauge('offstage.subagent.parked', {
        unit: '{subagent}',
        description: 'Subagents that wait for an answer',
      })
      .addCallback((result) => result.observe(count(true)));
  }

  log({ name, at, severity, attributes }: Logged, span: SpanContext | undefined): void {
    this.#logger?.emit({
      eventName: name,
      timestamp: new Date(at),
      severityNumber: SEVERITIES[severity],
      severityText: severity,
      attributes,
      ...(span && { context: trace.setSpanContext(ROOT_CONTEXT, span) }),
    });
  }

  /** One call of a model. `code`: it failed with that. */
  asked({ model, tookMs }: Omit<Used, 'usage'>, agent: Attributes, code?: string): void {
    if (tookMs === undefined) return;
    this.#inference.record(secondsBetween(0, tookMs), {
      ...agent,
      ...names.namesOfModel(model),
      [names.OPERATION]: 'chat',
      ...(code !== undefined && { [names.ERROR_TYPE]: code }),
    });
  }

  /** One call of a tool. */
  ran(
    { tool, tookMs }: { readonly tool: string | undefined; readonly tookMs: number | undefined },
    agent: Attributes,
    code: string | undefined,
  ): void {
    if (tookMs === undefined) return;
    this.#tool.record(secondsBetween(0, tookMs), {
      ...agent,
      [names.OPERATION]: 'execute_tool',
      ...(tool !== undefined && { [names.TOOL_NAME]: tool }),
      [names.TOOL_TYPE]: 'function',
      ...(code !== undefined && { [names.ERROR_TYPE]: code }),
    });
  }

  used({ usage: used, model }: Used, agent: Attributes): void {
    const of = { ...agent, ...names.namesOfModel(model) };
    const ofCall = { ...of, [names.OPERATION]: 'chat' };
    const sound: { readonly [kind in TokenKind]?: number | undefined } = {
      inputTokens: used.audioInputTokens,
      outputTokens: used.audioOutputTokens,
    };
    for (const kind of ['inputTokens', 'outputTokens'] as const) {
      const count = used[kind];
      if (count !== undefined) this.#tokensOfCall[kind].record(count, ofCall);
    }
    for (const kind of TOKEN_KINDS) {
      const count = used[kind];
      if (count === undefined) continue;
      const { [kind]: heard = 0 } = sound;
      const ofModality = (modality: string) => ({ ...ofCall, [names.TOKEN_MODALITY]: modality });
      if (heard > 0) this.#tokens[kind].add(heard, ofModality('audio'));
      // Whether the rest is text, the journal does not have.
      if (count > heard || heard === 0)
        this.#tokens[kind].add(Math.max(0, count - heard), ofModality('unknown'));
    }
    if (used.cost !== undefined) this.#cost.add(used.cost, of);
  }
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
/** As the conventions have it, for one call. */
const OF_ONE = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
const SHORT = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5];
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576];

export function secondsBetween(from: number, to: number): number {
  return Math.max(0, to - from) / 1000;
}
