// The lead agent of a text session: a streaming AI SDK model that answers the user, calls the session's tools, and
// delivers the outbox's offers.
//
// Owns:     the stream of the current response, the text that delivers an offer, and the notes for the model.
// Does not: choose the next response (turn machine), run tools (the session does), or decide when an item is offered
//           (outbox).
//
// Invariants
//   TEXT-LEAD-1. One response runs at a time (TURN-1). A request that arrives in the meantime is answered by the next
//       response.
//   TEXT-LEAD-2. After tool calls, the model is called again only when all calls in its last response that need an
//       immediate answer have been answered.
//   TEXT-LEAD-3. An offer counts as heard when its whole text has been pushed and has been received by an observer or a
//       waiter, or pulled past by a reader. A reader has `ACKNOWLEDGE_MS` for that. If an offer has not been
//       acknowledged by then, or no reader can acknowledge it, it is considered reported (`delivery.told`) and no
//       longer delays anything. A later acknowledgement still counts.
//   TEXT-LEAD-4. If an urgent item cuts off a reply, the reply is given afterwards, whatever happens to the item.
//   TEXT-LEAD-5. If a new session has never had a listener, its first delivery without a listener is reported to the
//       app. A client that has left, or has not returned after a restart, is not an error of the app.
//   TEXT-LEAD-6. Reporting an offer takes a limited number of responses. The model may call tools in each of them
//       except the last, as in a reply. The offer counts as reported when the model has written text and no call
//       follows. Calls alone do not report it. While a delivery is being reported, in any attempt, no call is repeated.
//       This includes the call whose result is being reported (P6), because its result is in the conversation. Offers
//       may use only a limited number of tool call rounds until the user speaks again (`MAX_UNASKED`).
//   TEXT-LEAD-7. While the model waits for a slow tool, due offers may be reported. User input ends the model's waits
//       for subagents.
//   TEXT-LEAD-8. Each tool call in a response has its own entry, which records whether another call follows it. After a
//       crash between two tool calls, the model is told which calls were made, so that it makes the others.
//   TEXT-LEAD-9. The entries for the lead agent's text and calls name the last item that the model had read. Input and
//       results that arrived in the meantime therefore still receive a reply, even after a crash. A report of an offer
//       does not count as a reply to any item. A result that the outbox delivers, or that the user already has, needs
//       no reply.
//   TEXT-LEAD-10. A response's usage has its own entry, which is written before the response's text. After a crash
//       between the two entries, the response is requested again, and both responses have used tokens.
//   TEXT-RESPONSE-1. Text and calls follow the items that the model had read when it was called, in the order in which
//       they were written. They precede all items that arrived in the meantime. The model's next call answers those.
//   TEXT-RESPONSE-2. A response with neither text nor calls is a failure, because the user would receive no answer. It
//       is not a failure if the model has written text since the user last spoke, for example before the calls that led
//       to this response.
//   TEXT-RESPONSE-3. A response always ends and never throws.
//   TEXT-RESPONSE-4. A call is passed on only when the next part of the stream has shown whether another call follows.
//       The journal therefore shows if the process crashed between two calls.

