// Executes the effects of a session's machines after the commit: on the lead agent, the subagents, the services, the
// app's hooks and the screens. Each result has its own view, even if several results are reported together.
//
// Owns:     the table of effect handlers; call-effects.ts has the handlers for tool calls.
// Does not: decide when a delivery is made (outbox), or which results are reported together (batch).

import { CancelledError, CapacityError, messageOf, OffstageError } from '../../../values/errors.ts';
import {
  floorOf,
  type Failure,
  type HearingGrade,
  type QuestionEnd,
} from '../../../machines/index.ts';
import { byOf, type OutboxEffects } from '../../../machines/outbox-setup.ts';
import { clip } from '../../../values/clip.ts';
import { isWired } from '../../../machines/session-wiring.ts';
import {
  CANCELLED,
  subjectOf,
  type AnsweredQuestion,
  type DeliveryRecord,
  type SettleAction,
  type Utterance,
} from '../../contracts/records.ts';
import { THE_LEAD } from '../../contracts/service-types.ts';
import type { EffectHandlers, EffectParams } from '../../contracts/session-protocol.ts';
import type { DeliveryView } from '../../contracts/session-views.ts';
import type { ConversationItem } from '../../conversation/items.ts';
import { besideNote, returnedNote, sentNote, silentNote } from '../../conversation/prompts.ts';
import type { Prompt } from '../../notes/note.ts';
import type { Posted } from '../../runtime/commit-unit.ts';
import { callSafely } from '../../runtime/host.ts';
import { ASK_USER } from '../../subagent/ask-user.ts';
import { checkServiceConfigs, type ServiceSubagentConfig } from '../../services/service-config.ts';
import { SessionServices } from '../../services/session-services.ts';
import { postNotice } from './notices.ts';
import { notActive } from '../lead/lead-agents.ts';
import { showUsage } from '../lead/lead-usage.ts';
import { SETTLED, settlementOf, settlementRefused } from '../lead/settle-tool.ts';
import type { Settlement } from '../questions/user-input.ts';
import { lastingViews, questionView } from '../state/projection.ts';
import { CEILING_REASON } from '../state/batches.ts';
import { idOf } from '../state/session-records.ts';
import { nameOfSpawned } from '../state/synthetic-turns.ts';
import { CallEffects } from './call-effects.ts';
import type { EffectsSession } from './effects-session.ts';
import { readWords } from './words-reader.ts';
import { SubagentReports } from './subagent-reports.ts';

/** A running inline tool. */
const EXECUTE = 'call.execute';
/** A schedule's task is being started. */
const START = 'schedule.start';
/** A model is interpreting the user's words for a question. */
const READ = 'question.read';
/** A channel is sending a delivery. */
const SEND = 'reach.send';

/** The failure of an invocation that must wait until earlier messages are delivered. */
const OUTBOX_FULL: Failure = {
  code: 'OUTBOX_FULL',
  message: 'Too much waits to be heard, or is being made: see maxDeliveries',
  retryable: true,
};

/** The status that the model receives for each accepted settlement. */
const STATUS = {
  answer: 'answered',
  // A correction counts as an answer if the question was still open.
  correct: 'answered',
  decline: 'declined',
  cancel: 'cancelled',
  later: 'put_off',
  repeat: 'asked_again',
  explain: 'explain_now',
} as const satisfies Record<Exclude<SettleAction, keyof typeof SETTLED>, string>;

/** The maximum length of a result that is quoted to the model. */
const MAX_TOLD_CHARS = 300;

export class SessionEffects {
  readonly #session: EffectsSession;
  readonly #calls: CallEffects;
  readonly #handlers: EffectHandlers;
  /** The pending calls to the model that interprets the user's words, by question. */
  readonly #reading = new Map<string, AbortController>();
  /** Receives the subagents' reports. */
  readonly subagentReports: SubagentReports;

  constructor(session: EffectsSession) {
    this.#session = session;
    this.#calls = new CallEffects(session);
    this.subagentReports = new SubagentReports(session);
    this.#handlers = this.#handlersOf(session);
  }

