// The content that belongs to a session's machines: questions, calls, answers, deliveries and the conversation. It is
// folded from the same events as the machines.
//
// Owns:     the records, each stored under the id that its machine uses.
// Does not: decide the effects of an event (machines), or publish anything.
//
// Invariants
//   SESSION-RECORDS-1. A record exists until its machine has ended and the resulting effects have been executed.
//   SESSION-RECORDS-2. Folding is a function of the events: the same events produce the same records.

import { priorityOf, type OutboxItem, type Stamped } from '../../../machines/index.ts';
import type { ConversationLog } from '../../conversation/conversation.ts';
import type {
  ConversationItem,
  MessageItem,
  ConversationLimits,
} from '../../conversation/items.ts';
import {
  approvalPrompt,
  pendingAnswer,
  nudgePrompt,
  questionPrompt,
  readBackText,
  duePrompt,
} from '../../conversation/prompts.ts';
import type { Note } from '../../notes/note.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import { Directives, type Directive } from '../../contracts/directives.ts';
import { LiveConversation, type Unfinished } from './live-conversation.ts';
import type {
  Answer,
  AnsweredQuestion,
  CallRecord,
  ClientCallRecord,
  ConversationEvent,
  DeliveryRecord,
  QuestionRecord,
  ReturnedResult,
  ScheduleRecord,
  ToldResult,
} from '../../contracts/records.ts';
import type { EventFor, Received, SessionMessage } from '../../contracts/session-protocol.ts';
import type { BudgetLimits } from '../../contracts/config.ts';
import { coversCall } from '../../contracts/session-views.ts';
import { Cell, Draft, Table } from '../../runtime/draft.ts';
import { outcomeOfTool, readOutcome } from '../../contracts/outcome.ts';
import { addLeadUsage, NO_LEAD_USAGE, type LeadUsage } from '../../contracts/usage.ts';
import {
  resultWords,
  saidOf,
  toldResult,
  type PromptStyle,
  type ResultWords,
} from './synthetic-turns.ts';

type Successor = {
  readonly transferId: string;
  readonly to: string;
  readonly enters?: boolean;
} | null;

/** The failed model calls in the lead agent's current or last response. */
export interface LeadTrouble {
  readonly failed: number;
  /** The code of the latest failure. */
  readonly code: string;
  /** The maximum number of calls, or null if the model is not called again. */
  readonly attempts: number | null;
  /** The time of the next model call, in milliseconds since 1970; null if the model is not called again. */
  readonly retryAt: number | null;
}

/** The records as plain JSON. */
export interface SessionRecordsSnapshot {
  readonly agentName: string;
  readonly requestId: string | null;
  /** @defaultValue false */
  readonly requestIsTyped?: boolean;
  readonly turns: number;
  /** @defaultValue none */
  readonly usage?: LeadUsage;
  /** @defaultValue none */
  readonly raised?: BudgetLimits;
  /** @defaultValue none */
  readonly trouble?: LeadTrouble;
  readonly successor: Successor;
  /** @defaultValue false */
  readonly hasEntered?: boolean;
  /** @defaultValue null */
  readonly takesOverFrom?: string | null;
  readonly directives: readonly Directive[];
  readonly questions: readonly QuestionRecord[];
  /** @defaultValue none */
  readonly answered?: readonly AnsweredQuestion[];
  /** @defaultValue none */
  readonly lasting?: readonly AnsweredQuestion[];
  readonly calls: readonly CallRecord[];
  /** @defaultValue none */
  readonly clientCalls?: readonly ClientCallRecord[];
  /** @defaultValue none */
  readonly schedules?: readonly ScheduleRecord[];
  readonly deliveries: readonly DeliveryRecord[];
  /** @defaultValue none */
  readonly returned?: readonly ReturnedResult[];
  readonly conversation: unknown;
}

/**
 * The maximum number of answered questions that are stored. A user who corrects an answer usually does so soon after
 * giving it.
 */
