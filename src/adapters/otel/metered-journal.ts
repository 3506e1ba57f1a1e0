// A journal that records OpenTelemetry metrics of the sessions whose events pass through it, and the log records that
// alerts are made of.
//
// Owns:     what a measurement needs of earlier events: when a question was asked, when work ended.
// Does not: name the instruments (instruments.ts), change an event, or collect or export metrics, which the app's SDK does.
//
// Invariants
//   METERED-JOURNAL-1. An event is measured once, after it is kept, by the process that appends it. What was kept
//       before is only read, so that times are right across a crash.
//   METERED-JOURNAL-3. Without a registered provider nothing is read or measured.
//   METERED-JOURNAL-4. What an operator is woken for is a log record, without words: docs/tracing.md lists them.

import {
  type Attributes,
  createNoopMeter,
  type MeterProvider,
  metrics,
  type SpanContext,
} from '@opentelemetry/api';
import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import { journalSchema } from '../../actors/ports/journal-entry.ts';
import type { Journal, JournalEntry } from '../../actors/ports/journal.ts';
import { codeOf, isA, OffstageError } from '../../values/errors.ts';
import { anObject, check, type ChecksOf } from '../../values/checks.ts';
import { OFFSTAGE_VERSION } from '../../values/version.ts';
import {
  Measured,
  secondsBetween,
  usageShape,
  type EventLoggerProvider,
  type Severity,
} from './instruments.ts';
import * as names from './names.ts';
import { contextOf } from './scope-trace.ts';
import { contexts, modelNames, noted, playing, readAs } from './traced-events.ts';
import { quietly, watchedJournal } from './watched-journal.ts';

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

const optionsSchema = z.strictObject({
  meterProvider: anObject('a MeterProvider', 'getMeter').optional(),
  loggerProvider: anObject('a LoggerProvider', 'getLogger').optional(),
  environment: z.looseObject({ clock: anObject('a clock', 'now') }).optional(),
} satisfies ChecksOf<MeteredJournalOptions>);

const text = z.string();
const amount = z.number().optional().catch(undefined);

/** The fields that are measured; an event in another form is passed over. */
const spawned = z.object({ name: text, callId: text.nullish(), parentId: text.nullish() });
/** The subagents that have not ended, where the entries of their beginning may be trimmed. */
const snapshot = z.object({
  delegation: z.object({
    subagents: z.array(
      z.object({
        id: text,
        bornAt: z.number().nullish(),
        birth: spawned,
        rest: z.object({
          outcome: z.unknown().optional(),
          life: z.object({ snapshot: z.object({ value: z.unknown() }) }).nullish(),
        }),
      }),
    ),
  }),
});
const reported = z.object({
  agentName: text,
  usage: usageShape,
  model: modelNames,
  beganAt: z.number().nullish(),
  tookMs: amount,
});
const responded = z.object({
  again: z.boolean().nullish(),
  calls: z.array(z.object({ kind: text })),
  response: z.object({
    usage: usageShape,
    model: modelNames,
    tookMs: amount,
    calls: z.array(z.object({ callId: text, toolName: text })).catch([]),
  }),
});
const withError = z.object({ error: z.object({ code: text }) });
/** `response`: an answer that cannot be used. */
const failed = withError.extend({
  /** The lead agent; absent: it is a subagent's. */
  agentName: text.optional(),
  model: modelNames,
  tookMs: amount,
  response: z
    .object({ usage: usageShape, model: modelNames, tookMs: amount })
    .optional()
    .catch(undefined),
});
const lost = withError.extend({ retryInMs: z.number().nullish() });
const called = z.object({ callId: text, name: text, agentName: text.optional() });
const executed = z.object({
  failed: z.boolean().nullish(),
  output: z.object({ code: text.optional().catch(undefined) }).catch({}),
});
const aside = z.object({ event: text });
const asked = z.object({ requestId: text, kind: text });
const closed = z.object({ requestId: text });
const validated = z.object({ execution: text });
const withCode = z.object({ code: text.optional() }).nullish().catch(null);
const settled = z.object({
  callId: text,
  tookMs: amount,
  outcome: z.object({ status: text, error: withCode }),
});
const ended = z.object({ outcome: z.object({ status: text, error: withCode }) });

/** The measured part of a question or of a subagent. */
interface Begun {
  readonly at: number;
  readonly attributes: Attributes;
}

