// Carries out what the machines of a session say, after the commit: to the lead agent,
// to the subagents, to the app's hooks and to the screens.
//
// Owns:     the running inline tools.
// Does not: decide anything; each effect has one place here.

import { CancelledError, messageOf } from '../../errors.ts';
import type {
  CallAnswer,
  DropReason,
  Failure,
  HearingGrade,
  QuestionEnd,
} from '../../machines/index.ts';
import { floorOf } from '../../machines/index.ts';
import { DEFAULT_MAX_OUTPUT_BYTES, keepOutput } from '../ai/tool-output.ts';
import { raceAbort } from '../race-abort.ts';
import type { Posted } from '../runtime/commit-unit.ts';
import { callSafely } from '../runtime/host.ts';
import type { AnswerReceipt, DeliveryView, QuestionView, SubagentView } from '../session-views.ts';
import { checkSubagentConfig } from '../subagent/config.ts';
import type { Outcome } from '../subagent/outcome.ts';
import type { StepReport } from '../subagent/think.ts';
import { idOf } from './books.ts';
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
  readonly #executing = new Map<string, AbortController>();

  constructor(core: EffectsSession) {
    this.#core = core;
  }

  release({ actor, effect }: Posted): void {
    const kind = actor.split(':', 1)[0];
    if (effect.kind === 'start') {
      if (kind === 'call') this.#execute((effect.input as { callId: string }).callId);
    } else if (effect.kind === 'stop') {
      if (kind === 'call') this.#stopExecuting(idOf(actor));
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
        void this.#validate(params.callId);
        break;
      case 'call.answer':
        this.#answer(params.callId, params.answer);
        break;
      case 'call.delegate':
        this.#delegate(params.callId);
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
    this.#answered(callId, name, text);
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

  async #validate(callId: string): Promise<void> {
    const core = this.#core;
    const call = core.books.calls.get(callId);
    if (!call) return;
    const tool = core.tools.get(call.name);
    const invalid = (message: string): void =>
      core.receive(`call:${callId}`, {
        type: 'call.invalid',
        error: { code: 'INVALID_CALL', message, retryable: false },
      });
    if (!tool) {
      const known = [...core.tools.keys()].join(', ') || 'none';
      invalid(`Unknown tool: ${call.name}. Available tools: ${known}`);
      return;
    }
    const checked = await tool.validate(call.arguments);
    if (!checked.ok) {
      invalid(checked.message);
      return;
    }
    const { execution = 'inline', pendingMessage } = tool.definition;
    core.projection.emit({ type: 'tool.called', callId, name: call.name, input: checked.value });
    callSafely(core.host, 'hook onToolCall', () =>
      core.hooks.onToolCall?.({ callId, name: call.name, input: checked.value }),
    );
    core.receive(`call:${callId}`, {
      type: 'call.validated',
      execution,
      acknowledge: pendingMessage !== undefined,
      message: pendingMessage,
      input: checked.value,
    });
  }

  #execute(callId: string): void {
    const core = this.#core;
    const call = core.books.calls.get(callId);
    const execute = call && core.tools.get(call.name)?.definition.execute;
    if (!call || !execute) return;
    const controller = new AbortController();
    this.#executing.set(callId, controller);
    const { signal } = controller;
    const settle = (output: unknown): void => {
      if (!signal.aborted) core.receive(`call:${callId}`, { type: 'call.executed', output });
    };
    core.host.environment.scheduler.yieldThen(() => {
      if (signal.aborted) return;
      const run = async (): Promise<unknown> =>
        execute(call.input as never, {
          callId,
          agentName: core.agent.name,
          sessionId: core.id,
          abortSignal: signal,
        });
      raceAbort(run(), signal).then(
        (output) => settle(answerOf(call.name, output)),
        (error: unknown) => settle({ error: messageOf(error) }),
      );
    });
  }

  #stopExecuting(callId: string): void {
    this.#executing.get(callId)?.abort(new CancelledError('the call is over'));
    this.#executing.delete(callId);
  }

  #answer(callId: string, answer: CallAnswer): void {
    const core = this.#core;
    const call = core.books.calls.get(callId);
    if (!call) return;
    const { name, output } = call;
    // What was called off is no news to speak about.
    core.lead.answerTool(callId, output, answer !== 'cancelled');
    this.#answered(callId, name, output);
    if (core.unit.calls.stateOf(callId)?.done) {
      core.books.calls.delete(callId);
      core.unit.calls.forget(callId);
    }
  }

  /** The model has its answer to this call. */
  #answered(callId: string, name: string, output: unknown): void {
    const { books, projection, host, hooks } = this.#core;
    const at = host.environment.clock.now();
    books.conversation = books.conversation.toolResult({ callId, at, value: output });
    projection.emit({ type: 'tool.answered', callId, name, output });
    callSafely(host, 'hook onToolResult', () => hooks.onToolResult?.({ callId, name, output }));
  }

  #delegate(callId: string): void {
    const core = this.#core;
    const call = core.books.calls.get(callId);
    const config = call && core.configs[call.name];
    // The outbox had no room to promise a result: the call was rejected in the same step.
    if (!config || core.unit.calls.stateOf(callId)?.value !== 'acknowledged') return;
    const definition = checkSubagentConfig(config);
    const delegated = core.delegation.delegate(
      definition,
      {
        toolName: call.name,
        args: call.input as Readonly<Record<string, unknown>>,
        description: core.tools.get(call.name)?.definition.description ?? call.name,
      },
      callId,
    );
    if (delegated.status === 'accepted') {
      core.receive(`call:${callId}`, {
        type: 'subagent.accepted',
        subagentId: delegated.subagentId,
      });
      if (call.output === null) core.lead.deferTool(callId);
      const view = core.projection.subagent(delegated.subagentId);
      if (view)
        callSafely(core.host, 'hook onSubagentStart', () => core.hooks.onSubagentStart?.(view));
      return;
    }
    core.receive('outbox', { type: 'outbox.unreserve' });
    core.receive(`call:${callId}`, { type: 'subagent.rejected', error: delegated.error });
  }

  #ended(error: Failure | null): void {
    const core = this.#core;
    for (const callId of this.#executing.keys()) this.#stopExecuting(callId);
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

/** What an inline tool returned, as the model, the journal and the wire can have it: JSON, and not too large. */
function answerOf(toolName: string, returned: unknown): unknown {
  if (returned instanceof Error) return { error: messageOf(returned) };
  const kept = keepOutput(returned ?? null, DEFAULT_MAX_OUTPUT_BYTES);
  return kept.ok ? kept.value : { error: `Tool "${toolName}" ${kept.message}` };
}