const MAX_ANSWERED = 4;

/**
 * The maximum number of approvals that remain in effect at the same time. When the oldest is dropped, its calls need
 * approval again.
 */
const MAX_LASTING = 200;

/** The session events after which the failed model calls are no longer shown. */
const TROUBLE_ENDS: ReadonlySet<string> = new Set([
  'response.requested',
  'session.recovered',
  'transfer.ended',
]);

/** The facts that belong to no table of records. */
interface Facts extends Omit<
  Required<SessionRecordsSnapshot>,
  | 'questions'
  | 'calls'
  | 'clientCalls'
  | 'schedules'
  | 'deliveries'
  | 'returned'
  | 'directives'
  | 'conversation'
  | 'trouble'
> {
  readonly directives: Directives;
  /** Null if the lead agent's model has responded since then, or was not called. */
  readonly trouble: LeadTrouble | null;
}

export class SessionRecords {
  /** Holds the changes made by a step. */
  readonly draft = new Draft();
  readonly questions = new Table<QuestionRecord>(this.draft);
  readonly calls = new Table<CallRecord>(this.draft);
  readonly clientCalls = new Table<ClientCallRecord>(this.draft);
  readonly schedules = new Table<ScheduleRecord>(this.draft);
  /** Notices and the results of spawned subagents. All other deliveries are derived from a question or a call. */
  readonly deliveries = new Table<DeliveryRecord>(this.draft);
  /** Results that the lead agent has read, until its reply or a delivery has reported them (ONCE-1). */
  readonly returned = new Table<ReturnedResult>(this.draft);
  /**
   * Results that a reply has reported since the last snapshot. The snapshot itself records that the lead agent has read
   * them.
   */
  readonly #toldByReply = new Table<true>(this.draft);

  /** Formats results and progress for the lead model. */
  readonly words: ResultWords;
  readonly #first: Facts;
  readonly #facts: Cell<Facts>;
  readonly #conversation: LiveConversation;

