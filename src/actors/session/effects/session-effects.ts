// Carries out the effects of a session's machines, after the commit: on the lead agent, the subagents, the
// app's hooks and the screens.
//
// Owns:     nothing; each effect has one place: here, in call-effects (tool calls) or in delivery-effects
//           (outbox and batches).
// Does not: decide anything.

import { CancelledError, isA, messageOf, OffstageError } from '../../../values/errors.ts';
import {
  floorOf,
  type CallAnswer,
  type Failure,
  type QuestionEnd,
} from '../../../machines/index.ts';
import type { Posted } from '../../runtime/commit-unit.ts';
import { callSafely } from '../../runtime/host.ts';
import { UnfoldableEntry } from '../../runtime/set-aside.ts';
import { OUTBOX_FULL } from './services.ts';
import type { AnswerReceipt } from '../../contracts/session-views.ts';
import { idOf } from '../state/books.ts';
import { CallEffects } from './call-effects.ts';
import { DeliveryEffects } from './delivery-effects.ts';
import { questionView } from '../questions/question-view.ts';
import { SubagentNews } from './subagent-news.ts';
import { notActive } from '../lead/transfer.ts';
import type { EffectsSession } from './effects-session.ts';
import type { Utterance } from '../../contracts/records.ts';
import { writeLost } from '../unit/lost.ts';

/** The parameters of the effects of a session's machines, together. */
interface Params {
  readonly attempt: number;
  readonly error: Failure | null;
  readonly requestId: string;
  readonly end: QuestionEnd;
  readonly deliveryId: string;
  readonly callId: string;
  readonly answer: CallAnswer;
  readonly eventId: string;
  readonly granted: boolean;
  readonly ticket: string;
  readonly receipt: AnswerReceipt;
  readonly utterance: Utterance;
  readonly subagentName: string;
  readonly isAnswer: boolean;
  readonly transferId: string;
  readonly to: string;
  readonly summary: string;
  readonly covers: readonly string[];
  readonly seq: number;
}

export class SessionEffects {
  readonly #core: EffectsSession;
  readonly #calls: CallEffects;
  readonly #deliveries: DeliveryEffects;
  /** Receives the reports of subagents. */
  readonly news: SubagentNews;

  constructor(core: EffectsSession) {
    this.#core = core;
    this.#calls = new CallEffects(core);
    this.#deliveries = new DeliveryEffects(core, this.#calls);
    this.news = new SubagentNews(core);
  }

  release({ actor, effect }: Posted): void {
    const kind = actor.split(':', 1)[0];
    if (effect.kind === 'start') {
      if (kind === 'call') this.#calls.execute((effect.input as { callId: string }).callId);
    } else if (effect.kind === 'stop') {
      if (kind === 'call') this.#calls.stop(idOf(actor));
    } else if (kind === 'outbox' || kind === 'batch')
      this.#deliveries.carryOut(`${kind}.${effect.name}`, effect.params);
    else this.#do(`${kind}.${effect.name}`, (effect.params ?? {}) as Params);
    this.#project(actor);
  }

  /**
   * Reports ends of questions again that may not have been reported when the process ended. Runs first: an
   * observer must not see the next question put while this one has the floor.
   */
  replyAgain(): void {
    const { questions } = this.#core.unit;
    for (const id of questions.ids) {
      const state = questions.stateOf(id);
      // The final states of a question have the names of its ends.
      if (state?.done) this.#reply(id, state.value as QuestionEnd);
    }
  }

  /**
   * Carries out everything that was due when the process ended, and follows from the state; see
   * `recovery.ts`. `isAsleep`: the session was put away idle, and the app is told nothing of it again.
   */
  resume(isAsleep: boolean): void {
    const { unit, projection, books } = this.#core;
    for (const id of unit.questions.ids) this.#question(id, isAsleep);
    this.#calls.resume();
    this.#deliveries.resume();
    for (const item of books.conversation.items) {
      if (item.role !== 'user' && item.role !== 'assistant') continue;
      const { id, role, text, at } = item;
      const interrupted = item.interrupted === true ? { interrupted: true } : {};
      projection.emit({
        type: 'transcript.changed',
        item: { id, role, text, final: true, at, ...interrupted },
      });
    }
  }

  /** Aborts all running work without a report. */
  suspend(): void {
    this.#calls.stopAll(new CancelledError('the session was suspended'));
  }

  /** Closes a session that was never opened. */
  endUnopened(): void {
    this.#core.projection.emit({ type: 'connection.changed', state: 'closed' });
    this.#core.services.kill();
    this.#core.lead.disconnect();
    this.#ended(null);
  }

