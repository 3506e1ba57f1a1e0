// The state of one scope, reconstructed from its events. It is the source of the scope's spans and measurements.
//
// Owns:     the state that spans and measurements need from earlier events: running subagents, the times of questions,
//           and the deliveries of a turn.
// Does not: write spans (`scope-spans.ts`), record metrics (`instruments.ts`), or decide when an entry counts (the two
//           journals do).

import { type Attributes, type SpanContext, SpanKind, type Tracer } from '@opentelemetry/api';
import type { z } from 'zod';
import { standsForAll, type JournalEntry } from '../../actors/ports/journal.ts';
import type { Measured, Severity } from './instruments.ts';
import { secondsBetween } from './instruments.ts';
import * as names from './names.ts';
import {
  CALLER,
  isOfTurn,
  REPLY,
  ROOT,
  ScopeSpans,
  traceparentOf,
  TURN,
  WORDS,
} from './scope-spans.ts';
import { attributesOf, type Spawned, SubagentFold, toolAttributes, USED } from './subagent-fold.ts';
import * as fields from './traced-events.ts';
import { readAs } from './traced-events.ts';

/** The entry to append, and an action to run after it has been written. */
export interface Observed {
  readonly entry: JournalEntry;
  readonly kept: () => void;
}

/** A call by the lead agent, until its result has been heard. */
interface Call {
  name?: string;
  agentName?: string | undefined;
  subagentId?: string;
  /** The time at which the tool started in this process. */
  ranFrom?: number | undefined;
  /** Whether the result will be delivered later. */
  isBackground?: boolean;
  endedAt?: number;
  /** The time from which the result has been due but not heard. */
  unheardSince?: number | undefined;
}

/** A model call outside of turns, such as a summary, a fact extraction or a verdict on claims. */
const ASKED = 'asked';
/** It is unknown whether the call ran. */
const IN_DOUBT = 'NEEDS_RECONCILE';
const FAILURES: ReadonlySet<string> = new Set(['failed', 'timed_out', 'lost']);

export class ScopeFold {
  readonly #scope: string;
  readonly #isTraced: boolean;
  readonly #spans: ScopeSpans;
  readonly #subagents = new Map<string, SubagentFold>();
  /** The subagents whose call has no result yet, by unit and call. */
  readonly #childOf = new Map<string, string>();
  readonly #calls = new Map<string, Call>();
  readonly #questions = new Map<string, { readonly at: number; readonly kind: string }>();
  /** Entries that have been appended but not confirmed, by unit. */
  readonly #underWay = new Map<string, { readonly seq: number; readonly observed: Observed }>();
  #agentName = 'lead';
  /** The token usage of the reply. */
  #replyUsed: Record<string, number> = {};
  /** The error code of the latest attempt at the reply. */
  #replyFailed: string | null = null;
  /** The time at which the turn's reply ended. */
  #repliedAt: number | null = null;
  #hasUserSpoken = false;
  /** Whether the user has spoken and no audio of the reply has been played since then. */
  #areWordsKnown = false;
  /** Whether the caller that sent the user's latest message also sent its span. */
  #hasCaller = false;
  #isUserSpeaking = false;
  /** The time at which the user's latest utterance ended; null once audio of the reply has been played. */
  #userEndedAt: number | null = null;
  #isPlaying = false;
  /**
   * The time at which the user started to speak over the playing audio, the time at which playback stopped, and whether
   * the audio was interrupted.
   */
  #over: { readonly from: number; silentAt?: number; isCut?: true } | null = null;
  /** The deliveries that the turn makes to the user. */
  #told: readonly string[] = [];
  #attempt = 1;
  /** Whether an entry of the scope has been read. */
  #isKnown = false;
  #isLive = false;
  /** Whether an earlier process started the work that is running. */
  #isRestored = false;
  #at = 0;
  #measured: Measured | null = null;

  /** @param isTraced Whether this journal, rather than a journal that wraps it, writes the spans. */
  constructor(scope: string, isTraced: boolean) {
    this.#scope = scope;
    this.#isTraced = isTraced;
    this.#spans = new ScopeSpans(scope);
  }