  constructor(
    agentName: string,
    limits: Partial<ConversationLimits> = {},
    promptStyle: PromptStyle = 'notice',
  ) {
    this.#first = {
      agentName,
      requestId: null,
      requestIsTyped: false,
      answered: [],
      lasting: [],
      turns: 0,
      usage: NO_LEAD_USAGE,
      raised: {},
      trouble: null,
      hasEntered: false,
      takesOverFrom: null,
      successor: null,
      directives: Directives.none,
    };
    this.#facts = new Cell(this.draft, this.#first);
    this.words = resultWords[promptStyle];
    this.#conversation = new LiveConversation(
      limits,
      (id) => this.calls.get(id)?.output,
      this.draft,
    );
  }

  /** The facts that belong to no table of records. */
  get facts(): Facts {
    return this.#facts.value;
  }

  /** The agent that currently leads. */
  get agentName(): string {
    return this.facts.agentName;
  }

  get directives(): Directives {
    return this.facts.directives;
  }

  /** The id of the utterance that the lead agent is answering or has answered last. */
  get utteranceId(): string | null {
    return this.facts.requestId;
  }

  /** The latest answered questions, newest first. */
  get answered(): readonly AnsweredQuestion[] {
    return this.facts.answered;
  }

  /** The approvals that remain in effect because the user has not revoked them, newest first. */
  get lasting(): readonly AnsweredQuestion[] {
    return this.facts.lasting;
  }

  /** The usage of the lead agents' models. */
  get usage(): LeadUsage {
    return this.facts.usage;
  }

  /** Null if the lead agent's model has responded since then, or was not called. */
  get trouble(): LeadTrouble | null {
    return this.facts.trouble;
  }

  /** Changes facts that do not belong to a table of records. */
  note(facts: Partial<Facts>): void {
    this.#facts.value = { ...this.facts, ...facts };
  }

  /** Returns the stored records, for `restore`. */
  toSnapshot(): SessionRecordsSnapshot {
    const { requestIsTyped, usage, raised, trouble, directives, answered, lasting, ...facts } =
      this.facts;
    return {
      ...facts,
      ...(requestIsTyped && { requestIsTyped }),
      ...(usage !== NO_LEAD_USAGE && { usage }),
      ...(Object.keys(raised).length > 0 && { raised }),
      ...(trouble && { trouble }),
      ...(answered.length > 0 && { answered }),
      ...(lasting.length > 0 && { lasting }),
      directives: directives.all,
      questions: [...this.questions.values()],
      calls: [...this.calls.values()],
      ...(this.clientCalls.size > 0 && { clientCalls: [...this.clientCalls.values()] }),
      ...(this.schedules.size > 0 && { schedules: [...this.schedules.values()] }),
      deliveries: [...this.deliveries.values()],
      ...(this.returned.size > 0 && { returned: [...this.returned.values()] }),
      conversation: this.kept.toJSON(),
    };
  }

  /** Resets the records to their initial state. */
  reset(): void {
    this.#facts.value = this.#first;
    for (const table of [this.questions, this.calls, this.deliveries]) table.clear();
    this.clientCalls.clear();
    this.schedules.clear();
    this.returned.clear();
    this.#toldByReply.clear();
    this.#conversation.reset();
  }

  /** Resumes from the result of `toSnapshot`. */
  restore(snapshot: SessionRecordsSnapshot): void {
    const { questions, calls, deliveries, returned, conversation, directives, ...rest } = snapshot;
    const { clientCalls = [], schedules = [], ...facts } = rest;
    for (const schedule of schedules) this.schedules.set(schedule.key, schedule);
    for (const call of clientCalls) this.clientCalls.set(call.id, call);
    this.#facts.value = { ...this.#first, ...facts, directives: Directives.of(directives) };
    for (const question of questions) this.questions.set(question.requestId, question);
    for (const call of calls) {
      const outcome = call.outcome && readOutcome(call.outcome);
      this.calls.set(call.callId, { ...call, outcome });
    }
    // Earlier versions also stored the deliveries that are derived from a question or a call.
    for (const delivery of deliveries)
      if (!this.#deliveryOf(delivery.deliveryId))
        this.deliveries.set(delivery.deliveryId, delivery);
    for (const result of returned ?? []) this.returned.set(result.deliveryId, result);
    this.#conversation.restore(conversation);
  }

  /** The conversation from the folded entries. Steps read this form. */
  get kept(): ConversationLog {
    return this.#conversation.kept;
  }

  /** The conversation so far, with the messages that are still in progress. */
  get conversation(): ConversationLog {
    return this.#conversation.log;
  }

  /** Returns one item of the conversation. */
  item(id: string): ConversationItem | undefined {
    return this.#conversation.item(id);
  }

  /** The number of messages that the lead agent has not completed. */
  get sayings(): number {
    return this.#conversation.sayings;
  }

  /** The messages that the lead agent has not completed yet. */
  get unfinished(): readonly Unfinished[] {
    return this.#conversation.unfinished;
  }

  /** Appends text to a message that the lead agent started at `saidAt`. */
  saying(itemId: string, words: string, saidAt: number, after?: string): boolean {
    return this.#conversation.saying(itemId, words, saidAt, after);
  }

  /** Makes an event readable before it is posted to the unit, and returns the event to post. */
  expect(event: ConversationEvent): ConversationEvent {
    if (event.type === 'call.answered') this.calls.change(event.callId, { isAnswered: true });
    return this.#conversation.expect(event);
  }

  /** Adds input from the user. */
  userSaid(id: string, text: string, at: number, by?: string): void {
    const who = by === undefined ? {} : { by };
    this.#conversation.change((log) => log.add({ id, at, role: 'user', text, ...who }));
  }

  /** Applies an event's content to its record, or creates the record. */
  fold({ kind, id, event }: Received): readonly SessionMessage[] {
    switch (kind) {
      case 'session':
        // The next response may not start soon. Until then, the last failure is shown.
        if (
          TROUBLE_ENDS.has(event.type) ||
          (event.type === 'response.ended' && typeof this.trouble?.retryAt === 'number')
        )
          this.note({ trouble: null });
        if (event.type === 'response.ended') this.note({ turns: this.facts.turns + 1 });
        else if (event.type === 'transfer.started') this.note({ successor: event });
        else if (event.type === 'transfer.ended' && event.error === null) this.#transferred(event);
        return [];
      case 'questions': {
        const { type: _, at, ...asked } = event;
        if (!this.questions.has(asked.requestId))
          this.questions.set(asked.requestId, {
            ...asked,
            askedAt: at,
            answer: null,
            timesUnclear: 0,
            askedAgain: false,
            readBack: false,
          });
        return [];
      }
      case 'question': {
        const question = this.questions.get(id);
        if (!question) return [];
        if (event.type === 'question.answer' || event.type === 'question.settle')
          this.#answer(question, event);
        else if (event.type === 'reading.ended' && event.reading?.to === 'question')
          this.#answer(question, { answer: event.reading.answer, at: event.at });
        else if (event.type === 'deadline.reading')
          this.questions.change(id, {
            askedAgain: true,
            timesLate: (question.timesLate ?? 0) + 1,
          });
        else if (event.type === 'question.withdraw')
          this.questions.change(id, { reason: event.reason });
        else if (event.type === 'question.nudge')
          this.questions.change(id, { nudged: event.language ?? 'en' });
        else if (question.nudged !== undefined && PUTS.has(event.type)) {
          const { nudged: _, ...asked } = question;
          this.questions.set(id, asked);
        }
        return [];
      }
      case 'calls':
        this.#called(event);
        return [];
      case 'clients': {
        const { id: key, name, input, user } = event;
        this.clientCalls.set(key, { id: key, name, input, user });
        return [];
      }
      case 'client':
        if (event.type === 'client.answered') this.clientCalls.change(id, { output: event.output });
        return [];
      case 'schedules':
        this.schedules.set(event.schedule.key, event.schedule);
        return [];
      case 'schedule':
        return this.#scheduled(id, event);
      case 'call': {
        const call = this.calls.get(id);
        if (call) this.calls.change(id, changeOfCall(call, event));
        if (event.type === 'call.executed')
          for (const result of event.returned ?? []) this.returned.set(result.deliveryId, result);
        else if (event.type === 'subagent.ended') this.#settled(id, event.known === true);
        if (event.type === 'subagent.ended' || event.type === 'call.cancel')
          this.#endTask(call?.subagentId ?? null);
        return [];
      }
      case 'notices':
        if (event.kind === 'result') this.#endTask(event.subagentId);
        return this.#posted(event);
      case 'agents':
        this.note({ hasEntered: true, takesOverFrom: null });
        return [];
      case 'directives': {
        const { key, value, scope } = event;
        this.note({ directives: this.directives.set(key, value, scope) });
        return [];
      }
      case 'conversation':
        if (event.type === 'conversation.summarised')
          this.#conversation.change((log) => log.setSummary(event.summary, event.covers));
        else this.#said(event);
        return [];
      case 'usage':
        this.note({ usage: addLeadUsage(this.usage, event.usage) });
        return [];
      case 'lead': {
        const { failed, error } = event;
        const again = event.type === 'model.retried' ? event : { attempts: null, retryAt: null };
        const { attempts, retryAt } = again;
        this.note({ trouble: { failed, code: error.code, attempts, retryAt } });
        return [];
      }
      case 'budget':
        this.note({ raised: { ...this.facts.raised, ...withoutUndefined(event.limits) } });
        return [];
      case 'outbox': {
        const question =
          event.type === 'outbox.add' ? this.questions.get(event.item.deliveryId) : undefined;
        if (question) {
          const times = (question.put?.times ?? 0) + 1;
          const put = { times, text: wordsOfQuestion(question) };
          this.questions.change(question.requestId, { put });
        }
        return [];
      }
      case 'results':
        if (event.type === 'result.told') {
          this.#settled(event.deliveryId, true);
          this.#toldByReply.set(event.deliveryId, true);
        }
        return [];
      case 'delivery':
        if (event.type !== 'delivery.read')
          this.#settled(event.deliveryId, event.type !== 'delivery.unread');
        return [];
      case 'snapshots':
        this.#toldByReply.clear();
        return [];
      // These events only change machines, or `userSaid` and similar methods record their text.
      case 'interaction':
      case 'batch':
      case 'member':
      case 'place':
      case 'services':
      case 'ways':
      case 'reach':
      case 'transfers':
      case 'user':
      case 'answers':
      case 'opening':
        return [];
    }
  }

  /**
   * Returns whether the result of a subagent spawned by the lead agent has been posted as a delivery or reported in a
   * reply.
   */
  knowsResult(deliveryId: string): boolean {
    return this.deliveries.has(deliveryId) || this.#toldByReply.has(deliveryId);
  }

  /**
   * Stops a returned result from waiting for the reply that reports it. If no reply has reported it, a delivery will.
   * The lead agent then does not owe a reply to the calls that returned it.
   */
  #settled(deliveryId: string, isTold: boolean): void {
    const result = this.returned.get(deliveryId);
    if (!result) return;
    this.returned.delete(deliveryId);
    if (!isTold) this.#conversation.change((log) => log.withoutReplyTo(result.callIds));
  }

  /** Returns the delivery with this id: a notice, a question, or a call's result. */
  delivery(id: string): DeliveryRecord | undefined {
    return this.deliveries.get(id) ?? this.#deliveryOf(id);
  }

  /**
   * Builds the prompt for reporting these results together. `working`: the names of members that have no result yet.
   */
  togetherPrompt(ids: readonly string[], working: readonly string[]): Note {
    const told = ids.flatMap((id) => this.#told(id) ?? this.deliveries.get(id)?.result ?? []);
    return this.words.together(told, working);
  }

  /** Applies a transfer to another lead agent, which removes the previous agent's directives. */
  #transferred({ at }: Stamped): void {
    const { successor, agentName: from } = this.facts;
    if (!successor) return;
    const { transferId: id, to, enters = false } = successor;
    this.#conversation.change((log) => log.transfer({ id, at, from, to }));
    this.note({
      directives: this.directives.withoutAgents(),
      agentName: to,
      takesOverFrom: enters ? from : null,
    });
  }

  #answer(question: QuestionRecord, { answer, at }: { readonly answer: Answer | null } & Stamped) {
    this.questions.change(question.requestId, { answer, ...(answer && { answeredAt: at }) });
    if (!answer) return;
    const { askedAt: _, timesUnclear: __, askedAgain: ___, readBack: ____, ...rest } = question;
    const { unread: _____, timesLate: ______, ...asked } = rest;
    const answered = { ...asked, answer, answeredAt: at };
    this.note({ answered: [answered, ...this.answered].slice(0, MAX_ANSWERED) });
    const { action } = asked;
    if (!action || answer.approved === undefined) return;
    if (!answer.approved) {
      // Only the latest decision about a call is in effect.
      this.endLasting((one) => coversCall(one, action));
      return;
    }
    if (!answer.lasts || asked.mayDiffer === false) return;
    const { input } = answer.changed ?? action;
    const lasts = { ...answered, action: { ...action, input } };
    this.note({ lasting: [lasts, ...this.lasting].slice(0, MAX_LASTING) });
  }

  /** Ends approvals that remain in effect. */
  endLasting(isEnded: (approval: AnsweredQuestion) => boolean): void {
    if (this.lasting.some(isEnded))
      this.note({ lasting: this.lasting.filter((one) => !isEnded(one)) });
  }

  #endTask(id: string | null): void {
    this.endLasting(({ answer, subagentId }) => answer.lasts === 'task' && subagentId === id);
  }

  #said(event: ConversationEvent): void {
    this.#conversation.fold(event);
    if (event.type === 'assistant.said' || event.type === 'assistant.cut')
      this.note({ trouble: null });
    if (event.type !== 'call.answered') return;
    this.calls.change(event.callId, { isAnswered: true });
    if (event.isOver) this.calls.delete(event.callId);
  }

  #called(event: EventFor<'calls'> & Stamped): void {
    const { callId, name } = event;
    this.note({ trouble: null });
    this.#conversation.fold({ ...event, calledAt: event.calledAt ?? event.at });
    if (this.calls.has(callId)) return;
    const request = this.#requestOf(event.requestId ?? null);
    this.calls.set(callId, {
      callId,
      name,
      agentName: event.agentName ?? this.agentName,
      arguments: event.arguments,
      input: null,
      output: null,
      request: request?.text ?? null,
      requestId: event.requestId ?? null,
      requestedBy: request?.by ?? null,
      subagentId: null,
      outcome: null,
      isAnswered: false,
      endedAt: 0,
      delivery: 'when_idle',
    });
  }

  #posted(posted: EventFor<'notices'> & Stamped): readonly SessionMessage[] {
    const { deliveryId, kind, priority, label, text, prompt, subagentId, result, at } = posted;
    if (this.deliveries.has(deliveryId)) return [];
    this.#settled(deliveryId, false);
    this.deliveries.set(deliveryId, {
      deliveryId,
      kind,
      priority,
      label,
      text,
      prompt,
      subagentId,
      callId: null,
      answersCall: false,
      ...(result && { result }),
      at,
    });
    const item: OutboxItem = {
      deliveryId,
      kind,
      priority,
      replaces: kind === 'progress' ? subagentId : (posted.replaces ?? null),
      reserved: posted.reserved,
      expiresAt: posted.ttlMs === null ? null : at + posted.ttlMs,
    };
    return [{ actor: 'outbox', event: { type: 'outbox.add', item } }];
  }

  /** Posts the message of a schedule when it is due. */
  #scheduled(
    key: string,
    event: EventFor<`schedule:${string}`> & Stamped,
  ): readonly SessionMessage[] {
    const { say, missed } = this.schedules.get(key) ?? {};
    if (event.type !== 'deadline.schedule' || say === undefined) return [];
    const replaces = missed === 'all' ? {} : { replaces: `schedule:${key}` };
    return [{ actor: 'notices', event: { ...dueNotice(key, say, event), ...replaces } }];
  }

  /** Builds a delivery from the record of a question, or of a call with a result. */
  #deliveryOf(id: string): DeliveryRecord | undefined {
    const question = this.questions.get(id);
    if (question) return deliveryOfQuestion(question);
    const call = this.calls.get(id);
    const told = this.#told(id);
    return call && told ? deliveryOfResult(call, told, this.words) : undefined;
  }

  /** Returns the result of a settled call. */
  #told(callId: string): ToldResult | undefined {
    const call = this.calls.get(callId);
    if (!call?.outcome) return undefined;
    return { ...toldResult(call.name, call.subagentId, call.outcome), input: call.input };
  }

  #requestOf(requestId: string | null): MessageItem | null {
    const item = requestId === null ? undefined : this.kept.get(requestId);
    return item?.role === 'user' ? item : null;
  }
}