import type { Echo } from '../../../values/echo.ts';
import { callKey, parsedOrText } from '../../../values/json.ts';
import type { LanguageModel } from 'ai';
import { CancelledError, ConfigurationError, isA, ProviderError } from '../../../values/errors.ts';
import { storableText } from '../../../values/storable.ts';
import { modelError } from '../../model/model-step.ts';
import { promptText, type Prompt } from '../../notes/note.ts';
import { callSafely } from '../../runtime/host.ts';
import type { Shown } from '../../runtime/hosting.ts';
import {
  followQuestion,
  HOLDS_FLOOR_MS,
  isHeardNow,
  type Offer,
  type RestingCard,
  type Speaker,
  type SpokenTo,
  type SubagentWords,
  type ToolAnswer,
} from './speaker.ts';
import { intoConversation, noted } from '../state/live-conversation.ts';
import {
  alreadyCalledNote,
  CUT_OFF_NOTE,
  greetingNote,
  LATE_ANSWER_NOTE,
  openQuestionNote,
  overheardNote,
  OWED_REPLY_NOTE,
  READ_WORDS_NOTE,
} from '../../conversation/prompts.ts';
import { isMessage } from '../../conversation/items.ts';
import type { QuestionRecord, Utterance } from '../../contracts/records.ts';
import {
  replyIsComing,
  replyIsWanted,
  type AwaitedCall,
  type TurnInput,
  type TurnResponse,
} from '../../../machines/index.ts';
import { next } from '../../../machines/outbox-setup.ts';
import type { LeadSession } from './lead-agents.ts';
import { askLead, type LeadCall, type LeadQuestion, type LeadTurn } from './lead-stream.ts';
import type { TextOutput, TextPart } from './text-output.ts';
import { TurnChart } from './turn-chart.ts';
import { Watchdog } from './watchdog.ts';

/** The maximum number of tool call rounds for one utterance or one offer. After that, the model must speak. */
const MAX_ROUNDS = 8;

/** The maximum number of tool call rounds for offers before the user speaks again. */
const MAX_UNASKED = 32;

/** The time without any model activity after which a response counts as failed. */
const RESPONSE_TIMEOUT_MS = 60_000;

/** The time after which a reader that has not pulled is considered busy and no longer delays other items. */
const ACKNOWLEDGE_MS = 1000;

/** A text model speaks only when it is called, and the user cannot interrupt it by voice. */
const TURN: TurnInput = {
  keepsOffers: true,
  whileToolWorks: 'ends_turn',
  answersWords: false,
  answersResults: false,
  holdsFloorMs: HOLDS_FLOOR_MS,
  settleTimeoutMs: 0,
  replyTimeoutMs: 0,
  // `askLead` has already retried a failed model call. After that, the client is notified and may retry.
  maxAsked: 1,
  doubtMs: 0,
  falseInterruptionMs: 0,
};

type Said = Extract<TextPart, { type: 'text.done' }>;

/** The progress of delivering an offer, across all its responses. */
interface Telling extends LeadTurn {
  /** The text of the last response, if calls followed the text. */
  said: Said | null;
}

/** The context in which a call was made. */
interface Making extends Pick<AwaitedCall, 'of'> {
  readonly requestId: string | null;
  readonly repliesTo: string | null;
  readonly responseId: string;
  readonly isFollowed: boolean;
  readonly after: string | undefined;
}

/** The result of a response. */
interface Response {
  readonly itemId: string;
  /** The whole text of the response. */
  readonly text: string;
  readonly hasCalled: boolean;
  /** Whether the response was aborted or failed before it was complete. */
  readonly isBroken: boolean;
}

export class TextLead implements Speaker {
  readonly #core: LeadSession;
  readonly #model: LanguageModel;
  readonly #output: TextOutput;
  readonly #watchdog: Watchdog;
  readonly #turn: TurnChart;
  /** The newest offer. The turn machine decides whether it must still be delivered. */
  #offer: Offer | null = null;
  /** The progress of delivering the offer, or null before delivery starts. */
  #telling: Telling | null = null;
  /** The rounds of tool calls for offers since the user last spoke. */
  #unasked = 0;
  /**
   * Whether the model received a note or an offer while a tool ran. If so, the tool's result is not the last message
   * that the model reads.
   */
  #hasToldBetween = false;
  /** Whether the previous process died between two calls of one response (TEXT-LEAD-8). */
  #wasCutOff = false;
  /** Aborts the stream of the current response. */
  #response: AbortController | null = null;
  #replying: LeadTurn = { rounds: 0 };
  #idle: (() => void)[] = [];
  /** Cancels the running acknowledgement timers. */
  readonly #acknowledging = new Set<() => void>();
  /** TEXT-LEAD-5 */
  #hasWarned = false;

