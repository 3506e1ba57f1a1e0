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
import type { z } from 'zod';
import { standsForAll, type JournalEntry, type TracedWork } from '../../actors/ports/journal.ts';
import { readTraceparent } from '../../values/traceparent.ts';
import * as names from './names.ts';
import * as fields from './traced-events.ts';
import { readAs } from './traced-events.ts';

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
  /** Its latest step was not seen: which calls of it have no result is not known. */
  isUncertain: boolean;
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
/** A model call beside the turns: a summary, facts, a verdict on claims. */
const ASKED = 'asked';
/** The span of the caller who sent the latest words of the user. */
const CALLER = 'caller';
/** The contexts that are kept beside the root's; the oldest are forgotten first. */
const MAX_CONTEXTS = 500;

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
  /** The code with which its last attempt has failed. */
  #replyFailed: string | null = null;
  /** When the reply of the turn was over. */
  #repliedAt: number | null = null;
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
  #isLive = false;
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
      const { success, data } = fields.contexts.safeParse(entry.event);
      if (!success) continue;
      for (const [key, value] of Object.entries(data.traceparents)) {
        const context = contextOf(value);
        if (context) this.#remember(key, context);
      }
    }
  }

  /** This process has added an entry. */
  get isLive(): boolean {
    return this.#isLive;
  }

  observe(entry: JournalEntry): Observed {
    this.#isLive = true;
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
      if (standsForAll(entry)) this.#addContexts(begun);
    } finally {
      this.#begun = null;
    }
    const hasBegun = Object.keys(begun).length > 0;
    const event = hasBegun
      ? {
          ...entry.event,
          traceparents: begun,
          ...(standsForAll(entry) && { traced: this.#toState() }),
        }
      : entry.event;
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

  /** Ends what is open, also by an event that will not be kept: this process leaves the scope. */
  leave(): void {
    for (const { observed } of this.#underWay.values()) observed.kept();
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
    const caller = readAs(fields.fromCaller, event) ? this.#comesFrom(CALLER, event) : '';
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
      if (isOfTurn(key)) continue;
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
        this.#agentName = readAs(fields.opened, event)?.inputs.books.agentName ?? this.#agentName;
        return;
      case 'session.snapshot':
      case 'service.snapshot':
        this.#takeSnapshot(event);
        return;
      case 'agent.entered':
        this.#agentName = readAs(fields.entered, event)?.agentName ?? this.#agentName;
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
      case 'usage.reported': {
        const report = readAs(fields.reported, event);
        if (typeof report?.beganAt === 'number') this.#asked(report, report.beganAt, at);
        else if (report) this.#used(report);
        return;
      }
      case 'response.waiting':
        this.#replied(at);
        return;
      case 'response.ended':
        this.#replied(at);
        if (!this.#isPlaying) this.#endTurn(at);
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
        if (!this.#running.has(REPLY)) this.#endTurn(at);
        return;
      case 'conversation.noted':
        this.#tell(readAs(fields.noted, event)?.itemId ?? '');
        return;
      case 'delivery.playing': {
        const { deliveryIds = [], attempt } = readAs(fields.playing, event) ?? {};
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
        for (const id of this.#told) this.#calls.delete(id);
        return;
      }
      case 'delivery.interrupted':
        this.#note(TURN, { [names.HEARD]: false });
        return;
      case 'tool.called': {
        const call = readAs(fields.called, event);
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
        const subagentId = readAs(fields.accepted, event)?.subagentId;
        const call = this.#calls.get(actor.replace(/^call:/, ''));
        if (call && subagentId !== undefined) call.subagentId = subagentId;
        this.#note(actor, { [names.SUBAGENT_ID]: subagentId });
        return;
      }
      case 'call.invalid':
        this.#end(actor, at, { [names.ERROR_TYPE]: 'INVALID_CALL' });
        return;
      case 'call.answered':
        this.#end(`call:${readAs(fields.ofCall, event)?.callId ?? ''}`, at);
        return;
      case 'subagent.ended': {
        const call = this.#calls.get(actor.replace(/^call:/, ''));
        const outcome = readAs(fields.ended, event)?.outcome;
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
        const birth = readAs(fields.spawned, event);
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
        const answer = readAs(fields.responded, event);
        if (subagent && answer) this.#responded(unit, subagent, at, answer);
        return;
      }
      case 'model.failed': {
        if (unit === this.#scope) {
          this.#replyFailed = readAs(fields.failed, event)?.error.code ?? '_OTHER';
          return;
        }
        const { error, response } = readAs(fields.failed, event) ?? {};
        const code = error?.code ?? '_OTHER';
        // An answer that cannot be used counts all the same.
        if (response)
          this.#note(`step:${unit}`, {
            ...attributesOf(response.usage),
            ...names.namesOfModel(response.model),
          });
        this.#endSubagent(unit, at, { [names.ERROR_TYPE]: code });
        return;
      }
      case 'tool.settled': {
        const result = readAs(fields.settled, event);
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
        if (subagent) this.#answered(subagent, readAs(fields.answered, event)?.approved === true);
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

  /** Where the entries before it are trimmed, a snapshot is all that tells of them. */
  #takeSnapshot(event: unknown): void {
    const known = readAs(fields.traced, event)?.traced;
    if (known) {
      const { agentName, hasUserSpoken, hasCaller } = known;
      this.#agentName = agentName;
      this.#hasUserSpoken = hasUserSpoken;
      this.#hasCaller = hasCaller;
      this.#running.clear();
      for (const { key, ...work } of known.running) this.#running.set(key, work);
      this.#calls.clear();
      for (const { callId, ...call } of known.calls) this.#calls.set(callId, call);
      this.#subagents.clear();
      for (const { id, pending, ...subagent } of known.subagents)
        this.#subagents.set(id, {
          ...subagent,
          pending: new Map(pending.map(({ callId, ...call }) => [callId, call])),
          used: { input: 0, output: 0 },
        });
      return;
    }
    const { books, delegation } = readAs(fields.snapshot, event) ?? {};
    this.#agentName = books?.agentName ?? this.#agentName;
    for (const { id, birth, rest } of delegation?.subagents ?? []) {
      if (this.#subagents.has(id) || rest.outcome !== undefined) continue;
      const one = this.#born(id, birth, { parent: ROOT, hasWorked: true });
      this.#subagents.set(id, { ...one, isUncertain: true });
      if (typeof birth.callId === 'string' && typeof birth.parentId !== 'string')
        this.#calls.set(birth.callId, { subagentId: id });
    }
  }

  /** As `#takeSnapshot` reads it. A turn of the lead agent ends with its process. */
  #toState(): z.infer<typeof fields.state> {
    return {
      agentName: this.#agentName,
      hasUserSpoken: this.#hasUserSpoken,
      hasCaller: this.#hasCaller,
      running: [...this.#running]
        .filter(([key]) => !isOfTurn(key))
        .map(([key, { attributes, ...work }]) => ({
          key,
          ...work,
          attributes: attributes as Record<string, string | number>,
        })),
      subagents: [...this.#subagents].map(([id, subagent]) => {
        const { used: _, ...own } = subagent;
        const pending = [...own.pending].map(([callId, call]) => ({ callId, ...call }));
        return { id, ...own, pending };
      }),
      calls: [...this.#calls].flatMap(([callId, { subagentId, ...call }]) =>
        subagentId === undefined ? [] : [{ callId, subagentId, ...call }],
      ),
    };
  }

  /** Adds the contexts that a later span may be a child of, or link to. */
  #addContexts(to: Record<string, string>): void {
    const keys = new Set([ROOT, CALLER, WORDS]);
    for (const [key, { parent }] of this.#running) keys.add(key).add(parent);
    for (const [id, { parent, home }] of this.#subagents)
      keys.add(`subagent:${id}`).add(parent).add(home);
    for (const [callId, { subagentId }] of this.#calls)
      if (subagentId !== undefined) keys.add(`call:${callId}`).add(`subagent:${subagentId}`);
    for (const key of keys) {
      const context = this.#contexts.get(key);
      if (context) to[key] = traceparentOf(context);
    }
  }

  /** A model call beside the turn, which is told when it has ended. */
  #asked(
    { agentName: name, usage, model }: z.infer<typeof fields.reported>,
    beganAt: number,
    at: number,
  ): void {
    const parent = name === this.#agentName && this.#running.has(TURN) ? TURN : ROOT;
    this.#begin(ASKED, 'chat', beganAt, {
      kind: SpanKind.CLIENT,
      parent,
      attributes: { [names.OPERATION]: 'chat', [names.AGENT_NAME]: name },
    });
    this.#end(ASKED, at, { ...attributesOf(usage), ...names.namesOfModel(model) });
  }

  /** A turn may take several responses, and a voice model may report after its last one. */
  #used({ usage, model }: z.infer<typeof fields.reported>): void {
    for (const [name, attribute] of USED) {
      const { [name]: tokens } = usage;
      if (tokens !== undefined)
        this.#replyUsed[attribute] = (this.#replyUsed[attribute] ?? 0) + tokens;
    }
    this.#note(REPLY, { ...this.#replyUsed, ...names.namesOfModel(model) });
  }

  /** The model call is over; its span waits for a report that comes later, until the turn ends. */
  #replied(at: number): void {
    if (this.#running.delete(REPLY)) this.#repliedAt = at;
  }

  #endTurn(at: number): void {
    const isOver = !this.#running.has(REPLY);
    const code = this.#replyFailed;
    this.#end(
      REPLY,
      isOver ? (this.#repliedAt ?? at) : at,
      code === null ? {} : { [names.ERROR_TYPE]: code },
    );
    this.#replyFailed = null;
    this.#repliedAt = null;
    this.#end(TURN, at);
  }

  /** Begins a turn of the lead agent, with its model call. */
  #reply(at: number): void {
    this.#endTurn(at);
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
    if (subagent.pending.size === 0 && !subagent.isUncertain) this.#beginStep(unit, subagent, at);
  }

  #responded(
    unit: string,
    subagent: Subagent,
    at: number,
    { step, again, calls, response }: z.infer<typeof fields.responded>,
  ): void {
    const { finish, usage, model } = response;
    subagent.step = step;
    subagent.isUncertain = false;
    if (subagent.isRemote) {
      subagent.used.input += usage.inputTokens ?? 0;
      subagent.used.output += usage.outputTokens ?? 0;
      this.#note(`subagent:${unit}`, {
        [names.INPUT_TOKENS]: subagent.used.input,
        [names.OUTPUT_TOKENS]: subagent.used.output,
      });
    }
    this.#end(`step:${unit}`, at, {
      ...attributesOf(usage),
      ...names.namesOfModel(model),
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
    if (subagent.isUncertain) return;
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
    this.#subagents.delete(unit);
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
    // An event that was not seen would have ended it.
    this.#spans.get(key)?.end(new Date(at));
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
      describe(span, attributes);
      if (attributes[names.ERROR_TYPE] !== undefined)
        span.setStatus({ code: SpanStatusCode.ERROR });
      span.end(new Date(at));
    });
  }

  #note(key: string, attributes: Attributes): void {
    const span = this.#spans.get(key);
    if (span) this.#following.push(() => describe(span, attributes));
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
    const context = contextOf(readAs(fields.fromCaller, event)?.traceparent ?? '');
    if (!context) return '';
    this.#remember(key, context);
    return key;
  }

  #born(
    unit: string,
    birth: z.infer<typeof fields.spawned>,
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
      isUncertain: false,
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

/** Which model is asked is known with its answer. */
function describe(span: Span, attributes: Attributes): void {
  span.setAttributes(attributes);
  const { [names.REQUEST_MODEL]: model } = attributes;
  if (typeof model === 'string') span.updateName(`chat ${model}`);
}

function attributesOf(usage: z.infer<typeof fields.usageShape>): Attributes {
  return Object.fromEntries(USED.map(([name, attribute]) => [attribute, usage[name]]));
}

/** A turn of the lead agent, its model call and its tool calls, and words of the user. */
function isOfTurn(key: string): boolean {
  return key === TURN || key === REPLY || key === WORDS || key.startsWith('call:');
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

/** The header of W3C Trace Context. */
export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

export function contextOf(given: string): SpanContext | null {
  const [, traceId, spanId, flags] = readTraceparent(given)?.split('-') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