/**
 * Returns the notice that a schedule posts when it is due. In a later process, the notice for the same due time has the
 * same id.
 */
export function dueNotice(
  key: string,
  text: string,
  { dueAt, late }: { readonly dueAt: number; readonly late?: string },
): EventFor<'notices'> {
  return {
    type: 'notice.posted',
    deliveryId: `${key}@${dueAt}`,
    kind: 'notice',
    priority: 'normal',
    label: 'REMINDER',
    text,
    prompt: duePrompt(text, late),
    subagentId: null,
    ttlMs: null,
    reserved: false,
  };
}

/** Returns the id in an actor's name: for `question:abc:1`, `abc:1`. */
export function idOf(actor: string): string {
  return actor.slice(actor.indexOf(':') + 1);
}

/** Returns the changes to a call's record that an event of the call's machine makes. */
function changeOfCall(
  { name, pendingMessage = '', detachedAt }: CallRecord,
  event: EventFor<`call:${string}`> & Stamped,
): Partial<CallRecord> {
  // The model has already received an answer to a detached call. Its result is reported by a delivery.
  const executed = (output: unknown, failed: boolean): Partial<CallRecord> =>
    detachedAt === undefined
      ? { output, ...(failed && { failed }) }
      : { outcome: outcomeOfTool(output, failed), endedAt: event.at };
  switch (event.type) {
    case 'call.validated':
      return {
        input: event.input,
        delivery: event.delivery ?? 'when_idle',
        output: event.acknowledge ? pendingAnswer(String(event.message)) : null,
        ...(event.message !== undefined && { pendingMessage: event.message }),
      };
    case 'call.invalid':
      return { output: { error: event.error.message } };
    case 'subagent.rejected':
      return { output: event.output ?? { error: event.error.message } };
    case 'call.placed':
      return event.granted ? { output: pendingAnswer(pendingMessage), detachedAt: event.at } : {};
    case 'call.executed':
      return event.known === true ? {} : executed(event.output, event.failed === true);
    case 'deadline.execution': {
      const error = `Tool "${name}" timed out: whether it was done is not known. Find out before you repeat it.`;
      return detachedAt === undefined
        ? { failed: true, output: { error } }
        : executed({ error, code: 'TIMEOUT' }, true);
    }
    case 'call.cancel': {
      const { reason: cancelReason } = event;
      const output = { error: `Tool "${name}" was cancelled` };
      return { output, ...(typeof cancelReason === 'string' && { cancelReason }) };
    }
    case 'subagent.accepted':
      return { subagentId: event.subagentId };
    case 'subagent.ended':
      return { outcome: readOutcome(event.outcome), endedAt: event.at };
    case 'call.talkedOver':
    case 'deadline.detachment':
    case 'delivery.settled':
      return {};
  }
}