  constructor(core: LeadSession, model: LanguageModel, output: TextOutput) {
    this.#core = core;
    this.#model = model;
    this.#output = output;
    output.awaitedBy((ids) => core.awaited.wants(ids));
    this.#watchdog = new Watchdog(core.host.environment, () => {
      const message = `The model showed no activity for ${RESPONSE_TIMEOUT_MS} ms`;
      this.#response?.abort(new ProviderError('RESPONSE_TIMEOUT', message, { retryable: true }));
    });
    this.#turn = new TurnChart(core, TURN, () => this.#isConnected, {
      reply: () => this.#reply(),
      tell: () => this.#tell(),
      brokenOff: ({ generation }) => {
        this.#telling = null;
        core.receive('outbox', { type: 'delivery.interrupted', generation });
      },
      remind: () => this.note(OWED_REPLY_NOTE, false),
      take: () => core.receive('session', { type: 'response.requested' }),
      release: () => core.receive('session', { type: 'response.ended' }),
      unanswered: () =>
        core.projection.emit({
          type: 'utterance.unanswered',
          utteranceId: core.records.utteranceId,
          reason: 'no_reply',
        }),
      rest: () => this.#checkIdle(),
    });
  }

  machines(): readonly Shown[] {
    return [this.#turn.shown];
  }

  connect(): void {
    this.#core.receive('session', { type: 'transport.ready' });
  }

  /** Nothing to prepare, because the agent that leads at that time gives the next response. */
  transfer(transferId: string): void {
    this.#core.receive('session', { type: 'transfer.ended', transferId, error: null });
  }

  transferEnded(): void {
    this.#next();
  }

  begin(owes: 'greeting' | 'reply' | null): void {
    if (owes === 'greeting') {
      const greeting = greetingNote(this.#core.agents.current);
      if (greeting === undefined) return;
      this.note(greeting, false);
      this.#turn.send({ type: 'reply.wanted' });
      this.#next();
      return;
    }
    const { calls } = this.#core.unit;
    for (const callId of calls.ids) {
      const isReceived = calls.stateOf(callId)?.value === 'received';
      if (isReceived || this.#core.unit.runOf(callId) === 'awaited')
        this.#awaits(callId, isOfTelling(this.#core, callId) ? 'offer' : 'reply');
    }
    if (owes !== null) this.#turn.send({ type: 'reply.wanted' });
    const { items } = this.#core.records.conversation;
    const last = items.findLast(({ role }) => role === 'tool_call' || role === 'assistant');
    this.#wasCutOff = last?.role === 'tool_call' && last.isFollowed === true;
    this.#next();
  }

  /** Nothing to do, because each response reads the current instructions. */
  configure(): void {}

  /** Stops all timers if `forGood`. A text model has no connection to close. */
  disconnect(forGood: boolean): void {
    if (!forGood) return;
    this.#watchdog.stop();
    this.#turn.stop();
    for (const cancel of this.#acknowledging) cancel();
    this.#acknowledging.clear();
    this.#response?.abort(new CancelledError('the session was closed'));
    this.#output.complete();
    this.#settleIdle();
  }

  say(offer: Offer): void {
    this.#checkHasListener(offer);
    if (offer.kind === 'question') {
      this.#ask(offer);
      return;
    }
    this.#offer = offer;
    this.#telling = null;
    const { generation } = offer;
    this.#turn.send({ type: 'offer.made', generation, key: keyOf(generation) });
    this.#next();
  }

  stop(generation: number | null): void {
    if (generation !== null) {
      this.#endTelling(generation);
      if (this.#underWay?.key === keyOf(generation))
        this.#response?.abort(new CancelledError('the delivery is no longer due'));
      this.#next();
      return;
    }
    if (this.#underWay?.says === 'reply') this.#turn.send({ type: 'reply.cutOff' });
    this.#response?.abort(new CancelledError('an urgent delivery waits'));
    // While only a tool is running, the model is paused.
    this.#turn.send({ type: 'urgent.waits' });
    this.#checkIdle();
  }

  answer(callId: string, answer: ToolAnswer | null): void {
    if (answer === null) this.#turn.send({ type: 'call.dropped', callId });
    else this.#turn.send({ type: 'call.answered', callId, respond: answer.respond });
    this.#next();
  }

  note(prompt: Prompt, respond: boolean, id?: string): void {
    const { records, host } = this.#core;
    if (id !== undefined && records.conversation.get(id)) return;
    this.#note(id ?? host.environment.ids.next('note'), prompt);
    if (!respond) return;
    this.#replying = { rounds: 0 };
    this.#turn.send({ type: 'reply.wanted' });
    this.#next();
  }

  #note(itemId: string, prompt: Prompt, role: 'system' | 'user' = 'system'): void {
    this.#hasToldBetween ||= this.#isResultAwaited;
    const saidAt = this.#core.host.environment.clock.now();
    intoConversation(this.#core, noted(itemId, prompt, role, saidAt));
  }

  heard({ text }: Utterance, to: SpokenTo | null): void {
    if (to !== null) {
      const isAbout = typeof to.were === 'object' && to.were !== null;
      this.note(overheardNote(text, to.subagentName, isAbout), false);
      this.#checkIdle();
      return;
    }
    this.#replying = { rounds: 0 };
    this.#unasked = 0;
    // The lead agent may be about to start waiting for subagents (TEXT-LEAD-7).
    this.#core.tree.waits.userWaits(true);
    // A text model does not notice new input on its own, so it must be called.
    this.#turn.send({ type: 'reply.toWords', typed: true });
    this.#next();
  }

  show(shown: RestingCard | SubagentWords): void {
    if (shown.kind === 'card') {
      this.#showCard(shown);
      return;
    }
    const { kind, subagentId, subagentName, text } = shown;
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

  #showCard({ deliveryId, seen }: RestingCard): void {
    const { projection, records } = this.#core;
    const view = projection.delivery(deliveryId);
    if (!view) return;
    const question = records.questions.get(deliveryId);
    const part: TextPart = question
      ? questionPart(question, view.text)
      : { type: 'delivery.card', deliveryId, label: view.label, text: view.text };
    const isDue = (): boolean => projection.delivery(deliveryId)?.state === 'pending';
    if (!question) followQuestion(this.#core);
    this.#output.card(deliveryId, part, isDue, seen);
  }

  /** Calls back as soon as no response is running or about to start, or immediately if none is. */
  whenIdle(callback: () => void): void {
    this.#idle.push(callback);
    this.#checkIdle();
  }

  #ask(offer: Offer): void {
    const { generation, deliveryId } = offer;
    const question = this.#core.records.questions.get(deliveryId);
    if (!question) return;
    this.#core.receive('outbox', isHeardNow(offer));
    const noteId = `${question.requestId}.note`;
    if (this.#core.records.conversation.get(noteId) === undefined)
      this.#note(noteId, openQuestionNote(offer.prompt));
    this.#deliver(questionPart(question, offer.text), generation);
  }

  /** Pushes an offer's whole text, and reports the outcome to the outbox (TEXT-LEAD-3). */
  #deliver(part: TextPart, generation: number): void {
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

  /** Reports a delivery without a listener (TEXT-LEAD-5). */
  #checkHasListener({ kind, deliveryId }: Offer): void {
    const core = this.#core;
    const { awaited, userInput } = core;
    const isHeard = this.#output.isHeard || userInput.listeners > 0 || awaited.isListening;
    if (this.#hasWarned || isHeard || userInput.hasListeners) return;
    this.#hasWarned = true;
    const expected =
      `The ${kind} ${deliveryId} has no listener: it waits as a card until a client listens. ` +
      'Subscribe to session.parts, read session.send() or session.read(), await session.nextResult(), ' +
      'or call session.listen(), and session.shown(deliveryId) for each delivery that the user has seen. ' +
      '`events` and `store` never count as the user. A client of `serve` listens while it is connected.';
    core.reportError(new ConfigurationError('NOBODY_LISTENS', expected), 'text output');
  }

  get #isConnected(): boolean {
    const { unit, session } = this.#core.unit;
    // While the session is not connected, either no agent leads yet or the next agent will speak.
    return !unit.disposed && session.snapshot.hasTag('connected');
  }

  /** The current response. */
  get #underWay(): TurnResponse | undefined {
    return this.#turn.context.responses[0];
  }

  /** Whether the model is waiting for the result of a call that it made in a reply. */
  get #isResultAwaited(): boolean {
    return this.#turn.context.calls.some(({ of }) => of === 'reply');
  }

  /** Whether a reply could start and is only waiting for the current response. */
  get #isReplyDue(): boolean {
    const { snapshot } = this.#turn;
    return snapshot.matches({ reply: 'due' }) && snapshot.context.calls.length === 0;
  }

  /** Starts the next response if one is due and none is running. */
  #next(): void {
    const { isOwed, offer, responses } = this.#turn.context;
    const isUrgentOver = offer === null && responses.length === 0 && !this.#isUrgentWaiting();
    if (isOwed && isUrgentOver && this.#isConnected) this.#turn.send({ type: 'urgent.over' });
    this.#turn.send({ type: 'choose' });
  }

  #reply(): void {
    this.#core.tree.waits.userWaits(false);
    if (this.#hasToldBetween) this.note(LATE_ANSWER_NOTE, false);
    this.#hasToldBetween = false;
    if (this.#wasCutOff) this.note(CUT_OFF_NOTE, false);
    this.#wasCutOff = false;
    this.#request(null);
  }

  #tell(): void {
    this.#hasToldBetween ||= this.#isResultAwaited;
    this.#request(this.#offer);
  }

  #request(offer: Offer | null): void {
    const controller = new AbortController();
    this.#response = controller;
    this.#watchdog.watch(RESPONSE_TIMEOUT_MS);
    const { host } = this.#core;
    host.environment.scheduler.yieldThen(() =>
      callSafely(host, 'response', () => this.#respond(controller.signal, offer)),
    );
  }

  /** Completes the delivery of an offer, unless another offer has replaced it. */
  #endTelling(generation: number): void {
    if (this.#turn.context.offer?.generation !== generation) return;
    this.#telling = null;
    this.#turn.send({ type: 'offer.over', generation });
  }

  async #respond(signal: AbortSignal, offer: Offer | null): Promise<void> {
    const core = this.#core;
    if (core.unit.unit.disposed) return;
    this.#turn.send({ type: 'request.read' });
    // Otherwise, the model would read later input for the offer's response without answering that input.
    if (offer && this.#isReplyDue) return this.#responded();
    // Input that the user sends in the meantime belongs to the next reply, as do the calls made for it.
    const { utteranceId: requestId } = core.records;
    const telling = offer ? (this.#telling ??= this.#begin(offer)) : null;
    const turn = telling ?? this.#replying;
    turn.rounds += 1;
    const mayCall = turn.rounds <= MAX_ROUNDS && (!telling || this.#unasked < MAX_UNASKED);
    const response = await this.#say(signal, offer, { turn, mayCall, requestId });
    if (telling && response.hasCalled) this.#unasked += 1;
    this.#settle(response, offer);
    this.#responded();
  }

  #responded(): void {
    this.#watchdog.stop();
    this.#response = null;
    this.#turn.send({ type: 'request.ended', continuesAs: null });
    this.#next();
  }

  /** Calls the model for a response, streams its text, and then passes on its calls (TEXT-RESPONSE-3). */
  async #say(
    signal: AbortSignal,
    offer: Offer | null,
    {
      turn,
      mayCall,
      requestId,
    }: Pick<LeadQuestion, 'turn' | 'mayCall'> & { readonly requestId: string | null },
  ): Promise<Response> {
    const core = this.#core;
    const { clock, ids } = core.host.environment;
    const telling = offer ? this.#telling : null;
    // The model already saw this input in its response to an offer; the input arrived late, or an earlier process did
    // not answer it.
    const wroteLast = !offer && endsWithAssistant(core);
    if (wroteLast) this.note(READ_WORDS_NOTE, false);
    const maySayNothing = offer ? Boolean(telling?.said) : wroteLast || hasReplied(core);
    const readTo = core.records.conversation.items.at(-1)?.id ?? null;
    const itemId = ids.next('item');
    let text = '';
    let at = 0;
    let hasCalled = false;
    let isBroken = false;
    let echo: Echo | undefined;
    /** The last item that the model has read, or the last call that it has made since then (TEXT-RESPONSE-1). */
    let after = readTo ?? undefined;
    /** The value of `after` when the text started. */
    let saidAfter = after;
    let made: LeadCall | null = null;
    /** Passes on the pending call (TEXT-RESPONSE-4). */
    const handOver = (isFollowed: boolean): void => {
      if (!made) return;
      const of = offer ? 'offer' : 'reply';
      if (offer && wasMade(core, offer, made)) this.note(alreadyCalledNote(made.name), false);
      else
        after = this.#call(made, {
          of,
          requestId: offer && hasReplied(core) ? null : requestId,
          repliesTo: offer ? null : readTo,
          responseId: itemId,
          isFollowed,
          after,
        });
      made = null;
    };
    const show = (final: boolean): void =>
      core.projection.emit({
        type: 'transcript.changed',
        item: {
          id: itemId,
          role: 'assistant',
          text,
          final,
          at,
          ...(isBroken ? { interrupted: true } : {}),
          // The ids that a client uses to acknowledge the deliveries.
          ...(final && !isBroken && !hasCalled && offer
            ? {
                deliveryId: offer.deliveryId,
                ...(offer.deliveryIds && { deliveryIds: offer.deliveryIds }),
              }
            : {}),
        },
      });
    try {
      const parts = askLead(core, {
        model: this.#model,
        turn,
        mayCall,
        maySayNothing,
        signal,
        touch: () => this.#watchdog.touch(),
      });
      for await (const part of parts) {
        handOver(part.type === 'call' || part.type === 'calling');
        if (part.type === 'end') echo = part.echo;
        if (!offer && (part.type === 'end' ? maySayNothing : part.type !== 'other')) this.#spoke();
        if (part.type === 'call') {
          hasCalled = true;
          made = part.call;
        }
        if (part.type !== 'text') continue;
        if (text === '') {
          at = clock.now();
          saidAfter = after;
          core.records.saying(itemId, '', at, after);
          followQuestion(core);
          if (offer) {
            this.#pushSaid(telling);
            core.receive('outbox', isHeardNow(offer));
          }
        }
        text += part.text;
        show(false);
        this.#output.push({ type: 'text.delta', itemId, text: part.text });
      }
    } catch (error) {
      isBroken = true;
      if (!signal.aborted || isA(error, ProviderError)) {
        const failed = modelError(error);
        core.reportError(failed, 'lead model');
        this.#output.push({ type: 'response.failed', code: failed.code, message: failed.message });
      }
    }
    handOver(false);
    isBroken ||= signal.aborted;
    // Applied to the whole text, because two deltas may split a surrogate pair.
    text = storableText(text);
    if (text !== '') {
      //   TEXT-LEAD-9. If the reply is due again, it had been cut off (TEXT-LEAD-4).
      const repliesTo = offer || this.#turn.context.isOwed ? null : readTo;
      intoConversation(core, {
        type: 'assistant.said',
        itemId,
        text,
        saidAt: at,
        repliesTo,
        ...(saidAfter !== undefined && { after: saidAfter }),
        ...(echo && !isBroken && { echo }),
      });
      // After this text, a question that a screen presented in the meantime is no longer the last thing said.
      followQuestion(core);
      show(true);
    }
    return { itemId, text, hasCalled, isBroken };
  }

  /** Records that the reply has started, with text or with a call. */
  #spoke(): void {
    if (replyIsComing(this.#turn.snapshot))
      this.#turn.send({ type: 'model.spoke', responseId: null });
  }

  #begin(offer: Offer): Telling {
    const { deliveryId, generation, prompt, role } = offer;
    const id = `${tellingsOf(deliveryId)}${generation}`;
    const last = this.#core.records.conversation.items.at(-1);
    // If the model returned nothing in response to the note, the note is still the last item.
    const isThere =
      last !== undefined &&
      isMessage(last) &&
      last.id.startsWith(tellingsOf(deliveryId)) &&
      promptText(last.note ?? last.text) === promptText(prompt);
    if (!isThere) this.#note(id, prompt, role);
    return { rounds: 0, context: null, said: null };
  }

  #awaits(callId: string, of: AwaitedCall['of']): void {
    this.#turn.send({ type: 'call.made', callId, responseId: '', of });
  }

  /** Passes on a call and returns its id. */
  #call(
    { name, callId: given, arguments: json, agentName, echo }: LeadCall,
    { of, requestId, repliesTo, responseId, isFollowed, after }: Making,
  ): string {
    const callId = this.#freshCallId(given);
    this.#awaits(callId, of);
    intoConversation(this.#core, {
      type: 'tool.called',
      callId,
      name,
      arguments: json,
      agentName,
      calledAt: this.#core.host.environment.clock.now(),
      requestId,
      repliesTo,
      responseId,
      ...(isFollowed && { isFollowed }),
      ...(after !== undefined && { after }),
      ...(echo && { echo }),
    });
    return callId;
  }

  #settle({ itemId, text, hasCalled, isBroken }: Response, offer: Offer | null): void {
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
    const isDue = this.#turn.context.offer?.generation === generation;
    const telling = isDue ? this.#telling : null;
    if (!isBroken && hasCalled) {
      //   TEXT-LEAD-6. The report of the offer continues when the calls have been answered. It does not continue if the
      //       offer has been cancelled by then.
      if (telling && text !== '') telling.said = done;
      else if (text !== '')
        this.#output.push({ type: 'text.done', itemId, text, deliveryId: null });
      return;
    }
    this.#endTelling(generation);
    const said = text === '' ? (telling?.said ?? null) : done;
    if (isBroken || said === null) {
      this.#pushSaid(telling);
      core.receive('outbox', {
        type: isBroken ? 'delivery.interrupted' : 'delivery.failed',
        generation,
      });
      return;
    }
    if (text === '') showTold(core, said);
    this.#deliver(said, generation);
  }

  /** Pushes the text before the calls, because more text about the offer will follow. */
  #pushSaid(telling: Telling | null): void {
    if (!telling?.said) return;
    const { itemId, text } = telling.said;
    telling.said = null;
    this.#output.push({ type: 'text.done', itemId, text, deliveryId: null });
  }

  /** Returns whether an urgent item will be offered as soon as the model is silent. */
  #isUrgentWaiting(): boolean {
    return next(this.#core.unit.outbox.snapshot.context)?.priority === 'urgent';
  }

  /** Returns a unique call id, because some providers restart their call numbers at 0 in each response. */
  #freshCallId(callId: string): string {
    const { records, host } = this.#core;
    const isTaken = (id: string): boolean =>
      id === '' ||
      this.#turn.context.calls.some(({ callId: awaited }) => awaited === id) ||
      records.calls.has(id) ||
      records.conversation.get(id) !== undefined;
    let fresh = callId;
    while (isTaken(fresh)) fresh = host.environment.ids.next('call');
    return fresh;
  }

  #checkIdle(): void {
    const { snapshot } = this.#turn;
    const { responses, calls, isOwed } = snapshot.context;
    const isIdle = responses.length === 0 && calls.length === 0 && !isOwed;
    if (this.#turn.isOver || (isIdle && !replyIsWanted(snapshot))) this.#settleIdle();
  }

  #settleIdle(): void {
    const waiting = this.#idle;
    this.#idle = [];
    for (const callback of waiting) callback();
  }
}

