// The words behind the lives of a session, folded from the same events: questions, calls, answers,
// deliveries, and the conversation itself.
//
// Owns:     the records, under the ids that the machines know.
// Does not: decide the consequences of an event (machines), or publish anything.
//
// Invariants
//   SESSION-RECORDS-1. A record exists as long as its life, and until the consequences of that life are over.
//   SESSION-RECORDS-2. Folding is a function of the events alone: the same events give the same records.

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
} from '../../conversation/prompts.ts';
import type { Note } from '../../notes/note.ts';
import { withoutUndefined } from '../../../values/without-undefined.ts';
import { Directives, type Directive } from '../../contracts/directives.ts';
import { LiveConversation, type Unfinished } from './live-conversation.ts';
import type {
  Answer,
  AnsweredQuestion,
  CallRecord,
  ConversationEvent,
  DeliveryRecord,
  QuestionRecord,
  ToldResult,
} from '../../contracts/records.ts';
import type { EventFor, Received, SessionMessage } from '../../contracts/session-protocol.ts';
import type { BudgetLimits } from '../../contracts/config.ts';
import { readOutcome } from '../../contracts/outcome.ts';
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

/** The failed model calls of the lead agent's response under way, or of its last one. */
export interface LeadTrouble {
  readonly failed: number;
  /** The code of the last failure. */
  readonly code: string;
  /** The calls that are made at most; null: no more is made. */
  readonly attempts: number | null;
  /** When the next call is made, in milliseconds since 1970; null: none is. */
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
  readonly calls: readonly CallRecord[];
  readonly deliveries: readonly DeliveryRecord[];
  readonly conversation: unknown;
}

/** Number of answered questions that are kept: the user corrects an answer soon, or not at all. */
const MAX_ANSWERED = 4;

/** The events of the session after which its last failures count for nothing. */
const TROUBLE_ENDS: ReadonlySet<string> = new Set([
  'response.requested',
  'session.recovered',
  'transfer.ended',
]);

export class SessionRecords {
  readonly questions = new Map<string, QuestionRecord>();
  readonly calls = new Map<string, CallRecord>();
  readonly deliveries = new Map<string, DeliveryRecord>();
  /** The current lead agent. */
  agentName: string;
  directives = Directives.none;
  /** The id of the utterance that the lead agent answers, or answered last. */
  utteranceId: string | null = null;
  /** Whether that utterance was typed. */
  utteranceIsTyped = false;
  /** The questions that were answered last, the latest first. */
  answered: readonly AnsweredQuestion[] = [];
  /** Number of completed turns of the model. */
  turns = 0;
  /** The usage of the lead agents' models. */
  usage = NO_LEAD_USAGE;
  /** The limits of the session's budget that were raised, with their totals. */
  raised: BudgetLimits = {};
  /** Null: the lead agent's model has answered since, or was not asked. */
  trouble: LeadTrouble | null = null;
  /** The first agent's `onEnter` is done. */
  hasEntered = false;
  /** The previous lead agent, until the current one has entered; null: it has. */
  takesOverFrom: string | null = null;
  #successor: Successor = null;

  /** The words in which results and progress reach the lead model. */
  readonly words: ResultWords;
  readonly #firstAgent: string;
  readonly #conversation: LiveConversation;

  constructor(
    agentName: string,
    limits: Partial<ConversationLimits> = {},
    promptStyle: PromptStyle = 'notice',
  ) {
    this.agentName = agentName;
    this.#firstAgent = agentName;
    this.words = resultWords[promptStyle];
    this.#conversation = new LiveConversation(limits, (id) => this.calls.get(id)?.output);
  }

