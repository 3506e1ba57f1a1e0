// A journal that records OpenTelemetry metrics of the sessions whose events pass through it.
//
// Owns:     the instruments, and what a measurement needs of earlier events: when a question was asked, when work ended.
// Does not: change an event; collect or export metrics, which the app's SDK does.
//
// Invariants
//   METERED-JOURNAL-1. An event is measured once, after it is kept, by the process that appends it. What was kept
//       before is only read, so that times are right across a crash.
//   METERED-JOURNAL-2. A fault of the SDK never reaches the session.
//   METERED-JOURNAL-3. Without a registered provider nothing is read or measured.

import {
  type Attributes,
  createNoopMeter,
  diag,
  type Meter,
  type MeterProvider,
  metrics,
} from '@opentelemetry/api';
import { z } from 'zod';
import type { Journal, JournalEntry } from '../../actors/ports/journal.ts';
import { aFunction, anObject, check, type ChecksOf } from '../../values/checks.ts';
import * as names from './names.ts';
import { readAs } from './scope-trace.ts';

export interface MeteredJournalOptions {
  /** The provider of the meters. @defaultValue the one that the app has registered when the first event comes */
  readonly meterProvider?: MeterProvider;
}

const optionsSchema = z.strictObject({
  meterProvider: anObject('a MeterProvider', 'getMeter').optional(),
} satisfies ChecksOf<MeteredJournalOptions>);
const journalSchema = z.looseObject({ append: aFunction, read: aFunction });

const text = z.string();
const amount = z.number().optional().catch(undefined);

/** The fields that are measured; an event in another form is passed over. */
const spawned = z.object({ name: text, callId: text.nullish(), parentId: text.nullish() });
const responded = z.object({
  again: z.boolean().nullish(),
  calls: z.array(z.object({ kind: text })),
  response: z.object({
    usage: z.object({ inputTokens: amount, outputTokens: amount, cost: amount }),
  }),
});
const failed = z.object({ error: z.object({ code: text }) });
const asked = z.object({ requestId: text, kind: text });
const closed = z.object({ requestId: text });
const noted = z.object({ itemId: text });
const settled = z.object({ callId: text, outcome: z.object({ status: text }) });
const ended = z.object({ outcome: z.object({ status: text }) });

/** The measured part of a question or of a subagent. */
interface Begun {
  readonly at: number;
  readonly attributes: Attributes;
}

/** What the measurements of one scope need of its earlier events. */
class ScopeMeasures {
  /** Those that have not ended. */
  readonly subagents = new Map<string, Begun & { isParked: boolean }>();
  readonly #questions = new Map<string, Begun>();
  /** The subagents of calls, and when those of the lead agent ended. */
  readonly #subagentOf = new Map<string, string>();
  readonly #endedAt = new Map<string, number>();
  #told = '';