/** Returns whether the model's own message comes last. Providers refuse such input or continue the message. */
function endsWithAssistant({ records }: LeadSession): boolean {
  const last = records.conversation.items.findLast(
    (item) => item.role !== 'tool_result' && !(isMessage(item) && item.partial),
  );
  // Handles the usual cases without building the messages.
  if (last?.role === 'tool_call' || (last?.role === 'user' && last.text.trim() !== ''))
    return false;
  return records.conversation.toModelMessages().at(-1)?.role === 'assistant';
}

/** Returns whether the lead agent has replied with text since the user last spoke. */
function hasReplied({ records }: LeadSession): boolean {
  const last = records.conversation.items.findLast(
    (item) =>
      item.role === 'user' ||
      (item.role === 'assistant' && item.text !== '' && item.repliesTo !== null),
  );
  return last?.role === 'assistant';
}

/** Returns the key shared by the responses that deliver an offer. */
const keyOf = (generation: number): string => `offer:${generation}`;

/** Returns the id prefix of the notes that start each attempt to report a delivery. The ids end with the generation. */
const tellingsOf = (deliveryId: string): string => `${deliveryId}.told.`;

/** Adds the delivery's id to the text before the calls, so that a client can acknowledge the delivery. */
function showTold({ projection }: LeadSession, { itemId, deliveryId, deliveryIds }: Said): void {
  const item = projection.item(itemId);
  if (!item || deliveryId === null) return;
  projection.emit({
    type: 'transcript.changed',
    item: { ...item, deliveryId, ...(deliveryIds && { deliveryIds }) },
  });
}