  /** The kept part of the records, for `restore`. */
  toSnapshot(): SessionRecordsSnapshot {
    const { agentName, utteranceId: requestId, turns, hasEntered, takesOverFrom } = this;
    // Copies, because records change after the state is written down.
    const copies = <T extends object>(records: ReadonlyMap<string, T>): readonly T[] =>
      [...records.values()].map((record) => ({ ...record }));
    return {
      agentName,
      requestId,
      ...(this.utteranceIsTyped && { requestIsTyped: true }),
      turns,
      ...(this.usage !== NO_LEAD_USAGE && { usage: this.usage }),
      ...(Object.keys(this.raised).length > 0 && { raised: this.raised }),
      ...(this.trouble && { trouble: this.trouble }),
      successor: this.#successor,
      hasEntered,
      takesOverFrom,
      directives: this.directives.all,
      questions: copies(this.questions),
      ...(this.answered.length > 0 && { answered: this.answered }),
      calls: copies(this.calls),
      deliveries: copies(this.deliveries),
      conversation: this.#conversation.kept.toJSON(),
    };
  }

  /** Resets the records to the state before any event. */
  reset(): void {
    this.agentName = this.#firstAgent;
    this.directives = Directives.none;
    this.utteranceId = null;
    this.utteranceIsTyped = false;
    this.answered = [];
    this.turns = 0;
    this.usage = NO_LEAD_USAGE;
    this.raised = {};
    this.trouble = null;
    this.hasEntered = false;
    this.takesOverFrom = null;
    this.#successor = null;
    this.questions.clear();
    this.calls.clear();
    this.deliveries.clear();
    this.#conversation.reset();
  }

  /** Continues from the state that `toSnapshot` returned. */
  restore(snapshot: SessionRecordsSnapshot): void {
    this.agentName = snapshot.agentName;
    this.utteranceId = snapshot.requestId;
    this.utteranceIsTyped = snapshot.requestIsTyped === true;
    this.answered = snapshot.answered ?? [];
    this.turns = snapshot.turns;
    this.usage = snapshot.usage ?? NO_LEAD_USAGE;
    this.raised = snapshot.raised ?? {};
    this.trouble = snapshot.trouble ?? null;
    this.hasEntered = snapshot.hasEntered === true;
    this.takesOverFrom = snapshot.takesOverFrom ?? null;
    this.directives = Directives.of(snapshot.directives);
    this.#successor = snapshot.successor;
    for (const question of snapshot.questions)
      this.questions.set(question.requestId, { ...question });
    for (const call of snapshot.calls) {
      const outcome = call.outcome && readOutcome(call.outcome);
      this.calls.set(call.callId, { ...call, outcome });
    }
    for (const delivery of snapshot.deliveries) this.deliveries.set(delivery.deliveryId, delivery);
    this.#conversation.restore(snapshot.conversation);
  }

  /** The conversation so far, with the words that are being said. */
  get conversation(): ConversationLog {
    return this.#conversation.log;
  }

  /** Returns one item of the conversation. */
  item(id: string): ConversationItem | undefined {
    return this.#conversation.item(id);
  }

  /** Number of messages that the lead agent has not completed. */
  get sayings(): number {
    return this.#conversation.sayings;
  }

  /** The messages that the lead agent has not completed. */
  get unfinished(): readonly Unfinished[] {
    return this.#conversation.unfinished;
  }

  /** Appends words to a message that the lead agent began at `saidAt`. */
  saying(itemId: string, words: string, saidAt: number, after?: string): boolean {
    return this.#conversation.saying(itemId, words, saidAt, after);
  }

  /** Shows an event that is about to be posted to the unit; returns it in the form to post. */
  expect(event: ConversationEvent): ConversationEvent {
    if (event.type === 'call.answered') this.#answered(event.callId);
    return this.#conversation.expect(event);
  }

  /** Adds words of the user. */
  userSaid(id: string, text: string, at: number, by?: string): void {
    const who = by === undefined ? {} : { by };
    this.#conversation.change((log) => log.add({ id, at, role: 'user', text, ...who }));
  }

