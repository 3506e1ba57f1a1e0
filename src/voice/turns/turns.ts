// Runs the turn of a voice session. Each utterance is answered once, each tool result is reported, and two responses
// are never spoken at the same time.
//
// The turn machine holds the state of the turn and makes the decisions. This file reports facts to it and executes its
// effects. Other state is held elsewhere:
//
//   audio is playing, paused, or cut off                    speech
//   output that may reply to words for a subagent             held-speech
//   the open question and its asker                         session (questions)
//   the filler, the thinking sound                          waiting
//
// Owns:     what facts from the transport and the session mean for the turn, and the decision which replies of a model
//           that hears every word are unwanted.
// Does not: choose the next response (turn machine), decide when an offer may be spoken (outbox) or to whom an
//           utterance is addressed (session), run tools, or manage connections (connection manager).
//
// Invariants
//   TURNS-1. At most one response is in progress (TURN-1). Requests that arrive in the meantime are answered by the
//       next response.
//   TURNS-2. The model receives no request while the user has the floor (TURN-2).
//   TURNS-7. Each utterance is answered once, by its addressee: the lead agent or a subagent. This also applies to
//       models that respond on their own.
//   TURNS-9. If a tool of the lead agent works for longer than `HOLDS_FLOOR_MS`, due deliveries are spoken before the
//       tool's result. This requires a transport that can respond while a call is open, and a model that does not speak
//       about results on its own. The lead agent's turn continues in this case.
//   REPLIES-1. A model that speaks only when asked receives a request for each reply. A model that responds on its own
//       receives a request only if it stays silent for `replyTimeoutMs`, and another request if the first one fails
//       (TURN-4).
//   REPLIES-2. Speech that was in progress when a result arrived does not count as an answer to the result, unless it
//       belongs to the response that made the call.
//   REPLIES-3. Anything that the model has said since the user started to speak counts as an answer to the user's
//       words, so words that arrive later need no reply.
//   ADDRESSEE-1. While a question has the floor and the user's words are not known yet, it is undecided whether an
//       unprompted response may be played.
//   ADDRESSEE-2. Words that are addressed to a subagent silence at most one reply of the model, or two if the model may
//        reply twice because its requested response has failed in the meantime.

import type { Utterance } from '../../actors/contracts/records.ts';
import { answerable } from '../../actors/session/questions/user-words.ts';
import { keptCallNote, overheardNote, OWED_REPLY_NOTE } from '../../actors/conversation/prompts.ts';
import { shortNameOf } from '../../actors/notes/note-marks.ts';
import type { Prompt } from '../../actors/notes/note.ts';
import type { LeadSession } from '../../actors/session/lead/lead-agents.ts';
import {
  HOLDS_FLOOR_MS,
  type Offer,
  type SpokenTo,
  type ToolAnswer,
} from '../../actors/session/lead/speaker.ts';
import { TurnChart } from '../../actors/session/lead/turn-chart.ts';
import { intoConversation } from '../../actors/session/state/live-conversation.ts';
import {
  isInDoubt,
  modelIsBusy,
  replyIsComing,
  replyIsExpected,
  replyIsWanted,
  userHasFloor,
} from '../../machines/index.ts';
import type { SilenceInput, SilenceState } from '../../machines/silence-machine.ts';
import { ProviderError } from '../../values/errors.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { Attempt } from '../connection/attempt.ts';
import type { ConnectionManager } from '../connection/connection-manager.ts';
import type { TransportCommand, TransportEvent } from '../connection/transport.ts';
import { ModelMemory } from '../output/model-memory.ts';
import { Responses, type ResponsesOptions } from '../output/responses.ts';
import { answerNote, offerInstructions, tellsCallsInWords } from '../output/speech-prompts.ts';
import { Speech } from '../output/speech.ts';
import type { MadeCall, Turn } from '../output/turn.ts';
import { VoiceTranscript } from '../output/voice-transcript.ts';
import { Waiting, type WaitingOptions } from '../output/waiting.ts';
import { silenceChart, type Silence } from './silence.ts';
import { Delegations, type WorkOut } from './delegations.ts';
import {
  bargeInOf,
  type BargeIn,
  END_LAG_MS,
  Listening,
  type ListeningOptions,
} from './listening.ts';

