// The lead agent of a text session: a streaming AI SDK model that answers the user, calls the session's
// tools, and tells the offers of the outbox.
//
// Owns:     the stream of the response under way, the words of a telling, and the notes that the model reads.
// Does not: choose the next response (turn machine), run tools (the session does), or decide when something may
//           be said (outbox).
//
// Invariants
//   TEXT-LEAD-1. One response at a time (TURN-1). A request for another one meanwhile is answered by the next.
//   TEXT-LEAD-2. The model is called again for tool results only when every call of its last response that is
//       answered at once has its answer.
//   TEXT-LEAD-3. An offer was heard when its whole text was pushed and an observer or a waiter took it, or a
//       reader asked for more after it. A reader has `ACKNOWLEDGE_MS` for that: an offer without an
//       acknowledgement by then, or without a reader that could acknowledge it, was told (`delivery.told`)
//       and holds up nothing. An acknowledgement counts whenever it comes.
//   TEXT-LEAD-4. A reply that was cut off for an urgent item is given afterwards, whatever becomes of the
//       item.
//   TEXT-LEAD-5. A delivery without a listener is reported to the app, once: for a new session that has never had one. A
//       client that left, or has not come back after a restart, is no mistake of the app.
//   TEXT-LEAD-6. An offer is told in a few responses at most: the model may call tools in between, as in a
//       reply, and in the last one it may not. It was told when words were said and no call follows. Calls
//       alone are no telling. No call is made twice while one delivery is told, however often it is tried,
//       nor the call again whose result it is (P6): its result stands in the conversation. Tellings start
//       only a limited number of rounds before the user speaks again (`MAX_UNASKED`).
//   TEXT-LEAD-7. While the model waits for a slow tool, due offers may be told; words of the user end its
//       waits for subagents.
//   TEXT-LEAD-8. Each call of a response has an entry of its own, which records whether another one follows.
//       After a crash between two of them the model is told which were made, and makes the others.
//   TEXT-LEAD-9. Words and calls of the lead agent are kept with the last item that the model had read: words of the
//       user, and results, that came meanwhile are owed a reply also after a crash. A telling replies to nothing; a
//       result that the outbox tells, or that the user has, is owed none.
//   TEXT-LEAD-10. The usage of a response that the provider has counted has an entry of its own, before its words:
//       after a crash between the two the response is asked for again, and both have used tokens.
//   TEXT-RESPONSE-1. Words and calls stand behind what the model had read when it was asked, in the order in which it
//       wrote them, and before all that came meanwhile: what it did not read is what it is asked for next.
//   TEXT-RESPONSE-2. A response without words and calls is a failure, unless the model has said words since the user
//       spoke, such as with the calls that it follows: silence explains nothing to a user.
//   TEXT-RESPONSE-3. A response always ends, and never throws.
//   TEXT-RESPONSE-4. A call is passed on with the next part of the stream, which tells whether another call
//       follows: a crash between the two is visible in the journal.

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
import type { LeadSession } from './lead-session.ts';
import { askLead, type LeadCall, type LeadQuestion, type LeadTurn } from './lead-stream.ts';
import type { TextOutput, TextPart } from './text-output.ts';
import { TurnChart } from './turn-chart.ts';
import { Watchdog } from './watchdog.ts';

/** Rounds of tool calls for one utterance, or one telling; then the model has to speak. */
const MAX_ROUNDS = 8;

/** Rounds of tool calls that tellings may cause, one after another, before the user speaks. */
const MAX_UNASKED = 32;

/** A response without any sign of life for this time has failed. */
const RESPONSE_TIMEOUT_MS = 60_000;

/** A reader that has not asked for more by then is busy: its offer holds up nothing. */
const ACKNOWLEDGE_MS = 1000;

/** A text model speaks when it is asked; the user cannot interrupt it by voice. */
const TURN: TurnInput = {
  keepsOffers: true,
  whileToolWorks: 'ends_turn',
  answersWords: false,
  answersResults: false,
  holdsFloorMs: HOLDS_FLOOR_MS,
  settleTimeoutMs: 0,
  replyTimeoutMs: 0,
  // `askLead` has repeated a failed call of the model; afterwards the client is told of it, and may.
  maxAsked: 1,
  doubtMs: 0,
  falseInterruptionMs: 0,
};

/** The states of a call whose answer the model waits for. */
const ANSWERED_AT_ONCE: ReadonlySet<string> = new Set(['received', 'executing']);

type Said = Extract<TextPart, { type: 'text.done' }>;