  /** Applies the content of an event to an existing life, or begins one. */
  fold({ kind, id, event }: Received): readonly SessionMessage[] {
    switch (kind) {
      case 'session':
        if (TROUBLE_ENDS.has(event.type)) this.trouble = null;
        // The next response may not come soon: until then the failure of this one is shown.
        else if (event.type === 'response.ended' && typeof this.trouble?.retryAt === 'number')
          this.trouble = null;
        if (event.type === 'response.ended') this.turns += 1;
        else if (event.type === 'transfer.started') this.#successor = event;
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
        else if (event.type === 'question.withdraw') question.reason = event.reason;
        else if (event.type === 'question.nudge') {
          question.nudged = event.language ?? 'en';
          this.deliveries.delete(id);
        } else if (question.nudged !== undefined && PUTS.has(event.type)) {
          delete question.nudged;
          this.deliveries.delete(id);
        }
        return [];
      }
      case 'calls':
        this.#called(event);
        return [];
      case 'call': {
        const call = this.calls.get(id);
        if (call) applyToCall(call, event);
        return [];
      }
      case 'notices':
        return this.#posted(event);
      case 'agents':
        this.hasEntered = true;
        this.takesOverFrom = null;
        return [];
      case 'directives': {
        const { key, value, scope } = event;
        this.directives = this.directives.set(key, value, scope);
        return [];
      }
      case 'conversation':
        if (event.type === 'conversation.summarised')
          this.#conversation.change((log) => log.setSummary(event.summary, event.covers));
        else this.#said(event);
        return [];
      case 'usage':
        this.usage = addLeadUsage(this.usage, event.usage);
        return [];
      case 'lead': {
        const { failed, error } = event;
        const again = event.type === 'model.retried' ? event : { attempts: null, retryAt: null };
        const { attempts, retryAt } = again;
        this.trouble = { failed, code: error.code, attempts, retryAt };
        return [];
      }
      case 'budget':
        this.raised = { ...this.raised, ...withoutUndefined(event.limits) };
        return [];
      case 'outbox': {
        const question =
          event.type === 'outbox.add' ? this.questions.get(event.item.deliveryId) : undefined;
        if (question)
          question.put = { times: (question.put?.times ?? 0) + 1, text: wordsOfQuestion(question) };
        return [];
      }
      // These change machines only, or are words that `userSaid` and its like take in.
      case 'interaction':
      case 'batch':
      case 'member':
      case 'delivery':
      case 'place':
      case 'results':
      case 'services':
      case 'transfers':
      case 'user':
      case 'answers':
      case 'opening':
      case 'snapshots':
        return [];
    }
  }

  /** Returns the delivery with this id: a notice, a question, or the result of a call. */
  delivery(id: string): DeliveryRecord | undefined {
    const known = this.deliveries.get(id) ?? this.#deliveryOf(id);
    if (known) this.deliveries.set(id, known);
    return known;
  }

  /**
   * Builds the prompt in which these results are told together; `working`: the names of members without a
   * result.
   */
  togetherPrompt(ids: readonly string[], working: readonly string[]): Note {
    const told = ids.flatMap((id) => this.#told(id) ?? this.deliveries.get(id)?.result ?? []);
    return this.words.together(told, working);
  }

  /** Applies a transfer: the directives to the former agent end. */
  #transferred({ at }: Stamped): void {
    if (!this.#successor) return;
    const { transferId: id, to, enters = false } = this.#successor;
    const from = this.agentName;
    this.#conversation.change((log) => log.transfer({ id, at, from, to }));
    this.directives = this.directives.withoutAgents();
    this.agentName = to;
    this.takesOverFrom = enters ? from : null;
  }

  #answer(question: QuestionRecord, { answer, at }: { readonly answer: Answer | null } & Stamped) {
    question.answer = answer;
    if (!answer) return;
    const { askedAt: _, timesUnclear: __, askedAgain: ___, readBack: ____, ...asked } = question;
    const answered = { ...asked, answer, answeredAt: at };
    this.answered = [answered, ...this.answered].slice(0, MAX_ANSWERED);
  }

  #said(event: ConversationEvent): void {
    this.#conversation.fold(event);
    if (event.type === 'assistant.said' || event.type === 'assistant.cut') this.trouble = null;
    if (event.type !== 'call.answered') return;
    this.#answered(event.callId);
    if (event.isOver) this.calls.delete(event.callId);
  }

  /** Marks a call as answered: its later result is no answer any more. */
  #answered(callId: string): void {
    const call = this.calls.get(callId);
    if (call) call.isAnswered = true;
    const delivery = this.deliveries.get(callId);
    if (delivery?.answersCall) this.deliveries.set(callId, { ...delivery, answersCall: false });
  }

  #called(event: EventFor<'calls'> & Stamped): void {
    const { callId, name } = event;
    this.trouble = null;
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
      replaces: kind === 'progress' ? subagentId : null,
      reserved: posted.reserved,
      expiresAt: posted.ttlMs === null ? null : at + posted.ttlMs,
    };
    return [{ actor: 'outbox', event: { type: 'outbox.add', item } }];
  }

  /** Builds a delivery from the record of a question, or of a call that has a result. */
  #deliveryOf(id: string): DeliveryRecord | undefined {
    const question = this.questions.get(id);
    if (question) return deliveryOfQuestion(question);
    const call = this.calls.get(id);
    const told = this.#told(id);
    return call && told ? deliveryOfResult(call, told, this.words) : undefined;
  }

  /** Returns the content to tell of a settled call. */
  #told(callId: string): ToldResult | undefined {
    const call = this.calls.get(callId);
    if (!call?.outcome) return undefined;
    return { ...toldResult(call.name, call.subagentId, call.outcome), input: call.input };
  }

  #requestOf(requestId: string | null): MessageItem | null {
    const item = requestId === null ? undefined : this.#conversation.kept.get(requestId);
    return item?.role === 'user' ? item : null;
  }
}

