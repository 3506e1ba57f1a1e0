// The lead agent of a text session: a streaming AI SDK model that answers the user,
// calls the session's tools, and tells what the outbox offers.
//
// Owns:     the one response under way, and what shall be responded to next.
// Does not: ask the model (text-response), run tools (the session does), decide when something
//           may be said (outbox).
//
// Invariants
//   E1. One response at a time. What asks for another one meanwhile is answered by the next.
//   E2. The model is called again for tool results only when every call of its last
//       response that is answered at once has its answer.
//   E3. An offer was heard when its whole text was pushed and an observer or a waiter took it, or a
//       reader asked for more after it. Who reads has `ACKNOWLEDGE_MS` for that: an offer that nobody
//       has acknowledged by then, or that nobody can any more, was told (`delivery.told`) and holds up
//       nothing. An acknowledgement counts whenever it comes.
//   E4. A reply that was cut off for something urgent is given afterwards, whatever becomes of
//       what was urgent.
//   E5. Where nobody listens to a delivery, the app is told so, once for a session in this process.

import type { LanguageModel } from 'ai';
import { CancelledError, ConfigurationError, ProviderError } from '../../errors.ts';
import { callSafely } from '../runtime/host.ts';
import type { Lead, Offer, SubagentWords, Utterance } from './lead.ts';
import { intoConversation } from './live-conversation.ts';
import { greetingNote, openQuestionNote, overheardNote, OWED_REPLY_NOTE } from './prompts.ts';
import type { QuestionRecord } from './records.ts';
import type { LeadSession } from './session-parts.ts';
import type { TextOutput, TextPart } from './text-output.ts';
import { runResponse, type ResponseCall, type TextResponse } from './text-response.ts';
import { Watchdog } from './watchdog.ts';

/** The model may call tools so often for one utterance; then it has to answer. */
const MAX_ROUNDS = 8;
/** A response without any sign of life for so long has failed. */
const RESPONSE_TIMEOUT_MS = 60_000;

/** A reader that has not asked for more by then is busy: what it was given holds up nothing. */
const ACKNOWLEDGE_MS = 1000;

/** The states of a call whose answer the model waits for. */
const ANSWERED_AT_ONCE: ReadonlySet<string> = new Set(['received', 'executing']);

export class TextLead implements Lead {
  readonly #core: LeadSession;
  readonly #model: LanguageModel;
  readonly #output: TextOutput;
  readonly #watchdog: Watchdog;
  /** Calls of the last response whose answers the model waits for. */
  readonly #awaited = new Set<string>();
  #wantsReply = false;
  /** A reply was cut off for something urgent (E4). */
  #owesReply = false;
  #offer: Offer | null = null;
  #response: AbortController | null = null;
  /** The offer that the response under way says; null: it is a reply. */
  #saying: Offer | null = null;
  #requested = false;
  #rounds = 0;
  #idle: (() => void)[] = [];
  /** What ends the times to acknowledge that run. */
  readonly #acknowledging = new Set<() => void>();
  /** E5 */
  #hasWarned = false;