/**
 * Returns whether this call was made after the delivery was first offered (in any attempt and process), or is the call
 * whose result is being reported.
 */
function wasMade(
  { records }: LeadSession,
  { deliveryId, deliveryIds = [deliveryId] }: Offer,
  { name, arguments: json }: LeadCall,
): boolean {
  const key = callKey(name, parsedOrText(json));
  const isOwn = deliveryIds.some((id) => {
    const call = records.calls.get(id);
    return call !== undefined && callKey(call.name, parsedOrText(call.arguments)) === key;
  });
  if (isOwn) return true;
  const { items } = records.conversation;
  const since = items.findIndex(({ id }) => id.startsWith(tellingsOf(deliveryId)));
  return items
    .slice(since < 0 ? items.length : since)
    .some((item) => item.role === 'tool_call' && callKey(item.toolName, item.args) === key);
}

/** Returns whether a call was made during the delivery of an offer that is still due. */
export function isOfTelling(
  { records, unit }: Pick<LeadSession, 'records' | 'unit'>,
  callId: string,
): boolean {
  const { items } = records.conversation;
  const { pending, current } = unit.outbox.snapshot.context;
  const due = [...pending, ...(current ? [current] : [])].map(({ deliveryId }) =>
    tellingsOf(deliveryId),
  );
  const call = items.findIndex((item) => item.role === 'tool_call' && item.callId === callId);
  const before = items.slice(0, Math.max(0, call));
  const told = before.findLastIndex(({ id }) => due.some((tellings) => id.startsWith(tellings)));
  return told >= 0 && !before.slice(told + 1).some((item) => item.id === records.utteranceId);
}

function questionPart(
  { requestId, options, subagentName }: QuestionRecord,
  question: string,
): TextPart {
  return { type: 'question.asked', requestId, question, options, subagentName };
}