  #handlersOf(session: EffectsSession): EffectHandlers {
    const { lead } = session;
    const waits = (deliveryId: string): void => {
      if (!session.projection.delivery(deliveryId)) this.#show(deliveryId, {});
      this.subagentReports.reportResult(deliveryId);
    };
    const card = ({ deliveryId }: { readonly deliveryId: string }): void => {
      this.#showEach(deliveryId, { state: 'pending', card: true });
      this.#showCard(deliveryId);
    };
    // After each effect of the session or of a question, `release` updates the screens.
    const shown = (): void => {};
    return {
      'session.changed': shown,
      'question.changed': shown,
      'client.changed': shown,
      'schedule.changed': shown,
      'reach.changed': shown,
      'ways.wanted': ({ deliveryId }) => {
        if (session.reach.hasSteps) session.reach.wanted(deliveryId);
      },
      'session.connect': () => lead.connect(),
      'session.hangUp': () => lead.disconnect(false),
      'session.disconnect': () => lead.disconnect(true),
      'session.transfer': ({ transferId, to }) => lead.transfer(transferId, to),
      'session.transferEnded': ({ transferId, error }) => {
        lead.transferEnded(error);
        session.agents.transferSettled(transferId, error);
      },
      'transfers.refused': ({ transferId }) =>
        session.agents.transferSettled(transferId, notActive(session.projection.connection)),
      'session.turnEnded': () => {
        session.agents.turnEnded();
        session.upkeep.turnEnded();
      },
      'session.giveUpOnUser': () => {
        for (const id of session.unit.questions.ids)
          session.receive(`question:${id}`, {
            type: 'question.withdraw',
            reason: 'the user is not there',
          });
      },
      'session.stopSubagents': () => {
        session.services.stop();
        session.tree.stop('the session was closed');
        session.services.whenStopped(() =>
          session.tree.whenEnded(() => session.receive('session', { type: 'subagents.ended' })),
        );
      },
      'session.killSubagents': () => {
        session.services.kill();
        session.tree.kill('the session was closed');
      },
      'session.ended': ({ error }) => this.#sessionEnded(error),
      'question.reply': ({ requestId, end }) => this.#reply(requestId, end),
      'call.validate': ({ callId }) => void this.#calls.validate(callId),
      'call.answer': ({ callId, answer }) => this.#calls.answer(callId, answer),
      'call.delegate': ({ callId }) => this.#calls.delegate(callId),
      'call.deliver': ({ callId }) => waits(callId),
      // The lead agent has reported the result through another tool, so the call that stayed open for the result is
      // answered.
      'call.known': ({ callId }) => {
        this.#answerSilently(callId);
        this.#forget(callId);
      },
      'call.cancelSubagent': ({ callId }) => {
        session.tree.ofCall(callId)?.cancel('its tool call was cancelled');
        this.#forget(callId);
      },
      'outbox.offer': (attempt) => this.#offer(attempt),
      'outbox.interrupt': () => lead.stop(null),
      'outbox.abandon': ({ deliveryId, generation }) => {
        lead.stop(generation);
        this.#showEach(deliveryId, { state: 'pending' });
      },
      'outbox.begun': ({ deliveryId }) => this.#showEach(deliveryId, { state: 'playing' }),
      // If the client left during an attempt, the attempt does not count.
      'outbox.returned': ({ deliveryId, attempts }) =>
        this.#showEach(deliveryId, { state: 'pending', attempts }),
      'outbox.card': card,
      'outbox.told': card,
      'outbox.rested': ({ deliveryId }) => this.#rested(deliveryId),
      // If results were reported together, the batch settles each of them.
      'outbox.delivered': ({ deliveryId, ...how }) => {
        if (!session.unit.batches.has(deliveryId)) this.#delivered(deliveryId, how);
      },
      'outbox.dismissed': ({ deliveryId, ...how }) =>
        this.#untold(deliveryId, { state: 'dismissed', ...byOf(how) }),
      'outbox.dropped': ({ deliveryIds, reason }) => {
        for (const id of deliveryIds) this.#untold(id, { state: 'dropped', dropped: reason });
      },
      'batch.delivered': ({ deliveryIds, ...how }) => {
        for (const id of deliveryIds) this.#delivered(id, how);
      },
      'batch.dismissed': ({ deliveryIds, ...how }) => {
        for (const id of deliveryIds) this.#untold(id, { state: 'dismissed', ...byOf(how) });
      },
      'batch.stop': ({ callIds }) => {
        for (const id of callIds) this.#stopMember(id);
      },
      'batch.ended': ({ batchId }) => session.unit.batches.forget(batchId),
      'notices.posted': ({ deliveryId }) => waits(deliveryId),
      'services.placed': ({ eventId, granted }) =>
        session.services.placed(eventId, granted ? null : OUTBOX_FULL),
      'snapshots.written': ({ seq }) => session.snapshots.written(seq),
      'directives.changed': () => lead.configure(),
      'conversation.summarised': ({ summary, covers }) =>
        session.projection.emit({ type: 'conversation.summarised', items: covers.length, summary }),
      'usage.reported': ({ used }) => {
        const { host, hooks, projection } = session;
        showUsage(session, used);
        const { usage } = projection;
        callSafely(host, 'hook onUsage', () => hooks.onUsage?.({ usage, used }));
      },
      'user.heardUser': ({ utterance }) => {
        this.#showUtterance(utterance, 'lead');
        lead.heard(utterance, null);
        session.userInput.said(utterance.id);
      },
      'user.overheard': (words) => this.#overheard(words),
      'questions.returned': ({ words, reason, subagentName }) =>
        lead.note(returnedNote(words, reason, subagentName), true),
      'answers.settled': (settled) => this.#settled(settled),
      'answers.receipt': ({ ticket, receipt }) => {
        session.userInput.answered(ticket, receipt);
        this.#showLasting();
      },
    };
  }

  /** Executes an effect. An effect without a handler is reported. */
  release({ actor, effect }: Posted): void {
    const kind = actor.split(':', 1)[0] ?? '';
    const name = `${kind}.${effect.name}`;
    if (effect.kind === 'do' && isHandled(this.#handlers, name))
      (this.#handlers[name] as (params: unknown) => void)(effect.params);
    else if (effect.kind === 'start' && name === EXECUTE) this.#calls.execute(idOf(actor));
    else if (effect.kind === 'stop' && name === EXECUTE) this.#calls.stop(idOf(actor));
    else if (effect.kind === 'start' && name === START) this.#session.schedules.start(idOf(actor));
    else if (effect.kind === 'start' && name === SEND) this.#session.reach.send(idOf(actor));
    else if (effect.kind === 'stop' && name === SEND) this.#session.reach.stop(idOf(actor));
    else if (effect.kind === 'start' && name === READ) this.#read(idOf(actor));
    else if (effect.kind === 'stop' && name === READ) this.#notRead(idOf(actor));
    else if (name !== START && (effect.kind !== 'do' || !isWired(name))) {
      const message = `Expected an effect of EffectHandlers, got \`${name}\` (${effect.kind})`;
      this.#session.host.report(
        new OffstageError('INTERNAL', message),
        `session ${this.#session.id}`,
      );
    }
    this.#project(actor);
  }

  /**
   * Repeats the reports about ended questions, which the earlier process may not have made. Must run first, so that no
   * observer sees the next question presented while this one still has the floor.
   */
  replyAgain(): void {
    const { questions } = this.#session.unit;
    for (const id of questions.ids) {
      const state = questions.stateOf(id);
      // A question's final states are named after the ways in which a question can end.
      if (state?.done) this.#reply(id, state.value as QuestionEnd);
    }
  }

  /**
   * Executes every effect that was due when the process ended, as derived from the state; see `session-life.ts`.
   * `isAsleep`: the session was idle when it was suspended, so the app has already been notified.
   */
  resume(isAsleep: boolean): void {
    const { unit, projection, records } = this.#session;
    for (const id of unit.questions.ids) this.#question(id, isAsleep);
    this.#showLasting();
    this.#session.clientCalls.resume();
    for (const key of unit.schedules.ids) this.#session.schedules.changed(key);
    this.#calls.resume();
    this.#resumeDeliveries();
    this.#session.reach.resume();
    for (const item of records.conversation.items) {
      if (item.role !== 'user' && item.role !== 'assistant') continue;
      const { id, role, text, at } = item;
      if (text === '') continue;
      const interrupted = item.interrupted === true ? { interrupted: true } : {};
      projection.emit({
        type: 'transcript.changed',
        item: { id, role, text, final: true, at, ...interrupted, ...speakerOf(item) },
      });
    }
  }

  /** Aborts all running work without any report. */
  suspend(): void {
    this.#calls.stopAll(new CancelledError('the session was suspended'));
    for (const id of this.#reading.keys()) this.#stopReading(id);
    this.#session.reach.suspend();
  }

  /** Closes a session that failed to open. */
  endUnopened(): void {
    this.#session.projection.emit({ type: 'connection.changed', state: 'closed' });
    this.#session.services.kill();
    this.#session.lead.disconnect(true);
    this.#sessionEnded(null);
  }

  crashed(error: unknown): void {
    const session = this.#session;
    // A later process continues the subagents, so this process no longer writes their changes.
    session.unit.unit.pause();
    session.host.report(error, `session ${session.id}`);
    session.services.kill();
    session.tree.kill('the session failed');
    this.#sessionEnded({ code: 'INTERNAL', message: messageOf(error), retryable: false });
    session.lead.disconnect(true);
  }

  #overheard({ utterance, subagentName, were }: EffectParams['user.overheard']): void {
    const { lead, userInput } = this.#session;
    this.#showUtterance(utterance, 'question');
    lead.heard(utterance, { subagentName, were });
    userInput.said(utterance.id);
  }

  /** Asks a model to interpret the words waiting for a question, and passes the interpretation to the question. */
  #read(requestId: string): void {
    const session = this.#session;
    const question = session.records.questions.get(requestId);
    const utteranceId = question?.unread?.at(-1)?.utterance.id;
    if (!question || utteranceId === undefined) return;
    const reading = new AbortController();
    this.#reading.set(requestId, reading);
    void readWords(session, question, reading.signal).then(
      (read) => {
        const ended = { type: 'reading.ended', utteranceId, gives: 'again', read } as const;
        session.receive(`question:${requestId}`, ended);
      },
      // The question is no longer waiting for the interpretation.
      () => {},
    );
  }

  #stopReading(requestId: string): void {
    this.#reading.get(requestId)?.abort(new CancelledError('the question does not wait for it'));
    this.#reading.delete(requestId);
  }

  /**
   * Stops interpreting words. If no further words are being interpreted, reports the words to the lead agent as input
   * that could not be interpreted.
   */
  #notRead(requestId: string): void {
    const { records, unit } = this.#session;
    this.#stopReading(requestId);
    const { unread = [], subagentName = '' } = records.questions.get(requestId) ?? {};
    if (unit.questions.stateOf(requestId)?.value === 'reading') return;
    for (const { utterance } of unread) this.#overheard({ utterance, subagentName, were: null });
  }

  #showUtterance({ id, text, startedAt }: Utterance, to: 'lead' | 'question'): void {
    const { projection, records } = this.#session;
    const by = speakerOf(records.item(id));
    const item = { id, role: 'user', text, final: true, at: startedAt, ...by } as const;
    projection.emit({ type: 'transcript.changed', item });
    projection.emit({ type: 'utterance.routed', utteranceId: id, to, reason: null });
  }

  #reply(requestId: string, end: QuestionEnd): void {
    const { records, tree, unit } = this.#session;
    const question = records.questions.get(requestId);
    if (!question) return;
    const asker = tree.get(question.subagentId);
    const { answer, reason = CANCELLED } = question;
    if (end === 'answered' && answer)
      asker?.receive({
        type: 'question.answered',
        requestId,
        answer,
        ...(answer.approved === undefined ? {} : { approved: answer.approved }),
      });
    else if (end === 'expired') asker?.receive({ type: 'question.expired', requestId });
    else {
      const why = end === 'withdrawn' && reason !== CANCELLED ? `withdrawn: ${reason}` : end;
      asker?.receive({ type: 'question.withdrawn', requestId, reason: why });
    }
    // The question does not count as new, even if this process has not shown it yet.
    this.#question(requestId, true);
    this.#showLasting();
    this.#withdrawDelivery(requestId);
    records.questions.delete(requestId);
    unit.questions.forget(requestId);
  }

  /** Executes the lead agent's decision about a question, and answers its call. */
  #settled(settled: EffectParams['answers.settled']): void {
    const { userInput, tree } = this.#session;
    const { callId, requestId, action, refused } = settled;
    const answer = (settlement: Settlement): void => userInput.settled(callId, settlement);
    if (refused !== undefined) {
      answer(
        settlementRefused(refused, { question: this.#session.records.questions.get(requestId) }),
      );
      return;
    }
    const { records } = this.#session;
    const open = records.questions.get(requestId);
    const answered = records.answered.find((question) => question.requestId === requestId);
    if (action === 'correct' && answered && !open) {
      answer(this.#correct(callId, answered));
      return;
    }
    if (action === 'cancel')
      tree.get(open?.subagentId ?? '')?.cancel('the user does not want it any more');
    this.#showLasting();
    const isOwn = action === 'change' || action === 'always' || action === 'revoke';
    answer(isOwn ? SETTLED[action] : settlementOf(this.#session, requestId, STATUS[action]));
  }

  /** Interrupts the asker with the corrected answer, unless it has called a tool since the first answer. */
  #correct(
    callId: string,
    { subagentId, subagentName, requestId, question, answer, answeredAt }: AnsweredQuestion,
  ): Settlement {
    const { tree, projection, agents } = this.#session;
    const subagent = tree.get(subagentId);
    if (!subagent) {
      const text = projection.subagent(subagentId)?.outcome?.text ?? '';
      const done = text === '' ? '' : ` Its result: ${clip(text, MAX_TOLD_CHARS)}`;
      return settlementRefused('too_late', {
        tell: `It is too late: ${subagentName} has ended.${done}`,
      });
    }
    const called = subagent.log.calledSince(answeredAt).find((name) => name !== ASK_USER);
    if (called !== undefined)
      return settlementRefused('too_late', {
        tell: `It is too late: ${subagentName} has already called ${called} with the first answer. Tell the user so; the result comes as a note. ${agents.steers ? 'If they ask you to end the task, running_task stops it; a stop undoes nothing.' : 'You cannot stop it, unless one of your tools does.'}`,
      });
    const { userResponse, optionId } = answer;
    const chosen = optionId === undefined ? '' : ` (option ${JSON.stringify(optionId)})`;
    const content =
      `The user has corrected the answer to your question ${JSON.stringify(question)}. ` +
      `It is now ${JSON.stringify(userResponse)}${chosen}; the earlier answer no longer holds.`;
    const sent = tree.send(
      subagentId,
      { content, mode: 'interrupt', idempotencyKey: callId },
      THE_LEAD,
    );
    return sent.ok
      ? settlementOf(this.#session, requestId, 'corrected')
      : settlementRefused('too_late');
  }

  #sessionEnded(error: Failure | null): void {
    const session = this.#session;
    this.#calls.stopAll(
      error
        ? new OffstageError(error.code, error.message)
        : new CancelledError('the session was closed'),
    );
    session.reach.suspend();
    session.life.ended(error);
    callSafely(session.host, 'hook onSessionEnd', () =>
      session.hooks.onSessionEnd?.({
        sessionId: session.id,
        durationMs: session.host.environment.clock.now() - session.startedAt,
        error,
      }),
    );
  }

  /** Updates an actor's view after its effect. */
  #project(actor: string): void {
    if (actor === 'session') {
      this.#session.life.connectionChanged();
      this.#session.projection.emit({
        type: 'floor.changed',
        floor: floorOf(this.#session.unit.session.snapshot),
      });
      this.#session.settleTold();
    } else if (actor.startsWith('question:')) this.#question(idOf(actor));
    else if (actor.startsWith('client:')) this.#session.clientCalls.changed(idOf(actor));
    else if (actor.startsWith('schedule:')) this.#session.schedules.changed(idOf(actor));
    else if (actor.startsWith('reach:')) this.#session.reach.changed(idOf(actor));
  }

  #question(requestId: string, isKnown = false): void {
    const { records, unit, projection, hooks, host, lead } = this.#session;
    const record = records.questions.get(requestId);
    const state = unit.questions.stateOf(requestId);
    if (!record || !state) return;
    const isNew = !isKnown && projection.question(requestId) === undefined;
    projection.emit({ type: 'question.changed', question: questionView(record, state) });
    if (isNew && record.beside) {
      const { subagentName, question } = record;
      lead.note(besideNote(subagentName, question), false, `${requestId}.note`);
    }
    if (isNew) callSafely(host, 'hook onQuestion', () => hooks.onQuestion?.(record));
  }

  /** Shows which approvals remain in effect. */
  #showLasting(): void {
    const { records, projection, tree } = this.#session;
    const lasting = lastingViews(records.lasting, (id) => tree.live.some((one) => one.id === id));
    for (const question of lasting)
      if (!projection.question(question.requestId))
        projection.emit({ type: 'question.changed', question });
    projection.endLasting(({ requestId }) => lasting.every((one) => one.requestId !== requestId));
  }

  /** After a crash, makes pending deliveries visible again and removes those that are over; see `session-life.ts`. */
  #resumeDeliveries(): void {
    const { records, unit, projection } = this.#session;
    const { pending, current } = unit.outbox.snapshot.context;
    for (const batchId of unit.batches.ids) {
      const state = unit.batches.stateOf(batchId);
      if (state?.done) unit.batches.forget(batchId);
      else if (state?.value === 'closing')
        for (const id of unit.batches.contextOf(batchId)?.working ?? []) this.#stopMember(id);
    }
    const held = unit.batches.ids.flatMap((id) => unit.batches.contextOf(id)?.parts ?? []);
    for (const { deliveryId, resting, attempts } of [...pending, ...(current ? [current] : [])]) {
      this.#showEach(deliveryId, { attempts, card: resting });
      if (resting) this.#showCard(deliveryId);
    }
    for (const id of held) if (!projection.delivery(id)) this.#show(id, {});
    for (const id of records.deliveries.keys())
      if (!projection.delivery(id)) records.deliveries.delete(id);
  }

  /** Drops the undelivered item of a question that has been settled. */
  #withdrawDelivery(requestId: string): void {
    const view = this.#session.projection.delivery(requestId);
    if (view && view.state !== 'delivered') this.#show(requestId, { state: 'dismissed' });
    this.#forget(requestId);
  }

  /** Removes a completed delivery and the call that waited for it. */
  #forget(deliveryId: string): void {
    const { records, unit, tree } = this.#session;
    const { kind, subagentId } = records.delivery(deliveryId) ?? {};
    const told =
      records.calls.get(deliveryId)?.subagentId ?? (kind === 'result' ? subagentId : null);
    if (told) tree.delivered(told);
    records.deliveries.delete(deliveryId);
    records.calls.delete(deliveryId);
    unit.calls.forget(deliveryId);
  }

  #offer({ deliveryId, ...tried }: OutboxEffects['offer']): void {
    const { records, lead, unit } = this.#session;
    const { attempt } = tried;
    this.#showEach(deliveryId, { state: 'offered', attempts: attempt, card: false });
    const sentBy = this.#wayOf(deliveryId)?.sent ?? [];
    const batch = unit.batches.contextOf(deliveryId);
    const joined = this.joined(deliveryId);
    if (batch && joined) {
      // Each open call is answered first. Then the results are reported together.
      for (const id of batch.parts) this.#answerSilently(id);
      const { parts: deliveryIds } = batch;
      lead.say({
        deliveryId,
        deliveryIds,
        ...tried,
        kind: 'result',
        priority: 'normal',
        prompt: sentNote(joined.prompt, sentBy),
        role: records.words.role,
        text: joined.text,
        answersCallId: null,
      });
      return;
    }
    if (!joined) return;
    const { kind, priority, text } = joined;
    // The prompt of a question is passed on unchanged.
    const prompt = kind === 'question' ? joined.prompt : sentNote(joined.prompt, sentBy);
    const answersCallId = this.#answerLate(joined);
    const role = kind === 'result' || kind === 'progress' ? records.words.role : 'system';
    lead.say({
      deliveryId,
      ...tried,
      kind,
      priority,
      prompt,
      role,
      text,
      answersCallId,
    });
  }

  /** Returns a delivery, or all parts of a batch as one delivery. */
  joined(deliveryId: string): DeliveryRecord | undefined {
    const { records, unit } = this.#session;
    const batch = unit.batches.contextOf(deliveryId);
    if (!batch) return records.delivery(deliveryId);
    const parts = batch.parts.flatMap((id) => records.delivery(id) ?? []);
    const [first] = parts;
    return (
      first && {
        ...first,
        deliveryId,
        kind: 'result',
        priority: 'normal',
        label: parts.map(({ label }) => label).join(', '),
        text: parts.map(({ label, text }) => `${label}: ${text}`).join('\n'),
        prompt: records.togetherPrompt(batch.parts, this.#namesOf(batch.working)),
      }
    );
  }

  /** Tells the model that a delivery will not be spoken, because it is shown on the screen. */
  #rested(deliveryId: string): void {
    const { records, lead } = this.#session;
    this.#showEach(deliveryId, { state: 'pending', card: true });
    for (const id of this.#partsOf(deliveryId)) {
      const delivery = records.delivery(id);
      if (!delivery) continue;
      const words = silentNote(delivery.prompt);
      if (delivery.answersCall) this.#answerSilently(id, words);
      else lead.note(words, false);
    }
    this.#showCard(deliveryId);
  }

  /** Shows an unspoken delivery to current and later listeners as a card. */
  #showCard(deliveryId: string): void {
    const { lead, userInput } = this.#session;
    for (const part of this.#partsOf(deliveryId))
      lead.show?.({ kind: 'card', deliveryId: part, seen: () => userInput.shown(part) });
  }

  /** Returns the deliveries in an outbox item: the item itself, or the results in a batch. */
  #partsOf(deliveryId: string): readonly string[] {
    return this.#session.unit.batches.contextOf(deliveryId)?.parts ?? [deliveryId];
  }

  /** Stops a batch member that is late. */
  #stopMember(id: string): void {
    const { unit, tree } = this.#session;
    const subagent = unit.calls.has(id) ? tree.ofCall(id) : tree.get(subjectOf(id));
    subagent?.cancel(CEILING_REASON);
  }

  /** Returns the lead model's names for the members: tools that were called, and spawned subagents. */
  #namesOf(members: readonly string[]): readonly string[] {
    const { records, projection } = this.#session;
    return members.flatMap((member) => {
      const view = projection.subagent(subjectOf(member));
      return records.calls.get(member)?.name ?? (view ? nameOfSpawned(view) : []);
    });
  }

  #wayOf(deliveryId: string): DeliveryView['reach'] {
    return this.#session.reach.hasSteps ? this.#session.reach.viewOf(deliveryId) : undefined;
  }

  /** Updates the view of a delivery, or of each result in a batch. */
  showAgain(deliveryId: string): void {
    this.#showEach(deliveryId, {});
  }

  #showEach(deliveryId: string, change: Partial<DeliveryView>): void {
    for (const id of this.#partsOf(deliveryId)) this.#show(id, change);
  }

  /**
   * Answers the call that stayed open for a delivery, because the delivery is about to reach the user or has been
   * dismissed. Answers only once, even if the delivery is offered several times. Returns the call's id if the call must
   * be answered now.
   */
  #answerLate(delivery: DeliveryRecord): string | null {
    const { callId, answersCall, label: name, text } = delivery;
    if (!answersCall || callId === null) return null;
    // The outbox delivers the result, or the user already has it.
    this.#calls.answered(callId, name, text, { wantsReply: false });
    return callId;
  }

  /** Tells the model that a delivery was dismissed, or reached the user without being spoken. */
  #answerSilently(deliveryId: string, words?: Prompt): void {
    const { records, lead } = this.#session;
    const delivery = records.delivery(deliveryId);
    const callId = delivery ? this.#answerLate(delivery) : null;
    if (!delivery || callId === null) return;
    const output = words ?? delivery.prompt;
    lead.answer(callId, { output, respond: false, noteId: `${deliveryId}.note` });
  }

  #delivered(
    deliveryId: string,
    { grade, ...how }: { readonly grade: HearingGrade; readonly by?: string },
  ): void {
    const { host, hooks, records } = this.#session;
    // A question that has been heard is not over, because it waits for its answer.
    const view = this.#show(deliveryId, { state: 'delivered', grade, ...byOf(how) });
    if (view) callSafely(host, 'hook onDelivered', () => hooks.onDelivered?.(view));
    if (records.questions.has(deliveryId)) return;
    this.#answerSilently(deliveryId);
    this.#forget(deliveryId);
  }

  #untold(deliveryId: string, change: Partial<DeliveryView>): void {
    this.#show(deliveryId, change);
    this.#answerSilently(deliveryId);
    this.#forget(deliveryId);
  }

  #show(deliveryId: string, change: Partial<DeliveryView>): DeliveryView | null {
    const { records, projection } = this.#session;
    const record = records.delivery(deliveryId);
    if (!record) return null;
    const { kind, priority, label, text, subagentId, at } = record;
    const reach = this.#wayOf(deliveryId);
    const view: DeliveryView = {
      deliveryId,
      kind,
      priority,
      label,
      subagentId,
      at,
      state: 'pending',
      grade: null,
      dropped: null,
      attempts: 0,
      card: false,
      ...projection.delivery(deliveryId),
      // The wording may change when a question is read back.
      text,
      ...(reach && { reach }),
      ...change,
    };
    projection.emit({ type: 'delivery.changed', delivery: view });
    return view;
  }
}

