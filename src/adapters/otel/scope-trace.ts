// The trace of one scope, folded from its events: the spans that are open, and the contexts of those that a later
// span is a child of or links to.

import {
  type Attributes,
  INVALID_SPAN_CONTEXT,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { z } from 'zod';
import type { JournalEntry, TracedWork } from '../../actors/ports/journal.ts';
import { readTraceparent } from '../../values/traceparent.ts';
import * as names from './names.ts';

/** The entry to append, and what follows once it is kept. */
export interface Observed {
  readonly entry: JournalEntry;
  readonly kept: () => void;
}

/** What a span says, whether or not this process began it. */
interface Work {
  readonly name: string;
  readonly kind: SpanKind;
  /** The key of the parent; unknown: the root. */
  readonly parent: string;
  readonly attributes: Attributes;
}

interface Subagent {
  readonly name: string;
  /** The key of the call that spawned it. */
  readonly parent: string;
  /** The key of the span that its later work is below: the root, or the span of the caller. */
  readonly home: string;
  /** An agent of somebody else does the work. */
  readonly isRemote: boolean;
  /** The calls of its latest step without a result, with their kind. */
  readonly pending: Map<string, { readonly toolName: string; kind: string }>;
  step: number;
  hasWorked: boolean;
  /** The usage of somebody else's agent since its work began or went on. */
  used: { input: number; output: number };
}

const ROOT = 'root';
const TURN = 'turn';
/** The model call of the turn. */
const REPLY = 'reply';
/** What the user says. */
const WORDS = 'words';
/** The span of the caller who sent the latest words of the user. */
const CALLER = 'caller';
/** The contexts that are kept beside the root's; the oldest are forgotten first. */
const MAX_CONTEXTS = 500;

const text = z.string();
const count = z.number().optional().catch(undefined);

/** The fields that a trace reads; an event in another form is passed over. */
const opened = z.object({ inputs: z.object({ books: z.object({ agentName: text }) }) });
const entered = z.object({ agentName: text });
const noted = z.object({ itemId: text });
const playing = z.object({ attempt: z.number(), deliveryIds: z.array(text) });
const called = z.object({ callId: text, name: text });
const ofCall = z.object({ callId: text });
const accepted = z.object({ subagentId: text });
const ended = z.object({
  outcome: z.object({ status: text, error: z.object({ code: text }).nullish() }),
});
const spawned = z.object({
  name: text,
  callId: text.nullish(),
  parentId: text.nullish(),
  relay: text.nullish(),
  traceparent: text.nullish(),
});
const usageShape = z.object({
  inputTokens: count,
  outputTokens: count,
  cachedInputTokens: count,
  cacheWriteTokens: count,
  reasoningTokens: count,
});
const reported = z.object({ usage: usageShape });
const responded = z.object({
  step: z.number(),
  again: z.boolean().nullish(),
  calls: z.array(z.object({ callId: text, kind: text })),
  response: z.object({
    finish: text.optional(),
    calls: z.array(z.object({ callId: text, toolName: text })),
    usage: usageShape,
  }),
});
const failed = z.object({ error: z.object({ code: text }) });
const settled = z.object({
  callId: text,
  outcome: z.object({
    status: text,
    error: z.object({ code: text.nullish() }).optional(),
  }),
});
const answered = z.object({ approved: z.boolean().nullish() });
const fromCaller = z.object({ traceparent: text });
const snapshot = z.object({
  delegation: z.object({
    subagents: z.array(z.object({ id: text, birth: spawned })),
  }),
  books: z.object({ agentName: text }),
});
const traced = z.object({ traceparents: z.record(text, text) });

const USED = [
  ['inputTokens', names.INPUT_TOKENS],
  ['outputTokens', names.OUTPUT_TOKENS],
  ['cachedInputTokens', names.CACHED_TOKENS],
  ['cacheWriteTokens', names.CACHE_WRITE_TOKENS],
  ['reasoningTokens', names.REASONING_TOKENS],
] as const;

export class ScopeTrace {
  readonly #tracer: Tracer;
  readonly #scope: string;
  readonly #contexts = new Map<string, SpanContext>();
  /** Begun and not ended, in any process. */
  readonly #running = new Map<string, Work>();
  /** Those of them that this process began. */
  readonly #spans = new Map<string, Span>();
  readonly #subagents = new Map<string, Subagent>();
  /** The subagent of a call of the lead agent, and when it ended. */
  readonly #calls = new Map<string, { subagentId?: string; endedAt?: number }>();
  /** Appended and not yet kept, by unit. */
  readonly #underWay = new Map<string, { readonly seq: number; readonly observed: Observed }>();
  #agentName = 'lead';
  /** The tokens of the reply. */
  #replyUsed: Record<string, number> = {};
  #hasUserSpoken = false;
  /** The latest words of the user came from a caller that names its span. */
  #hasCaller = false;
  #isUserSpeaking = false;
  /** Since the end of the user's last utterance nothing has been heard. */
  #userEndedAt: number | null = null;
  #isPlaying = false;
  /** The deliveries that the turn tells. */
  #told: readonly string[] = [];
  /** An entry of the scope was seen. */
  #isKnown = false;
  /** A process before this one began what is running. */
  #isRestored = false;
  #at = 0;

  // Of the entry at hand; null while entries are only folded.
  #begun: Record<string, string> | null = null;
  #following: (() => void)[] = [];

  constructor(tracer: Tracer, scope: string) {
    this.#tracer = tracer;
    this.#scope = scope;
  }

  /** Folds the entries of a process before this one. */
  restore(entries: readonly JournalEntry[]): void {
    this.#isRestored = true;
    this.#isKnown = true;
    for (const entry of entries) {
      this.#fold(entry);
      const { success, data } = traced.safeParse(entry.event);
      if (!success) continue;
      for (const [key, value] of Object.entries(data.traceparents)) {
        const context = contextOf(value);
        if (context) this.#remember(key, context);
      }
    }
  }

  observe(entry: JournalEntry): Observed {
    const earlier = this.#underWay.get(entry.unit);
    if (earlier?.seq === entry.seq) return earlier.observed;
    const begun: Record<string, string> = {};
    const following: (() => void)[] = [];
    this.#begun = begun;
    this.#following = following;
    try {
      if (!this.#isKnown) this.#beginRoot(entry);
      this.#isKnown = true;
      if (this.#isRestored || entry.event.type === 'session.recovered') this.#takeUp(entry.at);
      this.#fold(entry);
      // The entries before a snapshot may be trimmed.
      if (entry.event.type === 'session.snapshot')
        for (const [key, context] of this.#contexts) begun[key] = traceparentOf(context);
    } finally {
      this.#begun = null;
    }
    const hasBegun = Object.keys(begun).length > 0;
    const event = hasBegun ? { ...entry.event, traceparents: begun } : entry.event;
    const observed = {
      entry: hasBegun ? { ...entry, event } : entry,
      kept: () => {
        this.#underWay.delete(entry.unit);
        for (const follow of following) follow();
      },
    };
    this.#underWay.set(entry.unit, { seq: entry.seq, observed });
    return observed;
  }

  /** Ends what is open: this process leaves the scope. */
  leave(): void {
    for (const span of this.#spans.values()) span.end(new Date(this.#at));
    this.#spans.clear();
  }

  /** The span of the work under way, or of the work that it is a part of; null: it does none. */
  spanOf({ unit, part }: Omit<TracedWork, 'scope'>): SpanContext | null {
    const isLead = unit === this.#scope;
    const whole = isLead ? TURN : `subagent:${unit}`;
    const own = !part
      ? whole
      : part === 'model'
        ? isLead
          ? REPLY
          : `step:${unit}`
        : isLead
          ? `call:${part.callId}`
          : `tool:${unit}:${part.callId}`;
    const span = this.#spans.get(own) ?? this.#spans.get(whole);
    return span?.spanContext() ?? null;
  }

  /** As `spanOf`; of work that has no span yet, such as its preparation, the one that its span will be below. */
  placeOf(work: Omit<TracedWork, 'scope'>): SpanContext | null {
    const subagent = this.#subagents.get(work.unit);
    const above = subagent?.hasWorked === true ? subagent.home : subagent?.parent;
    return (
      this.spanOf(work) ?? this.#contexts.get(above ?? ROOT) ?? this.#contexts.get(ROOT) ?? null
    );
  }

  /** A session that a request opened is below its span; a run that a request began has its spans there, and no root. */
  #beginRoot({ at, event }: JournalEntry): void {
    const caller = readAs(fromCaller, event) ? this.#comesFrom(CALLER, event) : '';
    if (event.type !== 'subagent.spawned' || caller === '')
      this.#beginTrace(at, event.type === 'session.opened' ? caller : '');
  }

  /** @param caller The key of the span above. */
  #beginTrace(at: number, caller: string): void {
    this.#begin(ROOT, 'offstage.session', at, { parent: caller, attributes: {} });
    this.#end(ROOT, at);
  }

  /** Begins anew what was running when the process before this one ended. */
  #takeUp(at: number): void {
    this.#isRestored = false;
    this.#isPlaying = false;
    this.#isUserSpeaking = false;
    this.#spans.clear();
    const running = [...this.#running];
    this.#running.clear();
    for (const [key, work] of running) {
      // A turn of the lead agent ends with its process, and so do its calls and the words of the user.
      if (key === TURN || key === REPLY || key === WORDS || key.startsWith('call:')) continue;
      const home = this.#subagents.get(key.replace(/^subagent:/, ''))?.home ?? ROOT;
      const parent = work.parent.startsWith('subagent:') ? work.parent : home;
      this.#begin(key, work.name, at, { ...work, parent }, this.#linkTo(key, 'continues'));
    }
  }

  #fold({ unit, actor, at, event }: JournalEntry): void {
    this.#at = at;
    const subagent = this.#subagents.get(unit);
    switch (event.type) {
      case 'session.opened':
        this.#agentName = readAs(opened, event)?.inputs.books.agentName ?? this.#agentName;
        return;
      case 'session.snapshot': {
        const kept = readAs(snapshot, event);
        if (!kept) return;
        this.#agentName = kept.books.agentName;
        for (const { id, birth } of kept.delegation.subagents)
          if (!this.#subagents.has(id))
            this.#subagents.set(id, this.#born(id, birth, { parent: ROOT, hasWorked: true }));
        return;
      }
      case 'agent.entered':
        this.#agentName = readAs(entered, event)?.agentName ?? this.#agentName;
        return;
      case 'user.said':
        this.#hasUserSpoken = true;
        this.#hasCaller = this.#comesFrom(CALLER, event) === CALLER;
        return;
      case 'utterance.started':
        this.#isUserSpeaking = true;
        if (!this.#running.has(WORDS))
          this.#begin(WORDS, 'user_input', at, { parent: ROOT, attributes: {} });
        return;
      case 'utterance.ended':
        this.#isUserSpeaking = false;
        this.#userEndedAt = at;
        return;
      case 'utterance.settled':
      case 'deadline.settle':
        this.#end(WORDS, at);
        return;
      case 'response.requested':
        this.#reply(at);
        return;
      case 'usage.reported':
        this.#used(readAs(reported, event)?.usage ?? {});
        return;
      case 'response.waiting':
        this.#end(REPLY, at);
        return;
      case 'response.ended':
        this.#end(REPLY, at);
        if (!this.#isPlaying) this.#end(TURN, at);
        return;
      case 'playout.started':
        this.#isPlaying = true;
        if (this.#userEndedAt !== null)
          this.#note(TURN, { [names.TIME_TO_FIRST_AUDIO_MS]: at - this.#userEndedAt });
        this.#userEndedAt = null;
        return;
      case 'playout.drained':
        this.#isPlaying = false;
        if (this.#isUserSpeaking) this.#note(TURN, { [names.USER_SPOKE_OVER]: true });
        if (!this.#running.has(REPLY)) this.#end(TURN, at);
        return;
      case 'conversation.noted':
        this.#tell(readAs(noted, event)?.itemId ?? '');
        return;
      case 'delivery.playing': {
        const { deliveryIds = [], attempt } = readAs(playing, event) ?? {};
        for (const id of deliveryIds) this.#tells(id);
        this.#note(TURN, { [names.ATTEMPT]: attempt });
        return;
      }
      case 'delivery.heard': {
        const ends = this.#told.flatMap((id) => this.#calls.get(id)?.endedAt ?? []);
        this.#note(TURN, {
          [names.HEARD]: true,
          ...(ends.length === 0 ? {} : { [names.TIME_TO_HEARD_MS]: at - Math.min(...ends) }),
        });
        return;
      }
      case 'delivery.interrupted':
        this.#note(TURN, { [names.HEARD]: false });
        return;
      case 'tool.called': {
        const call = readAs(called, event);
        if (!call) return;
        this.#calls.set(call.callId, {});
        const parent = this.#running.has(TURN) ? TURN : ROOT;
        this.#begin(`call:${call.callId}`, `execute_tool ${call.name}`, at, {
          parent,
          attributes: toolAttributes(call.name, call.callId),
        });
        return;
      }
      case 'subagent.accepted': {
        const subagentId = readAs(accepted, event)?.subagentId;
        const call = this.#calls.get(actor.replace(/^call:/, ''));
        if (call && subagentId !== undefined) call.subagentId = subagentId;
        this.#note(actor, { [names.SUBAGENT_ID]: subagentId });
        return;
      }
      case 'call.invalid':
        this.#end(actor, at, { [names.ERROR_TYPE]: 'INVALID_CALL' });
        return;
      case 'call.answered':
        this.#end(`call:${readAs(ofCall, event)?.callId ?? ''}`, at);
        return;
      case 'subagent.ended': {
        const call = this.#calls.get(actor.replace(/^call:/, ''));
        const outcome = readAs(ended, event)?.outcome;
        if (!call || !outcome) return;
        call.endedAt = at;
        // A failure of an inline call ends the call, too.
        this.#end(actor, at, { [names.OUTCOME]: outcome.status });
        if (call.subagentId !== undefined)
          this.#endSubagent(call.subagentId, at, {
            [names.OUTCOME]: outcome.status,
            [names.ERROR_TYPE]: outcome.error?.code,
          });
        return;
      }
      case 'subagent.spawned': {
        const birth = readAs(spawned, event);
        if (!birth) return;
        const { callId, parentId } = birth;
        const parent =
          typeof callId !== 'string'
            ? null
            : typeof parentId === 'string'
              ? `tool:${parentId}:${callId}`
              : `call:${callId}`;
        this.#subagents.set(unit, this.#born(unit, birth, { parent, hasWorked: false }));
        return;
      }
      case 'slot.granted':
        if (subagent) this.#work(unit, subagent, at);
        return;
      case 'model.responded': {
        const answer = readAs(responded, event);
        if (subagent && answer) this.#responded(unit, subagent, at, answer);
        return;
      }
      case 'model.failed': {
        const code = readAs(failed, event)?.error.code ?? '_OTHER';
        this.#endSubagent(unit, at, { [names.ERROR_TYPE]: code });
        return;
      }
      case 'tool.settled': {
        const result = readAs(settled, event);
        if (!subagent || !result) return;
        const { callId, outcome } = result;
        subagent.pending.delete(callId);
        this.#end(`tool:${unit}:${callId}`, at, {
          [names.OUTCOME]: outcome.status,
          [names.ERROR_TYPE]:
            outcome.status === 'ok' ? undefined : (outcome.error?.code ?? '_OTHER'),
        });
        this.#goOn(unit, subagent, at);
        return;
      }
      case 'question.answered':
      case 'question.expired':
      case 'question.withdrawn':
        if (subagent) this.#answered(subagent, readAs(answered, event)?.approved === true);
        return;
      case 'subagent.cancel':
        this.#endSubagent(unit, at, { [names.OUTCOME]: 'cancelled' });
        return;
      case 'deadline.run':
        this.#endSubagent(unit, at, { [names.OUTCOME]: 'timed_out' });
        return;
      default:
    }
  }

  /** A turn may take several responses, and a voice model may report after its last one. */
  #used(more: z.infer<typeof usageShape>): void {
    for (const [name, attribute] of USED) {
      const { [name]: tokens } = more;
      if (tokens !== undefined)
        this.#replyUsed[attribute] = (this.#replyUsed[attribute] ?? 0) + tokens;
    }
    this.#note(this.#running.has(REPLY) ? REPLY : TURN, { ...this.#replyUsed });
  }

  /** Begins a turn of the lead agent, with its model call. */
  #reply(at: number): void {
    this.#end(REPLY, at);
    this.#end(TURN, at);
    const isAnswer = this.#hasUserSpoken;
    const caller = isAnswer && this.#hasCaller ? this.#contexts.get(CALLER) : undefined;
    // A conversation stays in its trace: a caller in another one is linked.
    const isWithin = caller?.traceId === this.#rootContext(at).traceId;
    const agent = { [names.AGENT_NAME]: this.#agentName };
    this.#begin(
      TURN,
      `invoke_agent ${this.#agentName}`,
      at,
      {
        parent: isWithin ? CALLER : ROOT,
        attributes: {
          ...agent,
          [names.OPERATION]: 'invoke_agent',
          [names.CAUSE]: isAnswer ? 'user' : 'delivery',
        },
      },
      isAnswer
        ? [
            ...this.#linkTo(WORDS, 'answers'),
            ...(caller && !isWithin ? this.#linkTo(CALLER, 'request') : []),
          ]
        : [],
    );
    this.#hasUserSpoken = false;
    this.#hasCaller = false;
    this.#told = [];
    this.#replyUsed = {};
    const attributes = { ...agent, [names.OPERATION]: 'chat' };
    this.#begin(REPLY, 'chat', at, { kind: SpanKind.CLIENT, parent: TURN, attributes });
  }

  /** A note for the model of what it is to say, in journals of earlier versions all that says what it says. */
  #tell(itemId: string): void {
    const deliveryId =
      /^(.+)\.told\.\d+$/.exec(itemId)?.[1] ?? /^(.+\.q\d+)\.note$/.exec(itemId)?.[1];
    if (deliveryId !== undefined) this.#tells(deliveryId);
  }

  /** Links the turn to the work that it tells of, or asks for. */
  #tells(deliveryId: string): void {
    if (this.#told.includes(deliveryId)) return;
    this.#told = [...this.#told, deliveryId];
    const asker = /^(.+)\.q\d+$/.exec(deliveryId)?.[1];
    const subagentId = asker ?? this.#calls.get(deliveryId)?.subagentId;
    const turn = this.#spans.get(TURN);
    if (subagentId === undefined || !turn) return;
    const links = this.#linkTo(`subagent:${subagentId}`, asker === undefined ? 'delivers' : 'asks');
    this.#following.push(() => turn.addLinks(links));
  }

  #work(unit: string, subagent: Subagent, at: number): void {
    const key = `subagent:${unit}`;
    if (this.#running.has(key)) return;
    // The call that spawned it may be long over when it goes on: a link is enough.
    const isFirst = !subagent.hasWorked;
    this.#begin(
      key,
      `invoke_agent ${subagent.name}`,
      at,
      {
        kind: subagent.isRemote ? SpanKind.CLIENT : SpanKind.INTERNAL,
        parent: isFirst ? subagent.parent : subagent.home,
        attributes: {
          [names.OPERATION]: 'invoke_agent',
          [names.AGENT_NAME]: subagent.name,
          [names.SUBAGENT_ID]: unit,
        },
      },
      isFirst ? [] : this.#linkTo(key, 'continues'),
    );
    subagent.hasWorked = true;
    subagent.used = { input: 0, output: 0 };
    for (const [callId, { kind, toolName }] of subagent.pending)
      if (isWork(kind)) this.#beginTool(unit, callId, toolName, at);
    if (subagent.pending.size === 0) this.#beginStep(unit, subagent, at);
  }

  #responded(
    unit: string,
    subagent: Subagent,
    at: number,
    { step, again, calls, response }: z.infer<typeof responded>,
  ): void {
    const { finish, usage } = response;
    subagent.step = step;
    if (subagent.isRemote) {
      subagent.used.input += usage.inputTokens ?? 0;
      subagent.used.output += usage.outputTokens ?? 0;
      this.#note(`subagent:${unit}`, {
        [names.INPUT_TOKENS]: subagent.used.input,
        [names.OUTPUT_TOKENS]: subagent.used.output,
      });
    }
    this.#end(`step:${unit}`, at, {
      ...Object.fromEntries(USED.map(([name, attribute]) => [attribute, usage[name]])),
      [names.FINISH_REASONS]: finish === undefined ? undefined : [finish],
    });
    subagent.pending.clear();
    for (const { callId, kind } of calls) {
      const { toolName = kind } = response.calls.find((call) => call.callId === callId) ?? {};
      subagent.pending.set(callId, { toolName, kind });
      if (isWork(kind)) this.#beginTool(unit, callId, toolName, at);
      else if (kind === 'delegation') {
        // The child is the work.
        this.#beginTool(unit, callId, toolName, at);
        this.#end(`tool:${unit}:${callId}`, at);
      }
    }
    if (response.calls.length === 0 && again !== true)
      this.#endSubagent(unit, at, { [names.OUTCOME]: 'completed' });
    else this.#goOn(unit, subagent, at);
  }

  /** After a call: the next one goes on, or the model is asked, or the subagent waits. */
  #goOn(unit: string, subagent: Subagent, at: number): void {
    const key = `subagent:${unit}`;
    if (!this.#running.has(key)) return;
    const kinds = [...subagent.pending.values()].map(({ kind }) => kind);
    if (kinds.some(isWork)) return;
    if (kinds.length === 0) this.#beginStep(unit, subagent, at);
    else this.#end(key, at, { [names.PARKED]: 'waiting_for_input' });
  }

  /** Questions are answered in the order in which they were asked. */
  #answered(subagent: Subagent, isApproved: boolean): void {
    for (const [callId, call] of subagent.pending) {
      if (isWork(call.kind) || call.kind === 'delegation') continue;
      if (isApproved) call.kind = 'tool';
      else subagent.pending.delete(callId);
      return;
    }
  }

  #beginStep(unit: string, subagent: Subagent, at: number): void {
    // No model of ours is called: the work of the other agent is the span above.
    if (subagent.isRemote) return;
    const work: Omit<Work, 'name'> = {
      kind: SpanKind.CLIENT,
      parent: `subagent:${unit}`,
      attributes: {
        [names.OPERATION]: 'chat',
        [names.AGENT_NAME]: subagent.name,
        [names.SUBAGENT_ID]: unit,
        [names.STEP]: subagent.step + 1,
      },
    };
    this.#begin(`step:${unit}`, 'chat', at, work);
  }

  #beginTool(unit: string, callId: string, toolName: string, at: number): void {
    this.#begin(`tool:${unit}:${callId}`, `execute_tool ${toolName}`, at, {
      parent: `subagent:${unit}`,
      attributes: { ...toolAttributes(toolName, callId), [names.SUBAGENT_ID]: unit },
    });
  }

  #endSubagent(unit: string, at: number, attributes: Attributes): void {
    for (const key of this.#running.keys())
      if (key === `step:${unit}` || key.startsWith(`tool:${unit}:`)) this.#end(key, at, attributes);
    this.#end(`subagent:${unit}`, at, attributes);
  }

  #begin(
    key: string,
    name: string,
    at: number,
    { kind = SpanKind.INTERNAL, parent, attributes }: Omit<Work, 'name' | 'kind'> & Partial<Work>,
    links: Link[] = [],
  ): void {
    this.#running.set(key, { name, kind, parent, attributes });
    if (!this.#begun) return;
    const above = this.#contexts.get(parent) ?? (key === ROOT ? undefined : this.#rootContext(at));
    const span = this.#tracer.startSpan(
      name,
      {
        kind,
        startTime: new Date(at),
        links,
        attributes: {
          ...attributes,
          [names.CONVERSATION_ID]: this.#scope,
          [names.SESSION_ID]: this.#scope,
        },
      },
      above ? trace.setSpanContext(ROOT_CONTEXT, above) : ROOT_CONTEXT,
    );
    this.#spans.set(key, span);
    this.#remember(key, span.spanContext());
    this.#begun[key] = traceparentOf(span.spanContext());
  }

  #end(key: string, at: number, attributes: Attributes = {}): void {
    this.#running.delete(key);
    const span = this.#spans.get(key);
    if (!span) return;
    this.#spans.delete(key);
    this.#following.push(() => {
      span.setAttributes(attributes);
      if (attributes[names.ERROR_TYPE] !== undefined)
        span.setStatus({ code: SpanStatusCode.ERROR });
      span.end(new Date(at));
    });
  }

  #note(key: string, attributes: Attributes): void {
    const span = this.#spans.get(key);
    if (span) this.#following.push(() => void span.setAttributes(attributes));
  }

  /** The root of the trace, which begins with the first span below it. */
  #rootContext(at: number): SpanContext {
    const known = this.#contexts.get(ROOT);
    if (known) return known;
    this.#beginTrace(at, '');
    return this.#contexts.get(ROOT) ?? INVALID_SPAN_CONTEXT;
  }

  /** Remembers the span of the caller that an event names. Returns its key; empty: it names none. */
  #comesFrom(key: string, event: unknown): string {
    const context = contextOf(readAs(fromCaller, event)?.traceparent ?? '');
    if (!context) return '';
    this.#remember(key, context);
    return key;
  }

  #born(
    unit: string,
    birth: z.infer<typeof spawned>,
    { parent, hasWorked }: { readonly parent: string | null; readonly hasWorked: boolean },
  ): Subagent {
    const caller = this.#comesFrom(`caller:${unit}`, birth);
    const above = this.#subagents.get(birth.parentId ?? '')?.home ?? ROOT;
    const home = caller === '' ? above : caller;
    return {
      name: birth.name,
      parent: parent ?? home,
      home,
      isRemote: typeof birth.relay === 'string',
      pending: new Map(),
      step: 0,
      hasWorked,
      used: { input: 0, output: 0 },
    };
  }

  #linkTo(key: string, link: string): Link[] {
    const context = this.#contexts.get(key);
    return context ? [{ context, attributes: { [names.LINK]: link } }] : [];
  }

  #remember(key: string, context: SpanContext): void {
    this.#contexts.delete(key);
    this.#contexts.set(key, context);
    if (this.#contexts.size <= MAX_CONTEXTS) return;
    for (const oldest of this.#contexts.keys())
      if (oldest !== ROOT) {
        this.#contexts.delete(oldest);
        return;
      }
  }
}

/** A call that runs, in contrast to one that waits for somebody. */
function isWork(kind: string): boolean {
  return kind === 'tool' || kind === 'completion';
}

function toolAttributes(toolName: string, callId: string): Attributes {
  return {
    [names.OPERATION]: 'execute_tool',
    [names.TOOL_NAME]: toolName,
    [names.TOOL_TYPE]: 'function',
    [names.TOOL_CALL_ID]: callId,
  };
}

/** Reads an event; null: it has another form. */
export function readAs<Schema extends z.ZodType>(
  schema: Schema,
  event: unknown,
): z.output<Schema> | null {
  const { success, data } = schema.safeParse(event);
  return success ? data : null;
}

/** The header of W3C Trace Context. */
export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

export function contextOf(given: string): SpanContext | null {
  const [, traceId, spanId, flags] = readTraceparent(given)?.split('-') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