/** The earlier events that the measurements of one scope need. */
class ScopeMeasures {
  /** The subagents that have not ended. */
  readonly subagents = new Map<string, Begun & { isParked: boolean; readonly root: Attributes }>();
  readonly #questions = new Map<string, Begun>();
  /** The tools of calls without a result, by the unit and the call. */
  readonly #tools = new Map<string, string>();
  /** The lead agents' calls whose tool runs in this process: whose, and since when. */
  readonly #inline = new Map<string, { readonly agent: Attributes; readonly at: number }>();
  /** The lead agents that have made a call. */
  readonly #callers = new Map<string, string>();
  /** The subagents of calls, and when those of the lead agent ended. */
  readonly #subagentOf = new Map<string, string>();
  readonly #endedAt = new Map<string, number>();
  /** The spans that a `tracedJournal` in front has begun: of the scope, of its turn, of subagents. */
  readonly #spans = new Map<string, SpanContext>();
  /** The calls of the lead agent whose results are told later. */
  readonly #background = new Set<string>();
  /** This process has added an entry: it is here that the scope goes on. */
  isLive = false;
  /** The results that were not heard yet, since when. */
  readonly unheard = new Map<string, number>();
  #told: readonly string[] = [];
  #attempt = 1;
  #userEndedAt: number | null = null;
  #hasUserSpoken = false;
  #isPlaying = false;
  /** Since when the user speaks over what plays, when it fell silent, and whether it was cut off. */
  #over: { readonly from: number; silentAt?: number; isCut?: true } | null = null;

  /** The span of a unit's work, or of the whole. */
  spanOf(unit: string): SpanContext | undefined {
    return (
      this.#spans.get(`subagent:${unit}`) ?? this.#spans.get('turn') ?? this.#spans.get('root')
    );
  }