  /** Reads the entries that an earlier process wrote. */
  restore(entries: readonly JournalEntry[]): void {
    this.#isRestored = true;
    this.#isKnown = true;
    for (const entry of entries) {
      this.#fold(entry);
      this.#rememberSpans(entry);
    }
  }

  /** Whether this process has added an entry. */
  get isLive(): boolean {
    return this.#isLive;
  }

  /** Processes an entry that has been written. */
  measure(entry: JournalEntry, measured: Measured): void {
    this.#isLive = true;
    this.#rememberSpans(entry);
    this.#measured = measured;
    try {
      this.#fold(entry);
    } finally {
      this.#measured = null;
    }
  }

  /** Processes an entry before it is appended. */
  trace(entry: JournalEntry, tracer: Tracer): Observed {
    this.#isLive = true;
    const earlier = this.#underWay.get(entry.unit);
    if (earlier?.seq === entry.seq) return earlier.observed;
    const { begun, following } = this.#spans.write(tracer, (contexts) => {
      if (!this.#isKnown) this.#beginRoot(entry);
      this.#isKnown = true;
      if (this.#isRestored || entry.event.type === 'session.recovered') this.#takeUp(entry.at);
      this.#fold(entry);
      // The entries before a snapshot may be trimmed.
      if (standsForAll(entry)) this.#addContexts(contexts);
    });
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

  /**
   * Ends the open spans, because this process gives up the scope. This includes spans of an event that will not be
   * written.
   */
  leave(): void {
    for (const { observed } of this.#underWay.values()) observed.kept();
    this.#spans.leave(this.#at);
  }

  /** Returns the number of unfinished subagents that are waiting for an answer (`isParked`) or are not. */
  countOf(isParked: boolean): number {
    let found = 0;
    for (const subagent of this.#subagents.values())
      if (!subagent.hasEnded && subagent.isParked === isParked) found += 1;
    return found;
  }

  /** Returns the due times of the results that have not been heard. */
  unheard(): readonly number[] {
    return [...this.#calls.values()].flatMap(({ unheardSince }) => unheardSince ?? []);
  }

  /** Returns the span of the current work or of the work that contains it; null if there is none. */
  readonly spanOf: ScopeSpans['spanOf'] = (work) => this.#spans.spanOf(work);

  /**
   * Like `spanOf`, but if the work has no span yet (while it is being prepared), returns the span that will be its
   * parent.
   */
  readonly placeOf: ScopeSpans['spanOf'] = (work) => {
    const above = this.#subagents.get(work.unit)?.place ?? ROOT;
    return this.spanOf(work) ?? this.#spans.contextOf(above, ROOT) ?? null;
  };

  /** Returns the span of a unit's work or of the scope, which a `tracedJournal` that wraps this journal has started. */
  writtenSpanOf(unit: string): SpanContext | undefined {
    return this.#spans.contextOf(`subagent:${unit}`, TURN, ROOT);
  }

  #rememberSpans({ event }: JournalEntry): void {
    const { traceparents = {} } = readAs(fields.contexts, event) ?? {};
    for (const [key, value] of Object.entries(traceparents))
      // A log record belongs to the work as a whole.
      if (this.#isTraced || !/^(?:step|tool|call):/.test(key))
        this.#spans.rememberNamed(key, value);
  }

  /**
   * Starts the root span. The root span of a session is a child of the request that opened the session. A run that was
   * started by a request has no root span.
   */
  #beginRoot({ at, event }: JournalEntry): void {
    const caller = readAs(fields.fromCaller, event) ? this.#comesFrom(CALLER, event) : '';
    if (event.type !== 'subagent.spawned' || caller === '')
      this.#spans.beginTrace(at, event.type === 'session.opened' ? caller : '');
  }

  #takeUp(at: number): void {
    this.#isRestored = false;
    this.#isPlaying = false;
    this.#isUserSpeaking = false;
    this.#spans.takeUp(
      at,
      (key) => this.#subagents.get(key.replace(/^subagent:/, ''))?.spawned.home ?? ROOT,
    );
  }

  #fold(entry: JournalEntry): void {
    const { unit, actor, at, event } = entry;
    this.#at = at;
    const subagent = this.#subagents.get(unit);
    const callId = actor.replace(/^call:/, '');
    switch (event.type) {
      case 'session.opened':
        this.#agentName = readAs(fields.opened, event)?.inputs.books.agentName ?? this.#agentName;
        return;
      case 'session.snapshot':
      case 'service.snapshot':
        this.#takeSnapshot(event, at);
        return;
      case 'session.recovered':
        this.#log(entry, 'session.recovered', {});
        // If a tool runs again, its time is measured from the new start.
        for (const call of this.#calls.values()) call.ranFrom = undefined;
        this.#isPlaying = false;
        this.#over = null;
        this.#userEndedAt = null;
        return;
      case 'agent.entered':
        this.#agentName = readAs(fields.entered, event)?.agentName ?? this.#agentName;
        return;
      case 'user.said':
        this.#hasUserSpoken = true;
        this.#areWordsKnown = true;
        this.#hasCaller = this.#comesFrom(CALLER, event) === CALLER;
        return;
      case 'utterance.started':
        this.#isUserSpeaking = true;
        this.#userEndedAt = null;
        this.#over = this.#isPlaying ? { from: at } : null;
        if (!this.#spans.running.has(WORDS))
          this.#spans.begin(WORDS, 'user_input', at, { parent: ROOT, attributes: {} });
        return;
      case 'utterance.ended':
        this.#isUserSpeaking = false;
        this.#userEndedAt = at;
        return;
      case 'utterance.settled':
      case 'deadline.settle':
        this.#spans.end(WORDS, at);
        return;
      case 'response.requested':
        this.#reply(at);
        return;
      case 'usage.reported': {
        const report = readAs(fields.reported, event);
        if (report) this.#reported(report, at);
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
        this.#over = null;
        if (this.#userEndedAt !== null) {
          this.#spans.note(TURN, { [names.TIME_TO_FIRST_AUDIO_MS]: at - this.#userEndedAt });
          if (this.#areWordsKnown)
            this.#measured?.timeToFirstAudio.record(secondsBetween(this.#userEndedAt, at));
        }
        this.#userEndedAt = null;
        this.#areWordsKnown = false;
        return;
      case 'playout.drained':
        this.#isPlaying = false;
        if (this.#over) this.#over.silentAt = at;
        this.#measureBargeIn();
        if (this.#isUserSpeaking) this.#spans.note(TURN, { [names.USER_SPOKE_OVER]: true });
        if (!this.#spans.running.has(REPLY)) this.#endTurn(at);
        return;
      case 'assistant.cut':
        if (this.#over) this.#over.isCut = true;
        this.#measureBargeIn();
        return;
      case 'conversation.noted': {
        // In journals of earlier versions, only this event reports a delivery.
        const { itemId = '' } = readAs(fields.noted, event) ?? {};
        const id = /^(.+)\.told\.\d+$/.exec(itemId)?.[1] ?? /^(.+\.q\d+)\.note$/.exec(itemId)?.[1];
        if (id !== undefined) this.#tell([...this.#told, id]);
        return;
      }
      case 'delivery.playing': {
        const { deliveryIds = this.#told, attempt } = readAs(fields.playing, event) ?? {};
        this.#tell(deliveryIds);
        this.#attempt = attempt ?? 1;
        this.#spans.note(TURN, { [names.ATTEMPT]: attempt });
        for (const id of deliveryIds)
          this.#log(entry, 'delivery.offered', {
            [names.DELIVERY_ID]: id,
            [names.ATTEMPT]: this.#attempt,
          });
        return;
      }
      case 'delivery.heard':
        this.#heard(entry);
        return;
      case 'delivery.shown':
      case 'delivery.dismissed': {
        const call = this.#calls.get(actor.replace(/^delivery:/, ''));
        if (call) call.unheardSince = undefined;
        return;
      }
      case 'delivery.interrupted':
        this.#measured?.interruptions.add(1);
        this.#spans.note(TURN, { [names.HEARD]: false });
        return;
      case 'delivery.failed':
        this.#log(entry, 'delivery.failed', { [names.ATTEMPT]: this.#attempt }, 'WARN');
        return;
      case 'transport.lost': {
        const { error, retryInMs } = readAs(fields.lost, event) ?? {};
        const of = { [names.ERROR_TYPE]: error?.code ?? '_OTHER' };
        this.#log(entry, 'connection.lost', of, retryInMs === null ? 'ERROR' : 'WARN');
        return;
      }
      case 'entry.set_aside':
      case 'session.lost': {
        const of = { [names.EVENT_TYPE]: readAs(fields.quarantined, event)?.event ?? '_OTHER' };
        this.#log(entry, event.type, of, 'ERROR');
        return;
      }
      case 'budget.exhausted':
        this.#log(entry, 'budget.exhausted', logged(unit, subagent), 'WARN');
        return;
      case 'tool.called': {
        const call = readAs(fields.called, event);
        if (!call) return;
        const { name, agentName } = call;
        this.#calls.set(call.callId, { name, agentName });
        this.#spans.begin(`call:${call.callId}`, `execute_tool ${name}`, at, {
          parent: this.#spans.running.has(TURN) ? TURN : ROOT,
          attributes: toolAttributes(name, call.callId),
        });
        return;
      }
      case 'call.validated': {
        const execution = readAs(fields.validated, event)?.execution;
        // A call that starts a subagent is not a tool call.
        if (execution === 'inline') this.#callOf(callId).ranFrom = at;
        if (execution === 'background') this.#callOf(callId).isBackground = true;
        return;
      }
      case 'call.executed':
      case 'deadline.execution':
        this.#executed(entry, callId);
        return;
      case 'subagent.accepted': {
        const subagentId = readAs(fields.accepted, event)?.subagentId;
        if (subagentId !== undefined) this.#callOf(callId).subagentId = subagentId;
        this.#spans.note(actor, { [names.SUBAGENT_ID]: subagentId });
        return;
      }
      case 'call.invalid':
        this.#spans.end(actor, at, { [names.ERROR_TYPE]: 'INVALID_CALL' });
        return;
      case 'call.answered':
        this.#spans.end(`call:${readAs(fields.ofCall, event)?.callId ?? ''}`, at);
        return;
      case 'subagent.ended': {
        const outcome = readAs(fields.ended, event)?.outcome;
        if (outcome) this.#callEnded(entry, callId, outcome);
        return;
      }
      case 'subagent.spawned': {
        const spawned = readAs(fields.spawned, event);
        if (spawned) this.#spawned(unit, spawned, at);
        return;
      }
      case 'slot.granted':
        subagent?.work(at);
        return;
      case 'model.responded': {
        const answer = readAs(fields.responded, event);
        if (!answer) return;
        const { calls, response, again } = answer;
        this.#measured?.used(response, subagent?.agent ?? {});
        this.#measured?.asked(response, subagent?.agent ?? {});
        subagent?.responded(at, answer);
        if (calls.length === 0 && again !== true) this.#endDetached(unit, 'completed', at);
        return;
      }
      case 'model.retried':
      case 'model.failed':
        this.#failed(entry, subagent);
        return;
      case 'tool.settled': {
        const result = readAs(fields.settled, event);
        if (result) this.#settled(entry, subagent, result);
        return;
      }
      case 'question.asked': {
        const question = readAs(fields.asked, event);
        // After a crash, the new process asks the question again.
        if (!question || this.#questions.has(question.requestId)) return;
        const { requestId, kind } = question;
        this.#questions.set(requestId, { at, kind });
        const of = { [names.QUESTION_KIND]: kind, [names.REQUEST_ID]: requestId };
        this.#log(entry, 'question.opened', of);
        return;
      }
      case 'question.answered':
      case 'question.expired':
      case 'question.withdrawn': {
        subagent?.answered(readAs(fields.answered, event)?.approved === true);
        const requestId = readAs(fields.closed, event)?.requestId ?? '';
        const question = this.#questions.get(requestId);
        if (!question) return;
        this.#questions.delete(requestId);
        const of = {
          [names.QUESTION_KIND]: question.kind,
          [names.OUTCOME]: event.type.slice('question.'.length),
        };
        this.#measured?.wait.record(secondsBetween(question.at, at), of);
        this.#log(entry, 'question.closed', { ...of, [names.REQUEST_ID]: requestId });
        return;
      }
      case 'subagent.cancel':
      case 'deadline.run': {
        const status = event.type === 'deadline.run' ? 'timed_out' : 'cancelled';
        this.#endWork(unit, at, { [names.OUTCOME]: status });
        this.#endDetached(unit, status, at);
        return;
      }
      default:
    }
  }

  #log(
    { scope, unit, at }: JournalEntry,
    name: string,
    attributes: Attributes,
    severity: Severity = 'INFO',
  ): void {
    if (!this.#measured) return;
    const all = { [names.CONVERSATION_ID]: scope, ...attributes };
    this.#measured.log(
      { name: `offstage.${name}`, at, severity, attributes: all },
      this.writtenSpanOf(unit),
    );
  }

  /** If the earlier entries were trimmed, the snapshot is the only source. */
  #takeSnapshot(event: unknown, at: number): void {
    const { books, delegation } = readAs(fields.snapshot, event) ?? {};
    this.#agentName = books?.agentName ?? this.#agentName;
    const known = readAs(fields.traced, event)?.traced;
    const working = new Map(known?.subagents.map((subagent) => [subagent.id, subagent]));
    for (const { id, bornAt, birth, rest } of delegation?.subagents ?? []) {
      if (this.#subagents.has(id) || rest.outcome !== undefined) continue;
      const one = this.#spawned(id, birth, bornAt ?? at, working.get(id) ?? { parent: ROOT });
      one.isParked = isWaiting(rest.life?.snapshot.value);
      one.takeState({ pending: [], isUncertain: true, hasWorked: true, step: 0 });
    }
    // The snapshot was written by a process without tracing.
    if (!known) return;
    const { agentName, hasUserSpoken, hasCaller } = known;
    this.#agentName = agentName;
    this.#hasUserSpoken = hasUserSpoken;
    this.#hasCaller = hasCaller;
    this.#spans.running.clear();
    for (const { key, ...work } of known.running) this.#spans.running.set(key, work);
    for (const { callId, ...call } of known.calls) Object.assign(this.#callOf(callId), call);
    for (const [id, subagent] of this.#subagents) {
      const state = working.get(id);
      if (state) subagent.takeState(state);
      else this.#endWork(id, at, {});
    }
  }

  /**
   * Returns the state that `#takeSnapshot` reads. The lead agent's turn is omitted, because it ends together with its
   * process.
   */
  #toState(): z.infer<typeof fields.state> {
    return {
      agentName: this.#agentName,
      hasUserSpoken: this.#hasUserSpoken,
      hasCaller: this.#hasCaller,
      running: [...this.#spans.running]
        .filter(([key]) => !isOfTurn(key))
        .map(([key, { attributes, ...work }]) => ({
          key,
          ...work,
          attributes: attributes as Record<string, string | number>,
        })),
      subagents: [...this.#subagents.values()].flatMap((subagent) =>
        subagent.isOver ? [] : [subagent.toState()],
      ),
      calls: [...this.#calls].flatMap(([callId, { subagentId, endedAt }]) =>
        subagentId === undefined
          ? []
          : [{ callId, subagentId, ...(endedAt !== undefined && { endedAt }) }],
      ),
    };
  }

  /** Adds the contexts that a later span may need as a parent or a link. */
  #addContexts(to: Record<string, string>): void {
    const keys = new Set([ROOT, CALLER, WORDS]);
    for (const [key, { parent }] of this.#spans.running) keys.add(key).add(parent);
    for (const { isOver, spawned } of this.#subagents.values())
      if (!isOver) keys.add(`subagent:${spawned.id}`).add(spawned.parent).add(spawned.home);
    for (const [callId, { subagentId }] of this.#calls)
      if (subagentId !== undefined) keys.add(`call:${callId}`).add(`subagent:${subagentId}`);
    for (const key of keys) {
      const context = this.#spans.contextOf(key);
      if (context) to[key] = traceparentOf(context);
    }
  }

  #reported(report: z.infer<typeof fields.reported>, at: number): void {
    const { agentName, usage, model, tookMs, beganAt } = report;
    const isBeside = typeof beganAt === 'number';
    const agent = agentOf(agentName);
    this.#measured?.used(report, agent);
    this.#measured?.asked(
      { model, tookMs: tookMs ?? (isBeside ? at - beganAt : undefined) },
      agent,
    );
    if (isBeside) {
      // A model call outside of turns is reported only when it ends.
      const isOfLead = agentName === this.#agentName && this.#spans.running.has(TURN);
      this.#spans.begin(ASKED, 'chat', beganAt, {
        kind: SpanKind.CLIENT,
        parent: isOfLead ? TURN : ROOT,
        attributes: { [names.OPERATION]: 'chat', [names.AGENT_NAME]: agentName },
      });
      this.#spans.end(ASKED, at, attributesOf({ usage, model }));
      return;
    }
    // A turn may have several responses, and a voice model may report usage after the last of them.
    for (const [name, attribute] of USED) {
      const { [name]: tokens } = usage;
      if (tokens !== undefined)
        this.#replyUsed[attribute] = (this.#replyUsed[attribute] ?? 0) + tokens;
    }
    this.#spans.note(REPLY, { ...this.#replyUsed, ...names.namesOfModel(model) });
  }

  /** The model call has ended. Its span remains open for later reports until the turn ends. */
  #replied(at: number): void {
    if (this.#spans.running.delete(REPLY)) this.#repliedAt = at;
  }

  #endTurn(at: number): void {
    const isOver = !this.#spans.running.has(REPLY);
    const code = this.#replyFailed;
    this.#spans.end(
      REPLY,
      isOver ? (this.#repliedAt ?? at) : at,
      code === null ? {} : { [names.ERROR_TYPE]: code },
    );
    this.#replyFailed = null;
    this.#repliedAt = null;
    this.#spans.end(TURN, at);
  }

  /** Starts the span of a lead agent's turn and the span of the turn's model call. */
  #reply(at: number): void {
    this.#endTurn(at);
    const isAnswer = this.#hasUserSpoken;
    const caller = isAnswer && this.#hasCaller ? this.#spans.contextOf(CALLER) : undefined;
    // A conversation stays in its trace, so a caller in a different trace is linked instead.
    const isWithin = caller?.traceId === this.#spans.rootAt(at).traceId;
    const agent = { [names.AGENT_NAME]: this.#agentName };
    this.#spans.begin(
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
            ...this.#spans.linkTo(WORDS, 'answers'),
            ...(caller && !isWithin ? this.#spans.linkTo(CALLER, 'request') : []),
          ]
        : [],
    );
    this.#hasUserSpoken = false;
    this.#hasCaller = false;
    this.#told = [];
    this.#replyUsed = {};
    const attributes = { ...agent, [names.OPERATION]: 'chat' };
    this.#spans.begin(REPLY, 'chat', at, { kind: SpanKind.CLIENT, parent: TURN, attributes });
  }

  /** Links the turn to the work that it reports or asks about. */
  #tell(deliveryIds: readonly string[]): void {
    for (const deliveryId of deliveryIds) {
      if (this.#told.includes(deliveryId)) continue;
      const asker = /^(.+)\.q\d+$/.exec(deliveryId)?.[1];
      const id = asker ?? this.#calls.get(deliveryId)?.subagentId;
      if (id !== undefined)
        this.#spans.link(TURN, `subagent:${id}`, asker === undefined ? 'delivers' : 'asks');
    }
    this.#told = [...new Set(deliveryIds)];
  }

  #heard(entry: JournalEntry): void {
    const { at } = entry;
    this.#measured?.attempts.record(this.#attempt);
    const ends = this.#told.flatMap((id) => this.#calls.get(id)?.endedAt ?? []);
    this.#spans.note(TURN, {
      [names.HEARD]: true,
      ...(ends.length === 0 ? {} : { [names.TIME_TO_HEARD_MS]: at - Math.min(...ends) }),
    });
    for (const endedAt of ends) this.#measured?.timeToHeard.record(secondsBetween(endedAt, at));
    for (const id of this.#told) {
      this.#calls.delete(id);
      const of = { [names.DELIVERY_ID]: id, [names.ATTEMPT]: this.#attempt };
      this.#log(entry, 'delivery.heard', of);
    }
  }