export interface TurnsOptions
  extends ResponsesOptions, ListeningOptions, WaitingOptions, SilenceInput {
  readonly clearReportMs: number;
  readonly heardFraction: number;
  readonly replyTimeoutMs: number;
  /** Interprets a delegation, for transports that delegate. */
  readonly workOut?: WorkOut;
}

/** An offer that the model has been asked to speak. */
interface Offered {
  readonly attempt: Attempt;
  readonly noteId: string;
}

export class Turns implements Turn {
  readonly chart: TurnChart;
  readonly memory: ModelMemory;
  readonly speech: Speech;
  readonly responses: Responses;
  readonly listening: Listening;
  readonly silence: Silence;
  readonly #core: LeadSession;
  readonly #options: TurnsOptions;
  readonly #connections: ConnectionManager;
  readonly #transcript: VoiceTranscript;
  readonly #bargeIn: BargeIn;
  readonly #delegations: Delegations | null;
  readonly #waiting: Waiting;
  /** The newest offer. */
  #offered: Offered | null = null;
  /** ADDRESSEE-2: whether a requested response has failed since the user spoke, so that the model may reply twice. */
  #mayAnswerBoth = false;

  constructor(core: LeadSession, options: TurnsOptions, connections: ConnectionManager) {
    this.#core = core;
    this.#options = options;
    this.#connections = connections;
    const { capabilities, clearReportMs, workOut } = options;
    const transcript = (this.#transcript = new VoiceTranscript(core));
    const send = (command: TransportCommand): void => this.send(command);
    this.chart = this.#madeChart();
    this.memory = new ModelMemory(core, transcript, capabilities, send);
    this.speech = new Speech(core, this.memory, this, clearReportMs);
    this.responses = new Responses(core, this.memory, this.speech, this, options);
    const { memory, speech, responses } = this;
    this.#bargeIn = bargeInOf(core, options, transcript, responses, speech, this.chart);
    this.listening = new Listening(core, transcript, memory, this.#bargeIn, this, options);
    this.#waiting = new Waiting(core, responses, speech, this, options, capabilities);
    this.silence = silenceChart(core, options);
    this.#delegations = workOut ? new Delegations(core, workOut, this, transcript, options) : null;
  }

  /** Creates the turn machine, whose effects this file executes. */
  #madeChart(): TurnChart {
    const core = this.#core;
    const { capabilities, replyTimeoutMs, settleTimeoutMs } = this.#options;
    const { backchannelMs, falseInterruptionMs } = this.#options;
    return new TurnChart(
      core,
      {
        keepsOffers: false,
        whileToolWorks:
          capabilities.defersToolResults && !this.#answersResults ? 'waits' : 'keeps_floor',
        answersWords: capabilities.responds === 'by_itself',
        answersResults: this.#answersResults,
        holdsFloorMs: HOLDS_FLOOR_MS,
        settleTimeoutMs,
        replyTimeoutMs,
        // A model that responds on its own may have good reasons to be silent at first.
        maxAsked: capabilities.responds === 'by_itself' ? 3 : 2,
        doubtMs: backchannelMs + END_LAG_MS,
        falseInterruptionMs,
      },
      () => this.#isFree,
      {
        watchSpeech: () => this.listening.watchLimits(),
        unwatchSpeech: () => this.listening.unwatchLimits(),
        settled: ({ utteranceIds }) => {
          for (const id of utteranceIds) this.listening.unanswered(id, 'words_late');
          this.settled();
        },
        pause: () => this.#bargeIn.makeWay(),
        resume: () => this.speech.resume(),
        breakOff: () => this.#bargeIn.breakOff(),
        reply: ({ key }) => this.#reply(key),
        tell: () => this.#say(),
        refuse: () => this.#refuse(),
        remind: () => this.memory.note(OWED_REPLY_NOTE),
        overdue: () => this.next(),
        unanswered: () => this.listening.unanswered(core.records.utteranceId, 'no_reply'),
        take: () => core.receive('session', { type: 'response.requested' }),
        wait: () => core.receive('session', { type: 'response.waiting' }),
        release: () => core.receive('session', { type: 'response.ended' }),
        rest: () => this.#connections.rotateIfDue(),
      },
    );
  }

  get userHasFloor(): boolean {
    return userHasFloor(this.chart.snapshot);
  }

  /** ADDRESSEE-1 */
  get isUndecided(): boolean {
    const { owner, questions } = this.#core.unit;
    if (owner === null) return false;
    if (this.userHasFloor) return true;
    // If the transport infers when speech starts, the model may start before the utterance is reported.
    if (this.#options.capabilities.utterances === 'reported') return false;
    const asked = questions.stateOf(owner)?.context as { playingSince: number | null } | undefined;
    const isBeingAsked = asked !== undefined && asked.playingSince !== null;
    return isBeingAsked && !replyIsExpected(this.chart.snapshot);
  }

  get isToolAwaited(): boolean {
    return this.chart.context.calls.length > 0;
  }

  get isReplyAwaited(): boolean {
    return replyIsWanted(this.chart.snapshot) || (this.responses.isBusy && this.responses.isReply);
  }

  get isOffLine(): boolean {
    return !this.#connections.isAvailable;
  }

  /** Whether neither side is speaking or about to speak; earlier speech may still be playing. */
  get isIdle(): boolean {
    const { snapshot } = this.chart;
    const isSilent = !userHasFloor(snapshot) && !modelIsBusy(snapshot) && !this.isToolAwaited;
    return this.#isFree && isSilent && !replyIsWanted(snapshot);
  }

  /** The duration of the newest user audio whose words have not been recognised or answered, in milliseconds. */
  get unheardMs(): number {
    const isAnswered = this.chart.context.hasAnswered && !this.responses.isBusy;
    return isAnswered ? 0 : this.listening.unknownMs;
  }

  /** Handles transport events that do not concern the connection. */
  handle(event: TransportEvent): void {
    if (!this.#waiting.aside.handle(event)) this.#handle(event);
    this.update();
  }

  /** Updates the waiting sounds and the silence machine after a change. */
  update(): void {
    this.#waiting.update();
    this.silence.changed(this.#silenceNow);
  }

  get #silenceNow(): SilenceState {
    const { unit } = this.#core;
    const isLoud =
      !unit.isAttached ||
      this.isOffLine ||
      this.userHasFloor ||
      modelIsBusy(this.chart.snapshot) ||
      !this.speech.isSilent ||
      this.isReplyAwaited ||
      unit.outbox.snapshot.context.current !== null;
    if (isLoud) return 'loud';
    return this.isToolAwaited ? 'waiting' : 'still';
  }

  handleFrame(frame: AudioFrame): void {
    if (!this.#waiting.aside.handleFrame(frame)) this.responses.handleFrame(frame);
  }

  #handle(event: TransportEvent): void {
    if (event.type === 'utterance.started') this.silence.noticed();
    if (this.responses.handle(event)) {
      if (event.type === 'response.ended' && event.status === 'cancelled')
        this.chart.send({ type: 'model.stopped' });
      return;
    }
    switch (event.type) {
      case 'utterance.started':
        if (this.#options.capabilities.takesOpenQuestion) this.#expectAnswer();
        this.listening.handle(event);
        break;
      case 'utterance.ended':
      case 'utterance.transcribed':
      case 'utterance.untranscribed':
        this.listening.handle(event);
        break;
      case 'assistant.transcribed':
        this.responses.sign();
        this.#transcript.modelSaid(event, this.responses.repliesTo(event.responseId));
        break;
      case 'tool.called':
        this.#modelSpoke(null);
        this.called(event);
        break;
      case 'tool.cancelled':
        this.#cancelCall(event.callId);
        this.next();
        break;
      case 'delegation.created':
        this.#modelSpoke(null);
        this.#delegations?.created(event.delegationId);
        break;
      case 'transport.error':
        this.#core.reportError(new ProviderError(event.code, event.message), 'transport');
        if (event.responseKey !== null) this.responses.refused(event.responseKey, event.code);
        break;
      // `responses` has already handled these events.
      case 'response.started':
      case 'response.ended':
      case 'model.changed':
      // These events concern the connection and do not affect the turn.
      case 'transport.ready':
      case 'transport.expiring':
      case 'transport.resumable':
      case 'transport.closed':
      case 'session.configured':
      case 'session.refused':
      case 'usage.reported':
      case 'limits.reported':
        break;
    }
  }

  /** Informs the transport which question the user's next words may answer. */
  #expectAnswer(): void {
    const { unit, records } = this.#core;
    const question = unit.owner === null ? undefined : records.questions.get(unit.owner);
    this.send({ type: 'question.expect', question: question ? answerable(question) : null });
  }

  offer(offer: Offer): void {
    const attempt = new Attempt(offer, this.#options.heardFraction);
    const { answersCallId: callId, deliveryId, prompt } = offer;
    const { notes } = this.#core;
    const noteId = this.#noteIdOf(deliveryId, prompt);
    if (callId !== null) this.#sendResult(callId, notes.text(prompt, noteId), true, noteId);
    // If an offer is repeated, the model's conversation already contains the note, so the note is not sent again.
    else this.memory.noteOnce(noteId, prompt);
    this.#offered = { attempt, noteId };
    const { generation } = offer;
    this.chart.send({ type: 'offer.made', generation, key: attempt.responseKey });
    this.update();
  }

  /** Handles an offer that came too late because the user has started to speak or the client has left. */
  #refuse(): void {
    if (this.#offered) this.speech.notHeard('delivery.interrupted', this.#offered.attempt);
  }

  #say(): void {
    if (!this.#offered) return;
    const { attempt, noteId } = this.#offered;
    const { offer } = attempt;
    const { notes } = this.#core;
    this.memory.sendQueued();
    const says = offerInstructions(offer, notes.markOf(noteId), this.#options.capabilities);
    const instructions = notes.text({ says }, `${noteId} ${offer.generation}`);
    this.responses.say(attempt, instructions, notes.data(offer.prompt, noteId));
  }

  #reply(key: string): void {
    this.responses.held.expectWanted();
    this.memory.sendQueued();
    this.responses.reply(key);
  }

  /** Cancels a call whose result the model has withdrawn. */
  #cancelCall(callId: string): void {
    const { unit, records } = this.#core;
    const isKept = unit.calls.of(callId)?.context.wordsMs === 0 && unit.runOf(callId) === 'awaited';
    // The transport does not accept an answer to a call that the model has withdrawn.
    if (isKept) this.memory.note(keptCallNote(records.calls.get(callId)?.name ?? ''));
    this.chart.send({ type: 'call.dropped', callId });
    this.#core.receive(`call:${callId}`, {
      type: 'call.cancel',
      reason: 'the voice model does not want the result any more',
      withdrawn: true,
    });
  }

  /** Returns the id of a delivery's note; a delivery that has been reworded gets a new note. */
  #noteIdOf(deliveryId: string, prompt: Prompt): string {
    const id = `${deliveryId}.note`;
    const told = this.#core.records.conversation.get(id);
    if (typeof prompt === 'string' || told?.role !== 'system') return id;
    // The calls that an approval reads back differ only in what is quoted.
    const words = JSON.stringify([prompt.says ?? '', prompt.quotes]);
    const isFirst = words === JSON.stringify([told.text, told.note?.quotes]);
    return isFirst ? id : `${id}.${shortNameOf(words)}`;
  }

