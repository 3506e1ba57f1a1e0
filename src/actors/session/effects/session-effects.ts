// Carries out the effects of a session's machines, after the commit: on the lead agent, the subagents, the
// app's hooks and the screens.
//
// Owns:     nothing; each effect has one place: here, in call-effects (tool calls) or in delivery-effects
//           (outbox and batches).
// Does not: decide anything.

import { CancelledError, isA, messageOf, OffstageError } from '../../../values/errors.ts';
import { floorOf, type Failure, type QuestionEnd } from '../../../machines/index.ts';
import { isWired } from '../../../machines/session-wiring.ts';
import type { EffectHandlers } from '../../contracts/session-protocol.ts';
import type { Posted } from '../../runtime/commit-unit.ts';
import { callSafely } from '../../runtime/host.ts';
import { UnfoldableEntry } from '../../runtime/set-aside.ts';
import { OUTBOX_FULL } from './services.ts';
import { idOf } from '../state/session-records.ts';
import { CallEffects } from './call-effects.ts';
import { DeliveryEffects, type DeliveryHandlers } from './delivery-effects.ts';
import { SubagentEvents } from './subagent-events.ts';
import { notActive } from '../lead/transfer.ts';
import type { EffectsSession } from './effects-session.ts';
import type { Utterance } from '../../contracts/records.ts';
import { writeLost } from '../unit/lost.ts';
import { questionView } from '../state/projection.ts';

/** The one activity of these machines that is no deadline: an inline tool that runs. */
const EXECUTE = 'call.execute';

function isHandled(handlers: EffectHandlers, name: string): name is keyof EffectHandlers {
  return Object.hasOwn(handlers, name);
}

export class SessionEffects {
  readonly #core: EffectsSession;
  readonly #calls: CallEffects;
  readonly #deliveries: DeliveryEffects;
  readonly #handlers: EffectHandlers;
  /** Receives the reports of subagents. */
  readonly subagentEvents: SubagentEvents;

  constructor(core: EffectsSession) {
    this.#core = core;
    this.#calls = new CallEffects(core);
    this.#deliveries = new DeliveryEffects(core, this.#calls);
    this.subagentEvents = new SubagentEvents(core);
    this.#handlers = { ...this.#deliveries.handlers, ...this.#handlersOf(core) };
  }