  /** Takes an event in. `measured` is null for one that was kept before. */
  take({ unit, actor, at, event }: JournalEntry, measured: Instruments | null): void {
    const subagent = this.subagents.get(unit);
    switch (event.type) {
      case 'subagent.spawned': {
        const birth = readAs(spawned, event);
        if (!birth) return;
        const attributes = { [names.AGENT_NAME]: birth.name };
        this.subagents.set(unit, { at, attributes, isParked: false });
        if (typeof birth.callId === 'string')
          this.#subagentOf.set(callKey(birth.parentId ?? '', birth.callId), unit);
        return;
      }
      case 'slot.granted':
        if (subagent) subagent.isParked = false;
        return;
      case 'model.responded': {
        const answer = readAs(responded, event);
        if (!answer) return;
        const { calls, response, again } = answer;
        const waits = calls.some(({ kind }) => kind === 'question' || kind === 'approval');
        if (subagent) subagent.isParked = waits;
        measured?.used(response.usage, subagent?.attributes ?? {});
        if (calls.length === 0 && again !== true)
          this.#endDetached(unit, 'completed', at, measured);
        return;
      }
      case 'model.failed': {
        const code = readAs(failed, event)?.error.code ?? '_OTHER';
        measured?.failures.add(1, { ...subagent?.attributes, [names.ERROR_TYPE]: code });
        this.#endDetached(unit, 'failed', at, measured);
        return;
      }
      case 'subagent.cancel':
        this.#endDetached(unit, 'cancelled', at, measured);
        return;
      case 'deadline.run':
        this.#endDetached(unit, 'timed_out', at, measured);
        return;
      case 'tool.settled': {
        const result = readAs(settled, event);
        if (!result) return;
        const status = result.outcome.status === 'ok' ? 'completed' : 'failed';
        this.#end(callKey(unit, result.callId), status, at, measured);
        return;
      }
      case 'question.asked': {
        const question = readAs(asked, event);
        // A process after a crash asks again.
        if (!question || this.#questions.has(question.requestId)) return;
        const attributes = { [names.QUESTION_KIND]: question.kind };
        this.#questions.set(question.requestId, { at, attributes });
        return;
      }
      case 'question.answered':
      case 'question.expired':
      case 'question.withdrawn': {
        const requestId = readAs(closed, event)?.requestId ?? '';
        const question = this.#questions.get(requestId);
        if (!question) return;
        this.#questions.delete(requestId);
        const outcome = event.type.slice('question.'.length);
        measured?.wait.record(secondsBetween(question.at, at), {
          ...question.attributes,
          [names.OUTCOME]: outcome,
        });
        return;
      }
      case 'subagent.ended': {
        const callId = actor.replace(/^call:/, '');
        const status = readAs(ended, event)?.outcome.status;
        if (status === undefined) return;
        this.#endedAt.set(callId, at);
        this.#end(callKey('', callId), status, at, measured);
        return;
      }
      case 'response.requested':
        this.#told = '';
        return;
      case 'conversation.noted': {
        const { itemId = '' } = readAs(noted, event) ?? {};
        const callId = /^(.+)\.told\.\d+$/.exec(itemId)?.[1];
        if (callId !== undefined) this.#told = callId;
        else if (/\.q\d+\.note$/.test(itemId)) this.#told = '';
        return;
      }
      case 'delivery.heard': {
        const endedAt = this.#endedAt.get(this.#told);
        this.#endedAt.delete(this.#told);
        if (endedAt !== undefined) measured?.timeToHeard.record(secondsBetween(endedAt, at));
        return;
      }
      case 'delivery.interrupted':
        measured?.interruptions.add(1);
        return;
      default:
    }
  }

  /** Ends the subagent of a call. */
  #end(key: string, status: string, at: number, measured: Instruments | null): void {
    const id = this.#subagentOf.get(key);
    if (id === undefined) return;
    this.#subagentOf.delete(key);
    // Calls that it waits for end with it, and nobody is told of that.
    for (const below of this.#subagentOf.keys())
      if (below.startsWith(callKey(id, ''))) this.#end(below, status, at, measured);
    this.#endOne(id, status, at, measured);
  }

  /** Ends a subagent that no call waits for: its own events are all that tells of its end. */
  #endDetached(id: string, status: string, at: number, measured: Instruments | null): void {
    if (![...this.#subagentOf.values()].includes(id)) this.#endOne(id, status, at, measured);
  }

  #endOne(id: string, status: string, at: number, measured: Instruments | null): void {
    const subagent = this.subagents.get(id);
    if (!subagent) return;
    this.subagents.delete(id);
    const attributes = { ...subagent.attributes, [names.OUTCOME]: status };
    measured?.duration.record(secondsBetween(subagent.at, at), attributes);
  }
}

function callKey(unit: string, callId: string): string {
  return `${unit}:${callId}`;
}

/** The instruments, whose names are those of the semantic conventions where these have one. */
class Instruments {
  readonly wait;
  readonly duration;
  readonly timeToHeard;
  readonly interruptions;
  readonly failures;
  readonly #tokens;
  readonly #cost;