/** The telling of an offer, over all its responses. */
interface Telling extends LeadTurn {
  /** The words of the last response, if calls followed them. */
  said: Said | null;
}

/** How a call was made. */
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
  /** All words that were said. */
  readonly text: string;
  readonly hasCalled: boolean;
  /** True if it was aborted, or failed, before its end. */
  readonly isBroken: boolean;
}

export class TextLead implements Speaker {
  readonly #core: LeadSession;
  readonly #model: LanguageModel;
  readonly #output: TextOutput;
  readonly #watchdog: Watchdog;
  readonly #turn: TurnChart;
  /** The newest offer; the turn decides whether it is still to be told. */
  #offer: Offer | null = null;
  /** The progress of telling the offer; null: it has not begun. */
  #telling: Telling | null = null;
  /** Rounds of tools in tellings since the user spoke. */
  #unasked = 0;
  /**
   * The model was told something while a tool worked: that tool's result is not the last message that it
   * reads.
   */
  #hasToldBetween = false;
  /** The previous process ended between two calls of one response (TEXT-LEAD-8). */
  #wasCutOff = false;
  /** Ends the stream of the response under way. */
  #response: AbortController | null = null;
  #replying: LeadTurn = { rounds: 0 };
  #idle: (() => void)[] = [];
  /** Cancels the running times to acknowledge. */
  readonly #acknowledging = new Set<() => void>();
  /** TEXT-LEAD-5 */
  #hasWarned = false;

  constructor(core: LeadSession, model: LanguageModel, output: TextOutput) {
    this.#core = core;
    this.#model = model;
    this.#output = output;
    output.awaitedBy((ids) => core.awaited.wants(ids));
    this.#watchdog = new Watchdog(core.host.environment, () => {
      const message = `The model showed no sign of life for ${RESPONSE_TIMEOUT_MS} ms`;
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

  /** Prepares nothing: the next response is that of the agent that leads then. */
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
    for (const callId of calls.ids)
      if (ANSWERED_AT_ONCE.has(String(calls.stateOf(callId)?.value)))
        this.#awaits(callId, isOfTelling(this.#core, callId) ? 'offer' : 'reply');
    if (owes !== null) this.#turn.send({ type: 'reply.wanted' });
    const { items } = this.#core.records.conversation;
    const last = items.findLast(({ role }) => role === 'tool_call' || role === 'assistant');
    this.#wasCutOff = last?.role === 'tool_call' && last.isFollowed === true;
    this.#next();
  }

  /** The instructions are read for each response. */
  configure(): void {}