/** The events after which a question is asked in full. */
const PUTS: ReadonlySet<string> = new Set([
  'question.repeat',
  'question.readBack',
  'deadline.reminder',
  'client.attached',
]);

function promptOfQuestion(question: QuestionRecord): DeliveryRecord['prompt'] {
  const {
    kind,
    subagentName,
    question: asked,
    options,
    nudged,
  } = {
    ...question,
    ...question.proposed,
  };
  // An approval is read aloud word for word each time.
  if (kind === 'approval') return approvalPrompt(subagentName, asked, question);
  return nudged === undefined
    ? questionPrompt(subagentName, asked, options)
    : nudgePrompt(subagentName, asked, options, nudged);
}

function wordsOfQuestion({ question, readBack, proposed }: QuestionRecord): string {
  const words = proposed?.question ?? question;
  return readBack ? readBackText(words) : words;
}

function deliveryOfQuestion(question: QuestionRecord): DeliveryRecord {
  return {
    deliveryId: question.requestId,
    kind: 'question',
    priority: 'high',
    label: 'SUBAGENT QUESTION',
    text: wordsOfQuestion(question),
    prompt: promptOfQuestion(question),
    subagentId: question.subagentId,
    callId: null,
    answersCall: false,
    at: question.askedAt,
  };
}

function deliveryOfResult(call: CallRecord, told: ToldResult, words: ResultWords): DeliveryRecord {
  return {
    deliveryId: call.callId,
    kind: 'result',
    priority: priorityOf(call.delivery),
    label: call.name,
    text: call.outcome ? saidOf(told, call.outcome) : told.text,
    prompt: words.one(told),
    subagentId: call.subagentId,
    callId: call.callId,
    answersCall: !call.isAnswered,
    at: call.endedAt,
  };
}