function isHandled(handlers: EffectHandlers, name: string): name is keyof EffectHandlers {
  return Object.hasOwn(handlers, name);
}

/**
 * Connects a session's services to its outbox, its subagents and its events.
 * @throws {ConfigurationError} if a service's configuration is invalid.
 */
export function servicesOf(
  session: EffectsSession,
  configs: readonly ServiceSubagentConfig[],
): SessionServices {
  const { host, id } = session;
  return new SessionServices(host, id, checkServiceConfigs(configs), {
    reserve: (eventId) => session.receive('services', { type: 'invocation.wanted', eventId }),
    unreserve: (eventId) => session.receive(`place:${eventId}`, { type: 'place.freed' }),
    hasPlace: (eventId) => session.unit.hasPlace(eventId),
    delegate: (eventId, definition, task) =>
      session.tree.spawnFor(session.ofCalls, {
        config: definition,
        task,
        caller: THE_LEAD,
        idempotencyKey: `${id}:${eventId}`,
      }),
    outcomeOf(subagentId) {
      const found = session.tree.check(subagentId, THE_LEAD);
      return found.ok ? found.report.outcome : null;
    },
    cancel: (subagentId, reason) => session.tree.get(subagentId)?.cancel(reason),
    notify: (notice) => void postNotice(session, { ...notice, reserved: true }),
    dropped: (dropped) => {
      session.projection.emit({ type: 'service.dropped', event: dropped });
      // Neither the end of the session nor a cancellation is a failure.
      if (dropped.reason === 'stopped' || dropped.reason === 'cancelled') return;
      const { service, eventId, type, reason } = dropped;
      host.report(
        new CapacityError('EVENT_DROPPED', `${eventId}, ${type}, was not looked at: ${reason}`),
        `service ${service}`,
      );
    },
    changed: (service) => session.projection.emit({ type: 'service.changed', service }),
  });
}

/** Returns the identity of the user who wrote the item. */
function speakerOf(item: ConversationItem | undefined): { readonly by?: string } {
  return item?.role === 'user' && item.by !== undefined ? { by: item.by } : {};
}