  /** The client may report the end of playback before or after the part that was heard. */
  #measureBargeIn(): void {
    const { from, silentAt, isCut } = this.#over ?? {};
    if (from === undefined || silentAt === undefined || !isCut) return;
    this.#over = null;
    this.#measured?.bargeInSilence.record(secondsBetween(from, silentAt));
  }

  #callOf(callId: string): Call {
    const call = this.#calls.get(callId) ?? {};
    this.#calls.set(callId, call);
    return call;
  }

  #executed(entry: JournalEntry, callId: string): void {
    const { at, event } = entry;
    const { failed, output } = readAs(fields.executed, event) ?? {};
    const { name, agentName, ranFrom } = this.#calls.get(callId) ?? {};
    const isLate = event.type !== 'call.executed';
    const code = isLate ? 'TIMEOUT' : output?.code;
    const isError = isLate || failed === true;
    if (isError && code === IN_DOUBT) this.#inDoubt(entry, callId, name, {});
    // A deadline that arrives late does not belong to any call.
    else if (ranFrom !== undefined)
      this.#measured?.ran(
        { tool: name, tookMs: at - ranFrom },
        agentName === undefined ? {} : agentOf(agentName),
        isError ? (code ?? '_OTHER') : undefined,
      );
    if (ranFrom !== undefined) this.#calls.delete(callId);
  }

  #inDoubt(entry: JournalEntry, callId: string, tool: string | undefined, of: Attributes): void {
    const call = { [names.TOOL_CALL_ID]: callId, [names.TOOL_NAME]: tool };
    this.#log(entry, 'call_in_doubt', { ...of, ...call }, 'ERROR');
  }

  /** Ends the work of a lead agent's call. */
  #callEnded(
    entry: JournalEntry,
    callId: string,
    { status, error }: z.infer<typeof fields.ended>['outcome'],
  ): void {
    const { actor, at } = entry;
    const failedId = FAILURES.has(status) ? this.#childOf.get(callKey('', callId)) : undefined;
    if (failedId !== undefined)
      this.#log(
        entry,
        'subagent.failed',
        {
          ...logged(failedId, this.#subagents.get(failedId)),
          [names.OUTCOME]: status,
          [names.ERROR_TYPE]: error?.code ?? '_OTHER',
        },
        'WARN',
      );
    const call = this.#callOf(callId);
    call.endedAt = at;
    if (call.isBackground === true) call.unheardSince = at;
    call.isBackground = false;
    // If an inline call fails, the call ends as well.
    this.#spans.end(actor, at, { [names.OUTCOME]: status });
    if (call.subagentId !== undefined)
      this.#endWork(call.subagentId, at, {
        [names.OUTCOME]: status,
        [names.ERROR_TYPE]: error?.code ?? undefined,
      });
    this.#endOfCall(callKey('', callId), status, at);
  }

  /** Records a failed model call, whether or not it is retried. */
  #failed(entry: JournalEntry, subagent: SubagentFold | undefined): void {
    const { unit, at, event } = entry;
    const { error, response, agentName, ...call } = readAs(fields.failed, event) ?? {};
    const code = error?.code ?? '_OTHER';
    const agent = agentName === undefined ? (subagent?.agent ?? {}) : agentOf(agentName);
    this.#measured?.asked(response ?? call, agent, code);
    if (event.type === 'model.retried') return;
    if (response) this.#measured?.used(response, agent);
    const { [names.ROOT_AGENT]: _, ...of } = agent;
    const failure = { ...of, [names.ERROR_TYPE]: code };
    this.#measured?.failures.add(1, failure);
    const ofUnit = agentName === undefined ? { [names.SUBAGENT_ID]: unit } : {};
    this.#log(entry, 'model.failed', { ...ofUnit, ...failure }, 'WARN');
    if (unit === this.#scope) {
      this.#replyFailed = code;
      return;
    }
    // A response that cannot be used still has usage to record.
    if (response) this.#spans.note(`step:${unit}`, attributesOf(response));
    this.#endWork(unit, at, { [names.ERROR_TYPE]: code });
    this.#endDetached(unit, 'failed', at);
  }

  /** Records the result of a subagent's call. */
  #settled(
    entry: JournalEntry,
    subagent: SubagentFold | undefined,
    { callId, tookMs, outcome }: z.infer<typeof fields.settled>,
  ): void {
    const { unit, at } = entry;
    const isError = outcome.status !== 'ok';
    const code = isError ? (outcome.error?.code ?? '_OTHER') : undefined;
    const tool = subagent?.toolOf(callId);
    this.#measured?.ran({ tool, tookMs }, subagent?.agent ?? {}, code);
    if (outcome.error?.code === IN_DOUBT)
      this.#inDoubt(entry, callId, tool, logged(unit, subagent));
    subagent?.settled(at, callId, outcome.status, code);
    this.#endOfCall(callKey(unit, callId), isError ? 'failed' : 'completed', at);
  }

  #spawned(
    id: string,
    { name, callId, parentId, relay, traceparent }: z.infer<typeof fields.spawned>,
    spawnedAt: number,
    known: Partial<Pick<Spawned, 'parent' | 'home'>> = {},
  ): SubagentFold {
    const caller = this.#comesFrom(`caller:${id}`, { traceparent });
    const above = this.#subagents.get(parentId ?? '')?.spawned;
    const home = known.home ?? (caller === '' ? (above?.home ?? ROOT) : caller);
    const ofCall = typeof callId === 'string' ? callKey(parentId ?? '', callId) : null;
    const isOfLead = typeof parentId !== 'string';
    const call = ofCall === null ? home : isOfLead ? `call:${callId}` : `tool:${ofCall}`;
    const parent = known.parent ?? call;
    const isRemote = typeof relay === 'string';
    const root = above?.root ?? name;
    const spawned = { id, name, root, spawnedAt, parent, home, ofCall, isRemote };
    const subagent = new SubagentFold(spawned, this.#spans);
    this.#subagents.set(id, subagent);
    if (ofCall !== null) this.#childOf.set(ofCall, id);
    if (typeof callId === 'string' && isOfLead) this.#callOf(callId).subagentId = id;
    return subagent;
  }

  /** Ends the subagent of a call. */
  #endOfCall(key: string, status: string, at: number): void {
    const id = this.#childOf.get(key);
    if (id === undefined) return;
    this.#childOf.delete(key);
    // The calls of descendants end together with the subagent, without events of their own.
    for (const below of this.#childOf.keys())
      if (below.startsWith(callKey(id, ''))) this.#endOfCall(below, status, at);
    this.#endOne(id, status, at);
  }

  /** Ends a subagent that no call is waiting for. Only the subagent's own events report its end. */
  #endDetached(id: string, status: string, at: number): void {
    const key = this.#subagents.get(id)?.spawned.ofCall ?? '';
    if (this.#childOf.get(key) !== id) this.#endOne(id, status, at);
  }

  #endOne(id: string, status: string, at: number): void {
    const subagent = this.#subagents.get(id);
    if (!subagent) return;
    if (subagent.isOver) this.#subagents.delete(id);
    if (subagent.hasEnded) return;
    subagent.hasEnded = true;
    const { name, spawnedAt } = subagent.spawned;
    const attributes = { [names.AGENT_NAME]: name, [names.OUTCOME]: status };
    this.#measured?.duration.record(secondsBetween(spawnedAt, at), attributes);
  }

  #endWork(id: string, at: number, attributes: Attributes): void {
    const subagent = this.#subagents.get(id);
    subagent?.end(at, attributes);
    if (subagent?.hasEnded === true) this.#subagents.delete(id);
  }

  /** Stores the caller's span that an event names. Returns the key of the span; empty if there is no span. */
  #comesFrom(key: string, event: unknown): string {
    const { traceparent = '' } = readAs(fields.fromCaller, event) ?? {};
    return this.#spans.rememberNamed(key, traceparent) ? key : '';
  }
}

function callKey(unit: string, callId: string): string {
  return `${unit}:${callId}`;
}

/** Returns the usage attributes of a lead agent. */
function agentOf(name: string): Attributes {
  return { [names.AGENT_NAME]: name, [names.ROOT_AGENT]: name };
}

/** Returns the log attributes of a subagent. */
function logged(id: string, subagent: SubagentFold | undefined): Attributes {
  return { [names.AGENT_NAME]: subagent?.spawned.name, [names.SUBAGENT_ID]: id };
}

/** Whether a subagent in this machine state is waiting for an answer. */
function isWaiting(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'waiting_for_input' in value;
}