  crashed(error: unknown): void {
    const core = this.#core;
    const isLost = isA(error, UnfoldableEntry);
    // A later process continues its subagents: their changes here are not written down.
    core.unit.unit.hold();
    if (isLost)
      callSafely(core.host, 'journal', () => writeLost(core, core.unit.unit.seq + 1, error));
    core.host.report(error, `session ${core.id}`);
    core.services.kill();
    core.delegation.kill('the session failed');
    const code = isLost ? 'SESSION_LOST' : 'INTERNAL';
    this.#ended({ code, message: messageOf(error), retryable: false });
    core.lead.disconnect();
  }

  #do(name: string, params: Params): void {
    const core = this.#core;
    const { lead } = core;
    switch (name) {
      case 'session.connect':
        lead.connect(params.attempt);
        break;
      case 'session.hangUp':
        lead.hangUp();
        break;
      case 'session.transfer':
        lead.transfer(params.transferId, params.to);
        break;
      case 'session.transferEnded':
        lead.transferEnded(params.error);
        core.leads.transfers.settle(params.transferId, params.error);
        break;
      case 'session.turnEnded':
        core.turnEnded();
        break;
      case 'transfers.refused':
        core.leads.transfers.settle(params.transferId, notActive(core.projection.connection));
        break;
      case 'directives.changed':
        lead.configure();
        break;
      case 'conversation.summarised': {
        const { summary, covers } = params;
        core.projection.emit({
          type: 'conversation.summarised',
          items: covers.length,
          summary,
        });
        break;
      }
      case 'session.disconnect':
        lead.disconnect();
        break;
      case 'session.giveUpOnUser':
        for (const id of core.unit.questions.ids)
          core.receive(`question:${id}`, { type: 'question.withdraw', reason: 'nobody is there' });
        break;
      case 'session.stopSubagents':
        core.services.stop();
        core.delegation.stop('the session was closed');
        core.services.whenStopped(() =>
          core.delegation.whenEnded(() => core.receive('session', { type: 'subagents.ended' })),
        );
        break;
      case 'session.killSubagents':
        core.services.kill();
        core.delegation.kill('the session was closed');
        break;
      case 'session.ended':
        this.#ended(params.error);
        break;
      case 'question.reply':
        this.#reply(params.requestId, params.end);
        break;
      case 'services.placed':
        core.services.placed(params.eventId, params.granted ? null : OUTBOX_FULL);
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
        this.#deliveries.waits(params.callId);
        this.news.reportResult(params.callId);
        break;
      case 'call.known':
        this.#deliveries.known(params.callId);
        break;
      case 'call.cancelSubagent':
        core.delegation.ofCall(params.callId)?.cancel('its tool call was cancelled');
        this.#deliveries.forget(params.callId);
        break;
      case 'notices.posted':
        this.#deliveries.waits(params.deliveryId);
        this.news.reportResult(params.deliveryId);
        break;
      case 'snapshots.written':
        core.snapshots.written(params.seq);
        break;
      case 'user.heardUser':
        this.#said(params.utterance);
        lead.heardUser(params.utterance);
        core.door.said(params.utterance.id);
        break;
      case 'user.overheard':
        this.#said(params.utterance);
        lead.overheard(params.utterance, params.subagentName, params.isAnswer);
        core.door.said(params.utterance.id);
        break;
      case 'answers.receipt':
        core.door.answered(params.ticket, params.receipt);
        break;
      default:
        break;
    }
  }

  #said({ id, text, startedAt }: Utterance): void {
    const item = { id, role: 'user', text, final: true, at: startedAt } as const;
    this.#core.projection.emit({ type: 'transcript.changed', item });
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
    // No new question, even if this process has not shown it yet.
    this.#question(requestId, true);
    books.questions.delete(requestId);
    this.#deliveries.withdrawn(requestId);
    unit.questions.forget(requestId);
  }

  #ended(error: Failure | null): void {
    const core = this.#core;
    this.#calls.stopAll(
      error
        ? new OffstageError(error.code, error.message)
        : new CancelledError('the session was closed'),
    );
    core.life.ended(error);
    callSafely(core.host, 'hook onSessionEnd', () =>
      core.hooks.onSessionEnd?.({
        sessionId: core.id,
        durationMs: core.host.environment.clock.now() - core.startedAt,
        error,
      }),
    );
  }

  /** Projects the state of an actor to the screens after its effect. */
  #project(actor: string): void {
    if (actor === 'session') {
      this.#core.life.connectionChanged();
      this.#core.projection.emit({
        type: 'floor.changed',
        floor: floorOf(this.#core.unit.session.getSnapshot()),
      });
      this.#core.settleTold();
    } else if (actor.startsWith('question:')) this.#question(idOf(actor));
  }

  #question(requestId: string, isKnown = false): void {
    const { books, unit, projection, hooks, host } = this.#core;
    const record = books.questions.get(requestId);
    const state = unit.questions.stateOf(requestId);
    if (!record || !state) return;
    const isNew = !isKnown && projection.question(requestId) === undefined;
    projection.emit({ type: 'question.changed', question: questionView(record, state) });
    if (isNew) callSafely(host, 'hook onQuestion', () => hooks.onQuestion?.(record));
  }
}