  constructor(meter: Meter, subagents: () => Iterable<{ readonly isParked: boolean }>) {
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
    this.interruptions = meter.createCounter('offstage.delivery.interruptions', {
      description: 'Deliveries that were cut off, and are told again',
    });
    this.failures = meter.createCounter('offstage.model.failures', {
      description: 'Model calls of subagents that failed for good',
    });
    this.#tokens = meter.createHistogram('gen_ai.client.token.usage', {
      unit: '{token}',
      description: 'Tokens of one model call of a subagent',
      advice: { explicitBucketBoundaries: TOKENS },
    });
    this.#cost = meter.createCounter('offstage.cost', {
      description: 'Cost of the model calls of subagents, in the currency of `price`',
    });
    const count = (isParked: boolean): number => {
      let found = 0;
      for (const subagent of subagents()) if (subagent.isParked === isParked) found += 1;
      return found;
    };
    meter
      .createObservableGauge('offstage.subagent.active', {
        description: 'Subagents that run, or wait for a run slot',
      })
      .addCallback((result) => result.observe(count(false)));
    meter
      .createObservableGauge('offstage.subagent.parked', {
        description: 'Subagents that wait for an answer',
      })
      .addCallback((result) => result.observe(count(true)));
  }

  used(
    { inputTokens, outputTokens, cost }: z.infer<typeof responded>['response']['usage'],
    of: Attributes,
  ): void {
    const attributes = { ...of, [names.OPERATION]: 'chat' };
    if (inputTokens !== undefined)
      this.#tokens.record(inputTokens, { ...attributes, [names.TOKEN_TYPE]: 'input' });
    if (outputTokens !== undefined)
      this.#tokens.record(outputTokens, { ...attributes, [names.TOKEN_TYPE]: 'output' });
    if (cost !== undefined) this.#cost.add(cost, of);
  }
}

const SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86_400];
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576];

/**
 * Records metrics of all sessions on `journal`: tokens and cost of the model calls of subagents, how long questions
 * wait, how long subagents take, when results are heard, and how many subagents run or wait. Attributes are names,
 * kinds and codes, no ids and no words. Put it in front of the other journals.
 * @throws {ConfigurationError} for an invalid journal or option.
 */
export function meteredJournal(journal: Journal, options: MeteredJournalOptions = {}): Journal {
  check('meteredJournal(journal, options)', journalSchema, journal);
  check('meteredJournal', optionsSchema, options);
  const scopes = new Map<string, ScopeMeasures>();
  let instruments: Instruments | null = null;

  /** METERED-JOURNAL-3. Instruments that are made before a provider is registered stay without effect. */
  const measured = (): Instruments | null => {
    if (instruments) return instruments;
    const { meterProvider = metrics.getMeterProvider() } = options;
    const meter = meterProvider.getMeter('offstage');
    if (meter === createNoopMeter()) return null;
    instruments = new Instruments(meter, function* all() {
      for (const { subagents } of scopes.values()) yield* subagents.values();
    });
    return instruments;
  };
  const measuresOf = (scope: string): ScopeMeasures => {
    const known = scopes.get(scope) ?? new ScopeMeasures();
    scopes.set(scope, known);
    return known;
  };

  return {
    append(entry) {
      const kept = (): void =>
        quietly(() => {
          const to = measured();
          if (to) measuresOf(entry.scope).take(entry, to);
        });
      const appended = journal.append(entry);
      if (appended === undefined) {
        kept();
        return;
      }
      return appended.then(kept);
    },
    read(query) {
      const entries = journal.read(query);
      const scope = query?.scope;
      if (scope === undefined || query?.unit !== undefined || scopes.has(scope)) return entries;
      const fold = (kept: readonly JournalEntry[]): readonly JournalEntry[] => {
        // An inspector reads, too: only a scope that no append has begun meanwhile is restored.
        quietly(() => {
          if (kept.length === 0 || scopes.has(scope) || !measured()) return;
          const measures = measuresOf(scope);
          for (const entry of kept) measures.take(entry, null);
        });
        return kept;
      };
      return 'then' in entries ? entries.then(fold) : fold(entries);
    },
    readAfter: journal.readAfter?.bind(journal),
    claim: journal.claim?.bind(journal),
    trim: journal.trim?.bind(journal),
    release(scope) {
      scopes.delete(scope);
      return journal.release?.(scope);
    },
    scopes: journal.scopes?.bind(journal),
    forget:
      journal.forget &&
      ((scope) => {
        scopes.delete(scope);
        return journal.forget?.(scope);
      }),
    wakeTimes: journal.wakeTimes,
  };
}

function secondsBetween(from: number, to: number): number {
  return Math.max(0, to - from) / 1000;
}

/** METERED-JOURNAL-2. */
function quietly(work: () => void): void {
  try {
    work();
  } catch (error) {
    diag.error('offstage/otel', error);
  }
}
