// Carries out what the machines of a session say, after the commit: to the lead agent,
// to the subagents, to the app's hooks and to the screens.
//
// Owns:     nothing; each effect has one place here, those of tool calls in call-effects.
// Does not: decide anything.

import { messageOf } from '../../errors.ts';
import type {
  CallAnswer,
  DropReason,
  Failure,
  HearingGrade,
  QuestionEnd,
} from '../../machines/index.ts';
import { floorOf } from '../../machines/index.ts';
import type { Posted } from '../runtime/commit-unit.ts';
import { callSafely } from '../runtime/host.ts';
import type { AnswerReceipt, DeliveryView, QuestionView, SubagentView } from '../session-views.ts';
import type { Outcome } from '../subagent/outcome.ts';
import type { StepReport } from '../subagent/think.ts';
import { idOf } from './books.ts';
import { CallEffects } from './call-effects.ts';
import type { Utterance } from './lead.ts';
import type { DeliveryRecord } from './records.ts';
import { cancelledNote } from './prompts.ts';
import type { EffectsSession } from './session-parts.ts';

/** What the effects of a session's machines carry, together. */
interface Params {
  readonly attempt: number;
  readonly error: Failure | null;
  readonly requestId: string;
  readonly end: QuestionEnd;
  readonly deliveryId: string;
  readonly deliveryIds: readonly string[];
  readonly reason: DropReason;
  readonly generation: number;
  readonly grade: HearingGrade;
  readonly callId: string;
  readonly answer: CallAnswer;
  readonly ticket: string;
  readonly receipt: AnswerReceipt;
  readonly utterance: Utterance;
  readonly subagentName: string;
}

export class SessionEffects {
  readonly #core: EffectsSession;
  readonly #calls: CallEffects;

  constructor(core: EffectsSession) {
    this.#core = core;
    this.#calls = new CallEffects(core);
  }

  release({ actor, effect }: Posted): void {
    const kind = actor.split(':', 1)[0];
    if (effect.kind === 'start') {
      if (kind === 'call') this.#calls.execute((effect.input as { callId: string }).callId);
    } else if (effect.kind === 'stop') {
      if (kind === 'call') this.#calls.stop(idOf(actor));
    } else this.#do(`${kind}.${effect.name}`, (effect.params ?? {}) as Params);
    this.#project(actor);
  }

  crashed(error: unknown): void {
    const core = this.#core;
    core.host.report(error, `session ${core.id}`);
    core.delegation.kill('the session failed');
    this.#ended({ code: 'INTERNAL', message: messageOf(error), retryable: false });
    core.lead.disconnect();
  }

  stepped(view: SubagentView, report: StepReport): void {
    const { host, hooks, projection } = this.#core;
    projection.emit({ type: 'subagent.changed', subagent: view });
    callSafely(host, 'hook onSubagentStep', () =>
      hooks.onSubagentStep?.({
        subagentId: view.id,
        subagentName: view.name,
        stepNumber: report.step,
        toolCalls: report.toolCalls,
        tokensUsed: report.tokensUsed,
      }),
    );
  }

  subagentEnded(view: SubagentView, outcome: Outcome, callId: string | null): void {
    const { host, hooks, projection } = this.#core;
    projection.emit({ type: 'subagent.changed', subagent: { ...view, outcome } });
    callSafely(host, 'hook onSubagentEnd', () =>
      hooks.onSubagentEnd?.({ subagentId: view.id, subagentName: view.name, outcome }),
    );
    if (callId === null) return;
    if (outcome.status !== 'cancelled') {
      this.#core.receive(`call:${callId}`, { type: 'subagent.ended', outcome });
      return;
    }
    // Nobody waits for a result that was called off; the model must know that none will come.
    this.#core.receive('outbox', { type: 'outbox.unreserve' });
    this.#core.receive(`call:${callId}`, { type: 'call.cancel' });
    this.#core.lead.note(cancelledNote(view.toolName, outcome.error?.message ?? 'cancelled'));
  }