  constructor(core: LeadSession, model: LanguageModel, output: TextOutput) {
    this.#core = core;
    this.#model = model;
    this.#output = output;
    this.#watchdog = new Watchdog(core.host.environment, () => {
      const message = `The model showed no sign of life for ${RESPONSE_TIMEOUT_MS} ms`;
      this.#response?.abort(new ProviderError('RESPONSE_TIMEOUT', message, { retryable: true }));
    });
  }

  connect(): void {
    this.#core.receive('session', { type: 'transport.ready' });
  }

  /** There is no line that could be slow. */
  hangUp(): void {}

  /** The next response is that of whoever leads then. */
  transfer(transferId: string): void {
    this.#core.receive('session', { type: 'transfer.ended', transferId, error: null });
  }

  transferEnded(): void {
    this.#next();
  }

  resume(owes: boolean): void {
    const { calls } = this.#core.unit;
    for (const callId of calls.ids)
      if (ANSWERED_AT_ONCE.has(String(calls.stateOf(callId)?.value))) this.#awaited.add(callId);
    this.#wantsReply ||= owes;
    this.#next();
  }

  greet(): void {
    const greeting = greetingNote(this.#core.leads.agent);
    if (greeting === undefined) return;
    this.note(greeting);
    this.#want();
  }

  /** The instructions are read for each response. */
  configure(): void {}

  disconnect(): void {
    this.#watchdog.stop();
    for (const cancel of this.#acknowledging) cancel();
    this.#acknowledging.clear();
    this.#response?.abort(new CancelledError('the session was closed'));
    this.#output.complete();
    this.#settleIdle();
  }

  offer(offer: Offer): void {
    this.#checkSomebodyListens(offer);
    if (offer.kind === 'question') {
      this.#ask(offer);
      return;
    }
    this.#offer = offer;
    this.#next();
  }

  interrupt(): void {
    this.#owesReply ||= this.#response !== null && this.#saying === null;
    this.#response?.abort(new CancelledError('something urgent waits'));
    // While only a tool works there is a pause.
    if (!this.#response) this.#rest();
  }

  abandon(generation: number): void {
    if (this.#offer?.generation === generation) this.#offer = null;
    if (this.#saying?.generation === generation)
      this.#response?.abort(new CancelledError('it need not be said any more'));
  }

  answerTool(callId: string, _output: unknown, respond: boolean): void {
    this.#awaited.delete(callId);
    if (respond) this.#wantsReply = true;
    this.#next();
  }

  deferTool(callId: string): void {
    this.#awaited.delete(callId);
    this.#next();
  }

  note(text: string, role: 'system' | 'user' = 'system'): void {
    this.#note(this.#core.host.environment.ids.next('note'), text, role);
  }

  #note(itemId: string, text: string, role: 'system' | 'user' = 'system'): void {
    const saidAt = this.#core.host.environment.clock.now();
    intoConversation(this.#core, { type: 'conversation.noted', itemId, role, text, saidAt });
  }

  heardUser(): void {
    this.#rounds = 0;
    this.#owesReply = false;
    this.#want();
  }

  overheard({ text }: Utterance, subagentName: string, isAnswer: boolean): void {
    this.note(overheardNote(text, subagentName, isAnswer));
    this.#checkIdle();
  }

  rests(deliveryId: string, seen: () => void): void {
    const { projection, books } = this.#core;
    const view = projection.delivery(deliveryId);
    if (!view) return;
    const question = books.questions.get(deliveryId);
    const part: TextPart = question
      ? questionPart(question, view.text)
      : { type: 'delivery.card', deliveryId, label: view.label, text: view.text };
    const isDue = (): boolean => projection.delivery(deliveryId)?.state === 'pending';
    this.#output.card(deliveryId, part, isDue, seen);
  }

  reported({ kind, subagentId, subagentName, text }: SubagentWords): void {
    this.#output.push({
      type: 'subagent.reported',
      kind,
      subagentId,
      agentName: `subagent-${subagentId}`,
      subagentName,
      text,
      final: false,
    });
  }

  /** Calls back when nothing is being said and nothing is about to be; at once if so. */
  whenIdle(callback: () => void): void {
    this.#idle.push(callback);
    this.#checkIdle();
  }

  #ask(offer: Offer): void {
    const { generation, deliveryId } = offer;
    const question = this.#core.books.questions.get(deliveryId);
    if (!question) return;
    this.#core.receive('outbox', { type: 'delivery.playing', generation });
    const noteId = `${question.requestId}.note`;
    if (this.#core.books.conversation.get(noteId) === undefined)
      this.#note(noteId, openQuestionNote(offer.prompt));
    this.#tell(questionPart(question, offer.text), generation);
  }

  /** All of an offer is said; what becomes of it is told to the outbox (E3). */
  #tell(part: TextPart, generation: number): void {
    const core = this.#core;
    let isOver = false;
    let stopClock = (): void => {};
    const over = (): void => {
      isOver = true;
      stopClock();
      this.#acknowledging.delete(stopClock);
    };
    const told = (): void => {
      over();
      core.receive('outbox', { type: 'delivery.told', generation });
    };
    this.#output.push(part, {
      seen: () => {
        over();
        core.receive('outbox', { type: 'delivery.heard', generation, grade: 'assumed' });
      },
      unseen: () => {
        if (!isOver) told();
      },
    });
    if (isOver) return;
    stopClock = core.host.environment.scheduler.schedule(told, ACKNOWLEDGE_MS);
    this.#acknowledging.add(stopClock);
  }

  /** E5 */
  #checkSomebodyListens({ kind, deliveryId }: Offer): void {
    const core = this.#core;
    if (this.#hasWarned || this.#output.isHeard || core.door.followers > 0) return;
    this.#hasWarned = true;
    const expected =
      `Nobody listens to the ${kind} ${deliveryId}: it waits as a card until somebody does. ` +
      'Subscribe to session.parts, read session.send() or session.read(), await session.nextResult(), ' +
      'or subscribe to session.clientMessages and call session.shown(deliveryId) for what was seen. ' +
      '`events` and `store` never count as the user.';
    core.reportError(new ConfigurationError('NOBODY_LISTENS', expected), 'text output');
  }

  #want(): void {
    this.#wantsReply = true;
    this.#next();
  }

  /** Begins the next response, if one is wanted and none is under way. */
  #next(): void {
    if (this.#response || this.#core.unit.unit.disposed) return;
    // Nobody leads yet, or whoever leads then shall speak.
    if (!this.#core.unit.session.getSnapshot().hasTag('connected')) return;
    if (this.#owesReply && !this.#offer && !this.#isUrgentWaiting()) {
      this.#owesReply = false;
      this.note(OWED_REPLY_NOTE);
      this.#wantsReply = true;
    }
    // E2: the answers that are still due belong to what the model reads next.
    const isReply = this.#wantsReply && this.#awaited.size === 0;
    const offer = isReply ? null : this.#offer;
    if (!isReply && !offer) {
      if (this.#awaited.size === 0) this.#rest();
      return;
    }
    if (isReply) this.#wantsReply = false;
    const controller = new AbortController();
    this.#response = controller;
    this.#saying = offer;
    this.#watchdog.watch(RESPONSE_TIMEOUT_MS);
    if (!this.#requested) this.#core.receive('session', { type: 'response.requested' });
    this.#requested = true;
    const { host } = this.#core;
    host.environment.scheduler.yieldThen(() =>
      callSafely(host, 'response', () => this.#respond(controller.signal, offer)),
    );
  }

  #rest(): void {
    if (this.#requested) {
      this.#requested = false;
      this.#core.receive('session', { type: 'response.ended' });
    }
    this.#checkIdle();
  }

  async #respond(signal: AbortSignal, offer: Offer | null): Promise<void> {
    const core = this.#core;
    if (core.unit.unit.disposed) return;
    // What the user says meanwhile belongs to the next reply, and so do the calls made for it.
    const { requestId } = core.books;
    if (offer) this.note(offer.prompt, offer.role);
    else this.#rounds += 1;
    const response = await runResponse({
      core,
      model: this.#model,
      output: this.#output,
      signal,
      // What a subagent reported is told; it starts nothing new by itself.
      mayCall: offer === null && this.#rounds <= MAX_ROUNDS,
      tells: offer,
      onSign: () => this.#watchdog.sign(),
      onWords: () => {
        if (!offer) return;
        const { generation } = offer;
        core.receive('outbox', { type: 'delivery.playing', generation });
      },
      onCall: (call) => this.#called(call, requestId),
    });
    this.#watchdog.stop();
    this.#settle(response, offer);
    this.#response = null;
    this.#saying = null;
    this.#next();
  }

  #called(call: ResponseCall, requestId: string | null): void {
    const callId = this.#freshCallId(call.callId);
    this.#awaited.add(callId);
    const calledAt = this.#core.host.environment.clock.now();
    intoConversation(this.#core, {
      type: 'tool.called',
      callId,
      name: call.name,
      arguments: call.arguments,
      agentName: call.agentName,
      calledAt,
      requestId,
    });
  }

  #settle({ itemId, text, isBroken }: TextResponse, offer: Offer | null): void {
    const core = this.#core;
    const done = {
      type: 'text.done',
      itemId,
      text,
      deliveryId: offer?.deliveryId ?? null,
      ...(offer?.deliveryIds && { deliveryIds: offer.deliveryIds }),
    } as const;
    if (!offer) {
      if (text !== '') this.#output.push(done);
      return;
    }
    const { generation } = offer;
    if (this.#offer?.generation === generation) this.#offer = null;
    if (isBroken || text === '')
      core.receive('outbox', {
        type: isBroken ? 'delivery.interrupted' : 'delivery.failed',
        generation,
      });
    else this.#tell(done, generation);
  }

  /** Will something urgent be offered as soon as the model is silent? */
  #isUrgentWaiting(): boolean {
    const { pending } = this.#core.unit.outbox.getSnapshot().context;
    return pending.some(({ priority, resting }) => priority === 'urgent' && !resting);
  }

  /** Some providers count their calls from 0 in each answer: here an id names one call for ever. */
  #freshCallId(callId: string): string {
    const { books, host } = this.#core;
    const isTaken = (id: string): boolean =>
      id === '' ||
      this.#awaited.has(id) ||
      books.calls.has(id) ||
      books.conversation.get(id) !== undefined;
    let fresh = callId;
    while (isTaken(fresh)) fresh = host.environment.ids.next('call');
    return fresh;
  }

  #checkIdle(): void {
    if (this.#response || this.#wantsReply || this.#owesReply || this.#awaited.size > 0) return;
    this.#settleIdle();
  }

  #settleIdle(): void {
    const waiting = this.#idle;
    this.#idle = [];
    for (const callback of waiting) callback();
  }
}

function questionPart(
  { requestId, options, subagentName }: QuestionRecord,
  question: string,
): TextPart {
  return { type: 'question.asked', requestId, question, options, subagentName };
}