/** Returns the id in an actor's name: `question:abc:1` is about `abc:1`. */
export function idOf(actor: string): string {
  return actor.slice(actor.indexOf(':') + 1);
}

/** Records the content of an event of the call's machine. */
function applyToCall(call: CallRecord, event: EventFor<`call:${string}`> & Stamped): void {
  switch (event.type) {
    case 'call.validated':
      call.input = event.input;
      call.delivery = event.delivery ?? 'when_idle';
      call.output = event.acknowledge ? pendingAnswer(String(event.message)) : null;
      break;
    case 'call.invalid':
      call.output = { error: event.error.message };
      break;
    case 'subagent.rejected':
      call.output = event.output ?? { error: event.error.message };
      break;
    case 'call.executed':
      call.output = event.output;
      if (event.failed === true) call.failed = true;
      break;
    case 'deadline.execution':
      call.failed = true;
      call.output = {
        error: `Tool "${call.name}" timed out: whether it was done is not known. Find out before you repeat it.`,
      };
      break;
    case 'call.cancel':
      if (typeof event.reason === 'string') call.cancelReason = event.reason;
      call.output = { error: `Tool "${call.name}" was cancelled` };
      break;
    case 'subagent.accepted':
      call.subagentId = event.subagentId;
      break;
    case 'subagent.ended':
      call.outcome = readOutcome(event.outcome);
      call.endedAt = event.at;
      break;
    case 'delivery.settled':
      break;
  }
}

/** After these a question is said in full. */
const PUTS: ReadonlySet<string> = new Set([
  'question.repeat',
  'question.readBack',
  'deadline.reminder',
  'client.attached',
]);

function promptOfQuestion(question: QuestionRecord): DeliveryRecord['prompt'] {
  const { kind, subagentName, question: asked, options, nudged } = question;
  // An approval is read out exactly, each time.
  if (kind === 'approval') return approvalPrompt(subagentName, asked, question);
  return nudged === undefined
    ? questionPrompt(subagentName, asked, options)
    : nudgePrompt(subagentName, asked, options, nudged);
}

function wordsOfQuestion({ question, readBack }: QuestionRecord): string {
  return readBack ? readBackText(question) : question;
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