  #do(name: string, params: Params): void {
    const core = this.#core;
    const { lead } = core;
    switch (name) {
      case 'session.connect':
        lead.connect(params.attempt);
        break;
      case 'session.disconnect':
        lead.disconnect();
        break;
      case 'session.giveUpOnUser':
        for (const id of core.unit.questions.ids)
          core.receive(`question:${id}`, { type: 'question.withdraw', reason: 'nobody is there' });
        break;
      case 'session.stopSubagents':
        core.delegation.stop('the session was closed');
        core.delegation.whenEnded(() => core.receive('session', { type: 'subagents.ended' }));
        break;
      case 'session.killSubagents':
        core.delegation.kill('the session was closed');
        break;
      case 'session.ended':
        this.#ended(params.error);
        break;
      case 'question.reply':
        this.#reply(params.requestId, params.end);
        break;
      case 'outbox.offer':
        this.#offer(params.deliveryId, params.generation, params.attempt);
        break;
      case 'outbox.interrupt':
        lead.interrupt();
        break;
      case 'outbox.abandon':
        lead.abandon(params.generation);
        this.#delivery(params.deliveryId, { state: 'pending' });
        break;
      case 'outbox.begun':
        this.#delivery(params.deliveryId, { state: 'playing' });
        break;
      case 'outbox.returned':
        this.#delivery(params.deliveryId, { state: 'pending' });
        break;
      case 'outbox.card':
        this.#delivery(params.deliveryId, { state: 'pending', card: true });
        break;
      case 'outbox.delivered':
        this.#delivered(params.deliveryId, params.grade);
        break;
      case 'outbox.dismissed':
        this.#gone(params.deliveryId, { state: 'dismissed' });
        break;
      case 'outbox.dropped':
        for (const id of params.deliveryIds)
          this.#gone(id, { state: 'dropped', dropped: params.reason });
        break;
      case 'call.validate':
        void this.#calls.validate(params.callId);
        break;
      case 'call.answer':
        this.#calls.answer(params.callId, params.answer);
        break;
      case 'call.delegate':
        this.#calls.delegate(params.callId);
        break;
      case 'call.deliver':
        this.#delivery(params.callId, { state: 'pending' });
        break;
      case 'call.cancelSubagent':
        core.delegation.ofCall(params.callId)?.cancel('its tool call was cancelled');
        this.#forget(params.callId);
        break;
      case 'notices.posted':
        if (!core.projection.delivery(params.deliveryId))
          this.#delivery(params.deliveryId, { state: 'pending' });
        break;
      case 'user.heardUser':
        this.#said(params.utterance);
        lead.heardUser(params.utterance);
        core.said(params.utterance.id);
        break;
      case 'user.overheard':
        this.#said(params.utterance);
        lead.overheard(params.utterance, params.subagentName);
        core.said(params.utterance.id);
        break;
      case 'answers.receipt':
        core.settleReceipt(params.ticket, params.receipt);
        break;
      default:
        break;
    }
  }

  #said({ id, text, startedAt }: Utterance): void {
    const item = { id, role: 'user', text, final: true, at: startedAt } as const;
    this.#core.projection.emit({ type: 'transcript.changed', item });
  }

  #offer(deliveryId: string, generation: number, attempt: number): void {
    const { books, lead } = this.#core;
    const delivery = books.delivery(deliveryId);
    if (!delivery) return;
    const { kind, priority, prompt, text } = delivery;
    this.#delivery(deliveryId, { state: 'offered', attempts: attempt });
    const answersCallId = this.#answerLate(delivery);
    lead.offer({
      deliveryId,
      generation,
      attempt,
      kind,
      priority,
      prompt,
      text,
      answersCallId,
    });
  }

  /**
   * What is about to reach the user, or was waved away, is the answer to the call that stayed
   * open for it: once, however often it is offered. Returns the call, if it is to be answered now.
   */
  #answerLate(delivery: DeliveryRecord): string | null {
    const { deliveryId, callId, answersCall, label: name, text } = delivery;
    if (!answersCall || callId === null) return null;
    this.#core.books.deliveries.set(deliveryId, { ...delivery, answersCall: false });
    this.#calls.answered(callId, name, text);
    return callId;
  }

  /** It reached the user, or was waved away, without being told: the model shall know it all the same. */
  #answerSilently(deliveryId: string): void {
    const { books, lead } = this.#core;
    const delivery = books.delivery(deliveryId);
    const callId = delivery ? this.#answerLate(delivery) : null;
    if (delivery && callId !== null) lead.answerTool(callId, delivery.prompt, false);
  }

  #delivered(deliveryId: string, grade: HearingGrade): void {
    const { host, hooks, books } = this.#core;
    // A question that was heard is not over: it waits for its answer.
    const view = this.#delivery(deliveryId, { state: 'delivered', grade });
    if (view) callSafely(host, 'hook onDelivered', () => hooks.onDelivered?.(view));
    if (books.questions.has(deliveryId)) return;
    this.#answerSilently(deliveryId);
    this.#forget(deliveryId);
  }

  #gone(deliveryId: string, change: Partial<DeliveryView>): void {
    this.#delivery(deliveryId, change);
    this.#answerSilently(deliveryId);
    this.#forget(deliveryId);
  }

  #forget(deliveryId: string): void {
    const { books } = this.#core;
    books.deliveries.delete(deliveryId);
    books.calls.delete(deliveryId);
    this.#core.unit.calls.forget(deliveryId);
  }

  #reply(requestId: string, end: QuestionEnd): void {
    const { books, delegation, unit } = this.#core;
    const question = books.questions.get(requestId);
    if (!question) return;
    const asker = delegation.get(question.subagentId);
    if (end === 'answered')
      asker?.receive({
        type: 'question.answered',
        requestId,
        answer: question.answer,
        ...(question.answer?.approved === undefined ? {} : { approved: question.answer.approved }),
      });
    else if (end === 'expired') asker?.receive({ type: 'question.expired', requestId });
    else asker?.receive({ type: 'question.withdrawn', requestId, reason: end });
    this.#question(requestId);
    books.questions.delete(requestId);
    books.deliveries.delete(requestId);
    unit.questions.forget(requestId);
  }

  #ended(error: Failure | null): void {
    const core = this.#core;
    this.#calls.stopAll();
    core.ended(error);
    callSafely(core.host, 'hook onSessionEnd', () =>
      core.hooks.onSessionEnd?.({
        sessionId: core.id,
        durationMs: core.host.environment.clock.now() - core.startedAt,
        error,
      }),
    );
  }

  /** What screens show of the actor that has just said something. */
  #project(actor: string): void {
    if (actor === 'session') {
      this.#core.connectionChanged();
      this.#core.projection.emit({
        type: 'floor.changed',
        floor: floorOf(this.#core.unit.session.getSnapshot()),
      });
    } else if (actor.startsWith('question:')) this.#question(idOf(actor));
  }

  #question(requestId: string): void {
    const { books, unit, projection, hooks, host } = this.#core;
    const record = books.questions.get(requestId);
    const state = unit.questions.stateOf(requestId);
    if (!record || !state) return;
    const { options, askedAt, timeoutMs, subagentId, subagentName, kind, question } = record;
    const isNew = projection.question(requestId) === undefined;
    const view: QuestionView = {
      requestId,
      subagentId,
      subagentName,
      kind,
      question,
      options,
      state: state.value as QuestionView['state'],
      askedAt,
      dueAt: state.value === 'open' ? (state.context as { dueAt: number }).dueAt : null,
      timeoutMs,
      answer: record.answer?.userResponse ?? null,
    };
    projection.emit({ type: 'question.changed', question: view });
    if (isNew) callSafely(host, 'hook onQuestion', () => hooks.onQuestion?.(record));
  }

  #delivery(deliveryId: string, change: Partial<DeliveryView>): DeliveryView | null {
    const { books, projection } = this.#core;
    const record = books.delivery(deliveryId);
    if (!record) return null;
    const { kind, priority, label, text, subagentId, at } = record;
    const view: DeliveryView = {
      deliveryId,
      kind,
      priority,
      label,
      text,
      subagentId,
      at,
      state: 'pending',
      grade: null,
      dropped: null,
      attempts: 0,
      card: false,
      ...projection.delivery(deliveryId),
      ...change,
    };
    projection.emit({ type: 'delivery.changed', delivery: view });
    return view;
  }
}