  /** Interrupts the model's speech for an urgent delivery. */
  interrupt(): void {
    if (this.responses.isReply) this.chart.send({ type: 'reply.cutOff' });
    this.#waiting.silence();
    this.responses.silence();
    // While only a tool is working, the delivery can be spoken immediately.
    this.chart.send({ type: 'urgent.waits' });
  }

  answerTool(callId: string, { output, respond, noteId }: ToolAnswer): void {
    const { notes } = this.#core;
    const text = typeof output === 'string' ? output : JSON.stringify(output ?? null);
    this.#sendResult(
      callId,
      noteId === undefined ? notes.guard(text) : notes.text(output as Prompt, noteId),
      !respond || !this.#answersResults,
      noteId,
    );
    if (respond) this.responses.held.expectWanted();
    this.chart.send({ type: 'call.answered', callId, respond });
    this.next();
  }

  deferTool(callId: string): void {
    this.chart.send({ type: 'call.dropped', callId });
    this.next();
  }

  /** Requests that the model speak, even if all of the user's words have been answered. */
  askToSpeak(): void {
    this.chart.send({ type: 'reply.wanted' });
    this.next();
  }

  heardUser({ id, text, typed }: Utterance): void {
    if (typed) {
      this.silence.noticed();
      this.memory.typed(id, text);
      this.responses.silence();
    }
    this.responses.held.expectWanted();
    this.#mayAnswerBoth = false;
    this.#delegations?.understood(true);
    this.chart.send({ type: 'reply.toWords', typed });
    if (replyIsWanted(this.chart.snapshot)) this.chart.send({ type: 'floor.taken' });
    this.#understood(id);
  }

  overheard({ id, text, typed }: Utterance, { subagentName, were }: SpokenTo): void {
    // ADDRESSEE-2: a reply that the model has started is dropped, unless it only acknowledges the answer.
    if (typed) this.silence.noticed();
    const { held } = this.responses;
    const reader = were !== null && !typed ? this.#waiting.readerFor(were) : undefined;
    const wasHeld = !typed && (reader ? held.silenceUnless(reader) : held.silence());
    if (!typed) {
      this.memory.forget(id);
      this.#delegations?.understood(false);
    }
    this.memory.note(overheardNote(text, subagentName, typeof were === 'object' && were !== null));
    if (were !== null && (typeof were === 'object' || !typed)) this.#waiting.understood(were);
    // If the dropped output also contained a reply to other words of the user, that reply is requested again.
    if (wasHeld && replyIsExpected(this.chart.snapshot)) this.chart.send({ type: 'reply.wanted' });
    this.#understood(id);
    this.#expectNoAnswer(typed, wasHeld);
  }

  /** ADDRESSEE-2: silences further replies to words that were addressed to a subagent. */
  #expectNoAnswer(typed: boolean, wasHeld: boolean): void {
    const { capabilities, replyTimeoutMs } = this.#options;
    const isAnswered = wasHeld && !this.#mayAnswerBoth;
    this.#mayAnswerBoth = false;
    const mayAnswer = capabilities.responds === 'by_itself' && !typed && !isAnswered;
    // A reply to words that are not settled yet is held back anyway and need not be silenced.
    if (mayAnswer && !this.userHasFloor)
      this.responses.held.expectUnwanted(replyTimeoutMs, this.responses.isBusy);
  }

  send(command: TransportCommand): void {
    this.#connections.send(command);
  }

  called({ callId, name, arguments: json, responseId = '' }: MadeCall): void {
    const { records, host } = this.#core;
    // A call with a known id is a repetition of a call that has been or will be answered.
    if (records.calls.has(callId) || records.conversation.get(callId)) return;
    this.chart.send({ type: 'call.made', callId, responseId, of: 'reply' });
    const readTo = this.responses.repliesTo(responseId);
    // Before an unprompted response, the model has read the whole conversation.
    const repliesTo = readTo === undefined ? records.conversation.items.at(-1)?.id : readTo;
    intoConversation(this.#core, {
      type: 'tool.called',
      callId,
      name,
      arguments: json,
      calledAt: host.environment.clock.now(),
      requestId: records.utteranceId,
      ...(repliesTo !== undefined && { repliesTo }),
    });
  }

  beforeSpeech(): void {
    this.#waiting.stopThinkingSound();
  }

  replying(responseId: string): void {
    this.#modelSpoke(responseId);
  }

  /** Sends a fact to the machine only if it has changed, because this method runs for each frame. */
  #modelSpoke(responseId: string | null): void {
    const { hasAnswered, before } = this.chart.context;
    if (responseId !== null && before.includes(responseId)) return;
    if (hasAnswered && before.length === 0 && !replyIsComing(this.chart.snapshot)) return;
    this.chart.send({ type: 'model.spoke', responseId });
  }

  responded(says: 'reply' | 'offer', status: string, calledOff: boolean): void {
    this.#mayAnswerBoth = status === 'cancelled' && !calledOff;
    if (says === 'reply') {
      if (!calledOff && status !== 'completed') this.chart.send({ type: 'reply.failed' });
      return;
    }
    // Whether or not the offer has succeeded, a reply that was interrupted for it is now due.
    this.chart.send({ type: 'urgent.over' });
  }

  settled(): void {
    if (!this.userHasFloor) this.responses.held.release();
    this.#delegations?.wordsSettled();
    this.next();
  }

  drained(): void {
    if (isInDoubt(this.chart.snapshot)) this.chart.send({ type: 'speech.stopped' });
    this.update();
  }

  next(): void {
    this.update();
    this.chart.send({ type: 'choose' });
  }

  /** Handles the loss of the client. Neither side is speaking, and the speech so far is settled. */
  clientLeft(): void {
    this.listening.clientLeft();
    this.responses.clientLeft();
    this.#waiting.stop();
    this.settled();
  }

  /**
   * Handles the loss of a connection and the failure of all its responses. `hearsAgain`: whether the audio of the
   * user's current words is sent to the next connection.
   */
  connectionLost(hearsAgain: boolean): void {
    this.#waiting.aside.lost();
    this.memory.connectionLost(this.speech.unsettled);
    this.chart.send({ type: 'doubt.lost' });
    const wasReplying = this.responses.lost();
    const wasDelegating = this.#delegations?.lost() === true;
    // The unanswered words are part of the history that the next connection receives.
    const isOwed = !hearsAgain && (wasReplying || wasDelegating);
    this.chart.send({ type: 'reply.moved', wasReplying: isOwed });
    this.listening.reset();
  }

  /** Called when calls are lost, so that the model no longer waits for their results. */
  callsLost(): void {
    this.chart.send({ type: 'calls.lost' });
    this.update();
  }

  stop(): void {
    // The user's last words do not get a reply, even if interrupted speech is settled later.
    this.chart.send({ type: 'reply.forgotten' });
    this.#waiting.aside.lost();
    this.#waiting.stop();
    this.#delegations?.stop();
    this.listening.reset();
    this.responses.stop();
    this.silence.stop();
    this.chart.stop();
  }

  /** Sends a result to the model. Only a model that speaks on its own needs an instruction to stay silent. */
  #sendResult(callId: string, output: string, isSilent: boolean, noteId?: string): void {
    const { records, notes } = this.#core;
    const name = records.calls.get(callId)?.name ?? null;
    // A note already has its marker.
    const asNote = (): string =>
      noteId === undefined
        ? notes.text(answerNote(callId, name, output), `${callId} answered`)
        : output;
    const told = tellsCallsInWords(this.#options.capabilities) ? asNote() : undefined;
    const silent = this.#options.capabilities.responds === 'by_itself' && isSilent;
    this.send({
      type: 'tool.answer',
      callId,
      output,
      ...(told === undefined ? {} : { told }),
      ...(silent && { silent }),
    });
  }

  /** Continues after an utterance whose words and addressee are known. */
  #understood(utteranceId: string): void {
    this.listening.understood(utteranceId);
    this.settled();
  }

  /** Whether the model speaks about the results of its calls unprompted. */
  get #answersResults(): boolean {
    const { responds, schedulesToolResults } = this.#options.capabilities;
    return responds === 'by_itself' && !schedulesToolResults;
  }

  /** Whether the model can receive a request: it is connected and is not being asked for a phrase. */
  get #isFree(): boolean {
    return !this.isOffLine && !this.#waiting.aside.isAsked;
  }
}