  #handlersOf(core: EffectsSession): Omit<EffectHandlers, keyof DeliveryHandlers> {
    const { lead } = core;
    const waits = (deliveryId: string): void => {
      this.#deliveries.waits(deliveryId);
      this.subagentEvents.reportResult(deliveryId);
    };
    // After each effect of the session and of a question the screens look at it again; see `release`.
    const shown = (): void => {};
    return {
      'session.changed': shown,
      'question.changed': shown,
      'session.connect': ({ attempt }) => lead.connect(attempt),
      'session.hangUp': () => lead.hangUp(),
      'session.disconnect': () => lead.disconnect(),
      'session.transfer': ({ transferId, to }) => lead.transfer(transferId, to),
      'session.transferEnded': ({ transferId, error }) => {
        lead.transferEnded(error);
        core.leads.transfers.settle(transferId, error);
      },
      'transfers.refused': ({ transferId }) =>
        core.leads.transfers.settle(transferId, notActive(core.projection.connection)),
      'session.turnEnded': () => core.turnEnded(),
      'session.giveUpOnUser': () => {
        for (const id of core.unit.questions.ids)
          core.receive(`question:${id}`, { type: 'question.withdraw', reason: 'nobody is there' });
      },
      'session.stopSubagents': () => {
        core.services.stop();
        core.delegation.stop('the session was closed');
        core.services.whenStopped(() =>
          core.delegation.whenEnded(() => core.receive('session', { type: 'subagents.ended' })),
        );
      },
      'session.killSubagents': () => {
        core.services.kill();
        core.delegation.kill('the session was closed');
      },
      'session.ended': ({ error }) => this.#ended(error),
      'question.reply': ({ requestId, end }) => this.#reply(requestId, end),
      'call.validate': ({ callId }) => void this.#calls.validate(callId),
      'call.answer': ({ callId, answer }) => this.#calls.answer(callId, answer),
      'call.delegate': ({ callId }) => this.#calls.delegate(callId),
      'call.deliver': ({ callId }) => waits(callId),
      'call.known': ({ callId }) => this.#deliveries.known(callId),
      'call.cancelSubagent': ({ callId }) => {
        core.delegation.ofCall(callId)?.cancel('its tool call was cancelled');
        this.#deliveries.forget(callId);
      },
      'notices.posted': ({ deliveryId }) => waits(deliveryId),
      'services.placed': ({ eventId, granted }) =>
        core.services.placed(eventId, granted ? null : OUTBOX_FULL),
      'snapshots.written': ({ seq }) => core.snapshots.written(seq),
      'directives.changed': () => lead.configure(),
      'conversation.summarised': ({ summary, covers }) =>
        core.projection.emit({ type: 'conversation.summarised', items: covers.length, summary }),
      'user.heardUser': ({ utterance }) => {
        this.#said(utterance);
        lead.heardUser(utterance);
        core.userInput.said(utterance.id);
      },
      'user.overheard': ({ utterance, subagentName, isAnswer }) => {
        this.#said(utterance);
        lead.overheard(utterance, subagentName, isAnswer);
        core.userInput.said(utterance.id);
      },
      'answers.receipt': ({ ticket, receipt }) => core.userInput.answered(ticket, receipt),
    };
  }

  /** Carries an effect out. An effect without a handler is reported. */
  release({ actor, effect }: Posted): void {
    const kind = actor.split(':', 1)[0] ?? '';
    const name = `${kind}.${effect.name}`;
    if (effect.kind === 'do' && isHandled(this.#handlers, name))
      (this.#handlers[name] as (params: unknown) => void)(effect.params);
    else if (effect.kind === 'start' && name === EXECUTE) this.#calls.execute(idOf(actor));
    else if (effect.kind === 'stop' && name === EXECUTE) this.#calls.stop(idOf(actor));
    else if (effect.kind !== 'do' || !isWired(name)) {
      const message = `Expected an effect of EffectHandlers, got \`${name}\` (${effect.kind})`;
      this.#core.host.report(new OffstageError('INTERNAL', message), `session ${this.#core.id}`);
    }
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
    const { unit, projection, records } = this.#core;
    for (const id of unit.questions.ids) this.#question(id, isAsleep);
    this.#calls.resume();
    this.#deliveries.resume();
    for (const item of records.conversation.items) {
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

  #said({ id, text, startedAt }: Utterance): void {
    const item = { id, role: 'user', text, final: true, at: startedAt } as const;
    this.#core.projection.emit({ type: 'transcript.changed', item });
  }

  #reply(requestId: string, end: QuestionEnd): void {
    const { records, delegation, unit } = this.#core;
    const question = records.questions.get(requestId);
    if (!question) return;
    const asker = delegation.get(question.subagentId);
    const { answer } = question;
    if (end === 'answered' && answer)
      asker?.receive({
        type: 'question.answered',
        requestId,
        answer,
        ...(answer.approved === undefined ? {} : { approved: answer.approved }),
      });
    else if (end === 'expired') asker?.receive({ type: 'question.expired', requestId });
    else asker?.receive({ type: 'question.withdrawn', requestId, reason: end });
    // No new question, even if this process has not shown it yet.
    this.#question(requestId, true);
    records.questions.delete(requestId);
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
    const { records, unit, projection, hooks, host } = this.#core;
    const record = records.questions.get(requestId);
    const state = unit.questions.stateOf(requestId);
    if (!record || !state) return;
    const isNew = !isKnown && projection.question(requestId) === undefined;
    projection.emit({ type: 'question.changed', question: questionView(record, state) });
    if (isNew) callSafely(host, 'hook onQuestion', () => hooks.onQuestion?.(record));
  }
}