  /** A text model has no connection that could be given up. */
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
    // While only a tool works there is a pause.
    this.#turn.send({ type: 'urgent.waits' });
    this.#checkIdle();
  }

  answer(callId: string, answer: ToolAnswer | null): void {
    if (answer === null) this.#turn.send({ type: 'call.dropped', callId });
    else this.#turn.send({ type: 'call.answered', callId, respond: answer.respond });
    this.#next();
  }

  note(prompt: Prompt, respond: boolean): void {
    this.#note(this.#core.host.environment.ids.next('note'), prompt);
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
    // The lead agent may be about to begin such a wait, too (TEXT-LEAD-7).
    this.#core.tree.waits.userWaits(true);
    // A text model hears nothing: it is asked.
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

  /** Calls back when nothing is being said and no response is about to begin; at once if so. */
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

  /** Pushes the whole text of an offer, and reports its fate to the outbox (TEXT-LEAD-3). */
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
    // Otherwise no agent leads yet, or the next agent will speak.
    return !unit.disposed && session.snapshot.hasTag('connected');
  }

  /** The response under way. */
  get #underWay(): TurnResponse | undefined {
    return this.#turn.context.responses[0];
  }

  /** Whether the model waits for the result of a call that it made in a reply. */
  get #isResultAwaited(): boolean {
    return this.#turn.context.calls.some(({ of }) => of === 'reply');
  }

  /** Whether a reply can begin, and waits only for the response under way. */
  get #isReplyDue(): boolean {
    const { snapshot } = this.#turn;
    return snapshot.matches({ reply: 'due' }) && snapshot.context.calls.length === 0;
  }

  /** Begins the next response, if one is wanted and none is under way. */
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

  /** Ends the telling of an offer, unless another one has taken its place. */
  #endTelling(generation: number): void {
    if (this.#turn.context.offer?.generation !== generation) return;
    this.#telling = null;
    this.#turn.send({ type: 'offer.over', generation });
  }

  async #respond(signal: AbortSignal, offer: Offer | null): Promise<void> {
    const core = this.#core;
    if (core.unit.unit.disposed) return;
    this.#turn.send({ type: 'request.read' });
    // Words that came since the telling was requested: they would be read, and not be answered.
    if (offer && this.#isReplyDue) return this.#responded();
    // Words of the user meanwhile belong to the next reply, and so do the calls made for it.
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

  /** Asks the model for a response, says its words as they come, and passes its calls on (TEXT-RESPONSE-3). */
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
    // A telling has read words that were written down late, or an earlier process did not ask for them.
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
    /** What stands last of what the model has read, and of the calls that it made since (TEXT-RESPONSE-1). */
    let after = readTo ?? undefined;
    /** As it was when the words began. */
    let saidAfter = after;
    let made: LeadCall | null = null;
    /** Passes the pending call on (TEXT-RESPONSE-4). */
    const handOver = (isFollowed: boolean): void => {
      if (!made) return;
      const of = offer ? 'offer' : 'reply';
      if (offer && wasMade(core, offer, made)) this.note(alreadyCalledNote(made.name), false);
      else
        after = this.#call(made, {
          of,
          requestId: offer ? null : requestId,
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
          // The ids by which a client acknowledges what was told.
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
    // For the whole text, not for each delta: two deltas may hold half a character each.
    text = storableText(text);
    if (text !== '') {
      // TEXT-LEAD-9. A reply that is owed again was cut off (TEXT-LEAD-4).
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
      // A question that was put meanwhile, on a screen, is not what was said last either.
      followQuestion(core);
      show(true);
    }
    return { itemId, text, hasCalled, isBroken };
  }

  /** The reply has begun, in words or with a call. */
  #spoke(): void {
    if (replyIsComing(this.#turn.snapshot))
      this.#turn.send({ type: 'model.spoke', responseId: null });
  }

  #begin(offer: Offer): Telling {
    const { deliveryId, generation, prompt, role } = offer;
    const id = `${tellingsOf(deliveryId)}${generation}`;
    const last = this.#core.records.conversation.items.at(-1);
    // A note that was answered with nothing stands there still.
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

  /** Passes a call on. Returns its id. */
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
      // TEXT-LEAD-6: the telling continues when the calls are answered; it ends if the offer was cancelled
      // meanwhile.
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

  /** Pushes words that more words of the same telling follow: they are not the whole of it. */
  #pushSaid(telling: Telling | null): void {
    if (!telling?.said) return;
    const { itemId, text } = telling.said;
    telling.said = null;
    this.#output.push({ type: 'text.done', itemId, text, deliveryId: null });
  }

  /** Tells whether an urgent item will be offered as soon as the model is silent. */
  #isUrgentWaiting(): boolean {
    const { pending } = this.#core.unit.outbox.snapshot.context;
    return pending.some(({ priority, resting }) => priority === 'urgent' && !resting);
  }

  /** Returns a unique call id: some providers count their calls from 0 in each answer. */
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

/** Whether the model would read its own words last: providers refuse that, or go on with them. */
function endsWithAssistant({ records }: LeadSession): boolean {
  const last = records.conversation.items.findLast(
    (item) => item.role !== 'tool_result' && !(isMessage(item) && item.partial),
  );
  // The usual cases, without building the messages.
  if (last?.role === 'tool_call' || (last?.role === 'user' && last.text.trim() !== ''))
    return false;
  return records.conversation.toModelMessages().at(-1)?.role === 'assistant';
}

/** Whether the lead agent has said words in reply since the user spoke. */
function hasReplied({ records }: LeadSession): boolean {
  const last = records.conversation.items.findLast(
    (item) =>
      item.role === 'user' ||
      (item.role === 'assistant' && item.text !== '' && item.repliesTo !== null),
  );
  return last?.role === 'assistant';
}

/** The key of the responses that tell an offer. */
const keyOf = (generation: number): string => `offer:${generation}`;

/**
 * The prefix of the note ids with which the tellings of a delivery begin; their ids end with the generation.
 */
const tellingsOf = (deliveryId: string): string => `${deliveryId}.told.`;

/**
 * Shows the words that were told before the calls that follow: a client acknowledges the delivery by them.
 */
function showTold({ projection }: LeadSession, { itemId, deliveryId, deliveryIds }: Said): void {
  const item = projection.item(itemId);
  if (!item || deliveryId === null) return;
  projection.emit({
    type: 'transcript.changed',
    item: { ...item, deliveryId, ...(deliveryIds && { deliveryIds }) },
  });
}

/**
 * Tells whether this call was made since the delivery was first told, in any attempt and process, or is the
 * call whose result is told.
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

/** Tells whether a call was made in the telling of an offer that is still due. */
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