  /** Takes an event in. `measured` is null for one that was kept before. */
  take({ scope, unit, actor, at, event }: JournalEntry, measured: Measured | null): void {
    if ('traceparents' in event) this.#noteSpans(event);
    const log = (name: string, attributes: Attributes, severity: Severity = 'INFO'): void =>
      measured?.log(
        { name, at, severity, attributes: { [names.CONVERSATION_ID]: scope, ...attributes } },
        this.spanOf(unit),
      );
    const subagent = this.subagents.get(unit);
    const ofSubagent = { ...subagent?.attributes, [names.SUBAGENT_ID]: unit };
    const inDoubt = (callId: string, of: Attributes): void =>
      log(
        'offstage.call_in_doubt',
        {
          ...of,
          [names.TOOL_CALL_ID]: callId,
          [names.TOOL_NAME]: this.#tools.get(callKey(unit, callId)),
        },
        'ERROR',
      );
    switch (event.type) {
      case 'utterance.started':
        this.#userEndedAt = null;
        this.#over = this.#isPlaying ? { from: at } : null;
        return;
      case 'utterance.ended':
        this.#userEndedAt = at;
        return;
      case 'user.said':
        this.#hasUserSpoken = true;
        return;
      case 'playout.started':
        if (this.#hasUserSpoken && this.#userEndedAt !== null)
          measured?.timeToFirstAudio.record(secondsBetween(this.#userEndedAt, at));
        this.#isPlaying = true;
        this.#hasUserSpoken = false;
        this.#userEndedAt = null;
        this.#over = null;
        return;
      case 'playout.drained':
        this.#isPlaying = false;
        if (this.#over) this.#over.silentAt = at;
        this.#measureBargeIn(measured);
        return;
      case 'assistant.cut':
        if (this.#over) this.#over.isCut = true;
        this.#measureBargeIn(measured);
        return;
      case 'session.recovered':
        log('offstage.session.recovered', {});
        // A tool that is run again begins anew.
        this.#inline.clear();
        this.#isPlaying = false;
        this.#over = null;
        this.#userEndedAt = null;
        return;
      case 'call.validated':
        this.#validated(actor.replace(/^call:/, ''), at, readAs(validated, event)?.execution);
        return;
      case 'transport.lost': {
        const { error, retryInMs } = readAs(lost, event) ?? {};
        const isForGood = retryInMs === null;
        log(
          'offstage.connection.lost',
          { [names.ERROR_TYPE]: error?.code ?? '_OTHER' },
          isForGood ? 'ERROR' : 'WARN',
        );
        return;
      }
      case 'entry.set_aside':
      case 'session.lost':
        log(
          `offstage.${event.type}`,
          { [names.EVENT_TYPE]: readAs(aside, event)?.event ?? '_OTHER' },
          'ERROR',
        );
        return;
      case 'budget.exhausted':
        log('offstage.budget.exhausted', ofSubagent, 'WARN');
        return;
      case 'delivery.failed':
        log('offstage.delivery.failed', { [names.ATTEMPT]: this.#attempt }, 'WARN');
        return;
      case 'tool.called': {
        const call = readAs(called, event);
        if (!call) return;
        this.#tools.set(callKey(unit, call.callId), call.name);
        if (call.agentName !== undefined) this.#callers.set(call.callId, call.agentName);
        return;
      }
      case 'call.executed':
      case 'deadline.execution': {
        const callId = actor.replace(/^call:/, '');
        const key = callKey(unit, callId);
        const { failed: hasFailed, output } = readAs(executed, event) ?? {};
        const run = this.#inline.get(callId);
        const code = event.type === 'call.executed' ? output?.code : 'TIMEOUT';
        const isError = hasFailed === true || event.type !== 'call.executed';
        if (isError && code === IN_DOUBT) inDoubt(callId, {});
        // A late deadline has no call.
        else if (run)
          measured?.ran(
            { tool: this.#tools.get(key), tookMs: at - run.at },
            run.agent,
            isError ? (code ?? '_OTHER') : undefined,
          );
        this.#inline.delete(callId);
        this.#tools.delete(key);
        return;
      }
      case 'subagent.spawned': {
        const birth = readAs(spawned, event);
        if (birth) this.#born(unit, birth, at, false);
        return;
      }
      case 'session.snapshot':
      case 'service.snapshot':
        for (const { id, bornAt, birth, rest } of readAs(snapshot, event)?.delegation.subagents ??
          [])
          if (rest.outcome === undefined && !this.subagents.has(id))
            this.#born(id, birth, bornAt ?? at, isWaiting(rest.life?.snapshot.value));
        return;
      case 'slot.granted':
        if (subagent) subagent.isParked = false;
        return;
      case 'model.responded': {
        const answer = readAs(responded, event);
        if (!answer) return;
        const { calls, response, again } = answer;
        const waits = calls.some(({ kind }) => kind === 'question' || kind === 'approval');
        if (subagent) subagent.isParked = waits;
        for (const { callId, toolName } of response.calls)
          this.#tools.set(callKey(unit, callId), toolName);
        const agent = { ...subagent?.attributes, ...subagent?.root };
        measured?.used(response, agent);
        measured?.asked(response, agent);
        if (calls.length === 0 && again !== true)
          this.#endDetached(unit, 'completed', at, measured);
        return;
      }
      case 'usage.reported': {
        const report = readAs(reported, event);
        const agent = {
          [names.AGENT_NAME]: report?.agentName,
          [names.ROOT_AGENT]: report?.agentName,
        };
        if (!report) return;
        measured?.used(report, agent);
        const { model, tookMs, beganAt } = report;
        const beside = typeof beganAt === 'number' ? at - beganAt : undefined;
        measured?.asked({ model, tookMs: tookMs ?? beside }, agent);
        return;
      }
      case 'model.retried':
      case 'model.failed': {
        const { error, response, agentName, ...call } = readAs(failed, event) ?? {};
        const code = error?.code ?? '_OTHER';
        const agent =
          agentName === undefined
            ? { ...subagent?.attributes, ...subagent?.root }
            : { [names.AGENT_NAME]: agentName, [names.ROOT_AGENT]: agentName };
        measured?.asked(response ?? call, agent, code);
        if (event.type === 'model.retried') return;
        if (response) measured?.used(response, agent);
        const { [names.ROOT_AGENT]: _, ...of } = agent;
        measured?.failures.add(1, { ...of, [names.ERROR_TYPE]: code });
        const ofUnit = agentName === undefined ? ofSubagent : of;
        log('offstage.model.failed', { ...ofUnit, [names.ERROR_TYPE]: code }, 'WARN');
        if (agentName === undefined) this.#endDetached(unit, 'failed', at, measured);
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
        const { status: how, error } = result.outcome;
        const status = how === 'ok' ? 'completed' : 'failed';
        const tool = this.#tools.get(callKey(unit, result.callId));
        const code = status === 'failed' ? (error?.code ?? '_OTHER') : undefined;
        const { tookMs } = result;
        measured?.ran({ tool, tookMs }, { ...subagent?.attributes, ...subagent?.root }, code);
        if (result.outcome.error?.code === IN_DOUBT) inDoubt(result.callId, ofSubagent);
        this.#tools.delete(callKey(unit, result.callId));
        this.#end(callKey(unit, result.callId), status, at, measured);
        return;
      }
      case 'question.asked': {
        const question = readAs(asked, event);
        // A process after a crash asks again.
        if (!question || this.#questions.has(question.requestId)) return;
        const attributes = { [names.QUESTION_KIND]: question.kind };
        this.#questions.set(question.requestId, { at, attributes });
        log('offstage.question.opened', {
          ...attributes,
          [names.REQUEST_ID]: question.requestId,
        });
        return;
      }
      case 'question.answered':
      case 'question.expired':
      case 'question.withdrawn': {
        const requestId = readAs(closed, event)?.requestId ?? '';
        const question = this.#questions.get(requestId);
        if (!question) return;
        this.#questions.delete(requestId);
        const attributes = {
          ...question.attributes,
          [names.OUTCOME]: event.type.slice('question.'.length),
        };
        measured?.wait.record(secondsBetween(question.at, at), attributes);
        log('offstage.question.closed', { ...attributes, [names.REQUEST_ID]: requestId });
        return;
      }
      case 'subagent.ended': {
        const callId = actor.replace(/^call:/, '');
        const { status, error } = readAs(ended, event)?.outcome ?? {};
        if (status === undefined) return;
        const failedId = FAILURES.has(status)
          ? this.#subagentOf.get(callKey('', callId))
          : undefined;
        if (failedId !== undefined)
          log(
            'offstage.subagent.failed',
            {
              ...this.subagents.get(failedId)?.attributes,
              [names.SUBAGENT_ID]: failedId,
              [names.OUTCOME]: status,
              [names.ERROR_TYPE]: error?.code ?? '_OTHER',
            },
            'WARN',
          );
        this.#endedAt.set(callId, at);
        if (this.#background.delete(callId)) this.unheard.set(callId, at);
        this.#end(callKey('', callId), status, at, measured);
        return;
      }
      case 'response.requested':
        this.#told = [];
        return;
      case 'conversation.noted': {
        // In journals of earlier versions all that says what is told.
        const { itemId = '' } = readAs(noted, event) ?? {};
        const callId = /^(.+)\.told\.\d+$/.exec(itemId)?.[1];
        if (callId !== undefined) this.#told = [callId];
        else if (/\.q\d+\.note$/.test(itemId)) this.#told = [];
        return;
      }
      case 'delivery.playing': {
        const { deliveryIds = this.#told, attempt = 1 } = readAs(playing, event) ?? {};
        this.#told = deliveryIds;
        this.#attempt = attempt;
        for (const id of deliveryIds)
          log('offstage.delivery.offered', { [names.DELIVERY_ID]: id, [names.ATTEMPT]: attempt });
        return;
      }
      case 'delivery.heard':
        measured?.attempts.record(this.#attempt);
        for (const id of this.#told) {
          const endedAt = this.#endedAt.get(id);
          this.#endedAt.delete(id);
          this.unheard.delete(id);
          if (endedAt !== undefined) measured?.timeToHeard.record(secondsBetween(endedAt, at));
          log('offstage.delivery.heard', {
            [names.DELIVERY_ID]: id,
            [names.ATTEMPT]: this.#attempt,
          });
        }
        return;
      case 'delivery.shown':
      case 'delivery.dismissed':
        this.unheard.delete(actor.replace(/^delivery:/, ''));
        return;
      case 'delivery.interrupted':
        measured?.interruptions.add(1);
        return;
      default:
    }
  }

  /** A call that a subagent works on is no tool. */
  #validated(callId: string, at: number, execution: string | undefined): void {
    const name = this.#callers.get(callId);
    this.#callers.delete(callId);
    if (execution === 'background') this.#background.add(callId);
    if (execution !== 'inline') return;
    const agent = name === undefined ? {} : { [names.AGENT_NAME]: name, [names.ROOT_AGENT]: name };
    this.#inline.set(callId, { at, agent });
  }

  #noteSpans(event: object): void {
    for (const [key, written] of Object.entries(readAs(contexts, event)?.traceparents ?? {})) {
      const isWanted = key === 'root' || key === 'turn' || key.startsWith('subagent:');
      const span = isWanted ? contextOf(written) : null;
      if (span) this.#spans.set(key, span);
    }
  }

  /** The client tells when it fell silent, and what was heard, in any order. */
  #measureBargeIn(measured: Measured | null): void {
    const { from, silentAt, isCut } = this.#over ?? {};
    if (from === undefined || silentAt === undefined || !isCut) return;
    this.#over = null;
    measured?.bargeInSilence.record(secondsBetween(from, silentAt));
  }

  /** Ends the subagent of a call. */
  #end(key: string, status: string, at: number, measured: Measured | null): void {
    const id = this.#subagentOf.get(key);
    if (id === undefined) return;
    this.#subagentOf.delete(key);
    // Calls that it waits for end with it, and nobody is told of that.
    for (const below of this.#subagentOf.keys())
      if (below.startsWith(callKey(id, ''))) this.#end(below, status, at, measured);
    this.#endOne(id, status, at, measured);
  }

  #born(id: string, birth: z.infer<typeof spawned>, at: number, isParked: boolean): void {
    const attributes = { [names.AGENT_NAME]: birth.name };
    const above = this.subagents.get(birth.parentId ?? '');
    const root = above?.root ?? { [names.ROOT_AGENT]: birth.name };
    this.subagents.set(id, { at, attributes, root, isParked });
    if (typeof birth.callId === 'string')
      this.#subagentOf.set(callKey(birth.parentId ?? '', birth.callId), id);
  }

  /** Ends a subagent that no call waits for: its own events are all that tells of its end. */
  #endDetached(id: string, status: string, at: number, measured: Measured | null): void {
    if (![...this.#subagentOf.values()].includes(id)) this.#endOne(id, status, at, measured);
  }

  #endOne(id: string, status: string, at: number, measured: Measured | null): void {
    const subagent = this.subagents.get(id);
    if (!subagent) return;
    this.subagents.delete(id);
    this.#spans.delete(`subagent:${id}`);
    const attributes = { ...subagent.attributes, [names.OUTCOME]: status };
    measured?.duration.record(secondsBetween(subagent.at, at), attributes);
  }
}

/** A state of a subagent's machine in which it waits for an answer. */
function isWaiting(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'waiting_for_input' in value;
}

/** Whether the call has run is not known. */
const IN_DOUBT = 'NEEDS_RECONCILE';
const FAILURES: ReadonlySet<string> = new Set(['failed', 'timed_out', 'lost']);

function callKey(unit: string, callId: string): string {
  return `${unit}:${callId}`;
}

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
  check('meteredJournal', optionsSchema, options);
  const scopes = new Map<string, ScopeMeasures>();
  const clock = options.environment?.clock;
  let instruments: Measured | null = null;

  /** METERED-JOURNAL-3. Instruments that are made before a provider is registered stay without effect. */
  const measured = (): Measured | null => {
    if (instruments) return instruments;
    const { meterProvider = metrics.getMeterProvider(), loggerProvider } = options;
    const meter = meterProvider.getMeter('offstage', OFFSTAGE_VERSION);
    if (meter === createNoopMeter() && !loggerProvider) return null;
    instruments = new Measured(
      meter,
      clock,
      scopes,
      loggerProvider?.getLogger('offstage', OFFSTAGE_VERSION),
    );
    return instruments;
  };
  const measuresOf = (scope: string): ScopeMeasures => {
    const known = scopes.get(scope) ?? new ScopeMeasures();
    scopes.set(scope, known);
    return known;
  };
  const { rest, leave } = watchedJournal(journal, {
    scopes,
    isOn: () => measured() !== null,
    restore(scope, kept) {
      const measures = measuresOf(scope);
      for (const entry of kept) measures.take(entry, null);
    },
  });

  return {
    ...rest,
    append(entry) {
      const began = clock?.now() ?? 0;
      const kept = (): void =>
        quietly(() => {
          const to = measured();
          if (clock) to?.append.record(secondsBetween(began, clock.now()));
          if (!to) return;
          const measures = measuresOf(entry.scope);
          measures.isLive = true;
          measures.take(entry, to);
        });
      const refused = (error: unknown): void =>
        quietly(() => {
          const isFenced = isA(error, OffstageError) && codeOf(error) === 'FENCED';
          const span = scopes.get(entry.scope)?.spanOf(entry.unit);
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
