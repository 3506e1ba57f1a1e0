// Decides who speaks next in a voice session: each utterance is answered once, each tool result is reported,
// and two responses are never spoken at the same time.
//
//   state of the turn                                       kept by
//   the user speaks, or their words are not known yet       listening
//   the user may be interrupting the model                  listening (BargeIn)
//   the words may be addressed to a subagent                isUndecided, mayAnswerBoth
//   a response is requested, generated, held                responses
//   sound is playing, paused, or cut off                    speech
//   the model waits for a tool                              awaitedCalls, delegations
//   a reply is owed                                         replies
//   the model is asked for a filler                         waiting
//
// Owns:     the choice of the next response, the calls whose results the model gets at once, and which answers of
//           a model that hears every word are not wanted.
// Does not: decide when an offer may be said (outbox) or to whom an utterance is addressed (session), run
//           tools, or hold connections (connection manager).
//
// Invariants
//   TURNS-1. At most one response is under way (responses). Further requests meanwhile are answered by the
//       next one.
//   TURNS-2. The model receives no request while the user has the floor (listening).
//   TURNS-7. Each utterance is answered once, by its addressee: the lead agent or a subagent. This also holds
//       for a model that answers by itself.
//   TURNS-9. While a tool of the lead agent works for longer than `HOLDS_FLOOR_MS`, due deliveries are spoken
//       before the tool's result. This requires a transport that can respond while a call is open, and a
//       model that does not speak to results by itself. The lead agent's turn continues.
//   ADDRESSEE-1. While a question has the floor and the user's words are unknown, every response that the
//        model begins is undecided.
//   ADDRESSEE-2. Words addressed to a subagent silence at most one answer of the model; two if the model may
//        answer twice, because its requested response failed meanwhile.

import type { Utterance } from '../../actors/contracts/records.ts';
import { overheardNote, OWED_REPLY_NOTE } from '../../actors/conversation/prompts.ts';
import { shortNameOf } from '../../actors/notes/note-marks.ts';
import type { Prompt } from '../../actors/notes/note.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { HOLDS_FLOOR_MS, type Offer } from '../../actors/session/lead/lead-driver.ts';
import { intoConversation } from '../../actors/session/state/live-conversation.ts';
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
import { Delegations, type WorkOut } from './delegations.ts';
import { BargeIn, Listening, type BargeInOptions, type ListeningOptions } from './listening.ts';
import { Replies } from './replies.ts';

export interface TurnsOptions
  extends ResponsesOptions, ListeningOptions, BargeInOptions, WaitingOptions {
  /** Time allowed for the client's playout report after a stop, in milliseconds. */
  readonly clearReportMs: number;
  /** Fraction of an item's audio that must have been played for it to count as heard. */
  readonly heardFraction: number;
  /** Silence after which a model that answers by itself is asked to speak, in milliseconds. */
  readonly replyTimeoutMs: number;
  /** Interprets a delegation, for a transport that delegates. */
  readonly workOut?: WorkOut;
}

export class Turns implements Turn {
  readonly memory: ModelMemory;
  readonly speech: Speech;
  readonly responses: Responses;
  readonly listening: Listening;
  readonly #core: LeadSession;
  readonly #options: TurnsOptions;
  readonly #connections: ConnectionManager;
  readonly #transcript: VoiceTranscript;
  readonly #replies: Replies;
  readonly #bargeIn: BargeIn;
  readonly #delegations: Delegations | null;
  readonly #waiting: Waiting;
  /** The response that made each call whose result the model gets at once, by call id. */
  readonly #awaitedCalls = new Map<string, string>();
  /** ADDRESSEE-2: a requested response failed since the user spoke: the model may still answer both. */
  #mayAnswerBoth = false;
  /** TURNS-9: ends the time in which a tool keeps the floor. */
  #stopHolding: (() => void) | null = null;

  constructor(core: LeadSession, options: TurnsOptions, connections: ConnectionManager) {
    this.#core = core;
    this.#options = options;
    this.#connections = connections;
    const { capabilities, clearReportMs, replyTimeoutMs, workOut } = options;
    const transcript = (this.#transcript = new VoiceTranscript(core));
    const send = (command: TransportCommand): void => this.send(command);
    this.memory = new ModelMemory(core, transcript, capabilities, send);
    this.speech = new Speech(core, this.memory, this, clearReportMs);
    this.responses = new Responses(core, this.memory, this.speech, this, options);
    this.#replies = new Replies(
      core.host.environment,
      {
        answersWords: capabilities.responds === 'by_itself',
        answersResults: this.#answersResults,
        timeoutMs: replyTimeoutMs,
      },
      () => this.#isBusy,
      () => this.next(),
    );
    const { memory, speech, responses } = this;
    const { outputSampleRateHz } = capabilities;
    this.#bargeIn = new BargeIn(core, options, transcript, responses, speech, this.#replies);
    this.listening = new Listening(core, transcript, memory, this.#bargeIn, this, options);
    this.#waiting = new Waiting(core, responses, speech, this, options, outputSampleRateHz);
    this.#delegations = workOut ? new Delegations(core, workOut, this, transcript, options) : null;
  }

  get userHasFloor(): boolean {
    return this.listening.hasFloor;
  }

  /** ADDRESSEE-1 */
  get isUndecided(): boolean {
    const { owner, questions } = this.#core.unit;
    if (owner === null) return false;
    if (this.userHasFloor) return true;
    // If the user's speech is inferred, the model may begin before the transport reports the utterance.
    if (this.#options.capabilities.utterances === 'reported') return false;
    const asked = questions.stateOf(owner)?.context as { playingSince: number | null } | undefined;
    const isBeingAsked = asked !== undefined && asked.playingSince !== null;
    return isBeingAsked && !this.#replies.isExpected;
  }

  get isToolAwaited(): boolean {
    return this.#awaitedCalls.size > 0 || this.#delegations?.areUnderWay === true;
  }

  get isReplyAwaited(): boolean {
    return this.#replies.isWanted || (this.responses.isBusy && this.responses.isReply);
  }

  get isOffLine(): boolean {
    return !this.#connections.isAvailable;
  }

  /** Whether no side speaks or is about to; earlier speech may still be playing. */
  get isAtRest(): boolean {
    return !this.#isBusy && !this.#replies.isWanted;
  }

  /** How much of the user's newest sound holds words that are not understood or answered, in milliseconds. */
  get unheardMs(): number {
    const isAnswered = this.#replies.hasAnswered && !this.responses.isBusy;
    return isAnswered ? 0 : this.listening.unknownMs;
  }

  /** Handles the events of the transport, except those about the connection itself. */
  handle(event: TransportEvent): void {
    if (!this.#waiting.handle(event)) this.#handle(event);
    this.#waiting.update();
    this.#holdFloor(this.#onlyToolWorks);
  }

  /** Handles a frame of the model's sound. */
  handleFrame(frame: AudioFrame): void {
    if (!this.#waiting.handleFrame(frame)) this.responses.handleFrame(frame);
  }

  #handle(event: TransportEvent): void {
    if (this.responses.handle(event)) {
      if (event.type === 'response.ended' && event.status === 'cancelled') this.#bargeIn.confirm();
      return;
    }
    switch (event.type) {
      case 'utterance.started':
      case 'utterance.ended':
      case 'utterance.transcribed':
      case 'utterance.untranscribed':
        this.listening.handle(event);
        break;
      case 'assistant.transcribed':
        this.responses.sign();
        this.#transcript.modelSaid(event);
        break;
      case 'tool.called':
        this.#replies.given();
        this.called(event);
        break;
      case 'tool.cancelled':
        this.#cancelCall(event.callId);
        this.next();
        break;
      case 'delegation.created':
        this.#replies.given();
        this.#delegations?.created(event.delegationId);
        break;
      case 'transport.error':
        this.#core.reportError(
          new ProviderError(event.code, `${event.code}: ${event.message}`),
          'transport',
        );
        if (event.responseKey !== null) this.responses.refused(event.responseKey, event.code);
        break;
      // `responses` has already handled these events.
      case 'response.started':
      case 'response.ended':
      case 'model.changed':
      // These events concern the connection, not the order of speech.
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

  offer(offer: Offer): void {
    const attempt = new Attempt(offer, this.#options.heardFraction);
    const { answersCallId: callId, deliveryId, prompt } = offer;
    const { notes } = this.#core;
    const noteId = this.#noteIdOf(deliveryId, prompt);
    if (callId !== null) this.#sendResult(callId, notes.text(prompt, noteId), true, noteId);
    // An earlier offer is already in the model's conversation.
    else this.memory.noteOnce(noteId, prompt);
    // The journal may be slow: the user may have begun to speak meanwhile, or be gone.
    if (this.#isTaken) {
      this.speech.notHeard('delivery.interrupted', attempt);
      return;
    }
    this.memory.sendQueued();
    const words = offerInstructions(offer, notes.markOf(noteId));
    // If instructions have the role of the user, they are sent as a note.
    const instructions =
      notes.systemAs === 'user'
        ? notes.text({ says: words }, `${noteId} ${offer.generation}`)
        : words;
    this.responses.say(attempt, instructions, notes.data(prompt, noteId));
    this.#waiting.update();
  }

  /** Cancels a call whose result the model no longer wants. */
  #cancelCall(callId: string): void {
    this.#awaitedCalls.delete(callId);
    this.#core.receive(`call:${callId}`, {
      type: 'call.cancel',
      reason: 'the voice model does not want the result any more',
    });
  }

  /** Returns the id of the note about a delivery; a reworded delivery gets a new note. */
  #noteIdOf(deliveryId: string, prompt: Prompt): string {
    const id = `${deliveryId}.note`;
    const told = this.#core.records.conversation.get(id);
    if (typeof prompt === 'string' || told?.role !== 'system') return id;
    const says = prompt.says ?? '';
    return told.text === says ? id : `${id}.${shortNameOf(says)}`;
  }

  /** Interrupts for an urgent delivery. */
  interrupt(): void {
    if (this.responses.isReply) this.#replies.cutOff();
    this.#waiting.silence();
    this.responses.silence();
    // While only a tool works there is a pause anyway.
    if (this.responses.isBusy) return;
    const type = this.#awaitedCalls.size > 0 ? 'response.waiting' : 'response.ended';
    this.#core.receive('session', { type });
  }

  answerTool(callId: string, output: unknown, respond: boolean, noteId?: string): void {
    const { notes } = this.#core;
    const text = typeof output === 'string' ? output : JSON.stringify(output ?? null);
    this.#sendResult(
      callId,
      noteId === undefined ? notes.guard(text) : notes.text(output as Prompt, noteId),
      !respond || !this.#answersResults,
      noteId,
    );
    const calledIn = this.#awaitedCalls.get(callId);
    this.#awaitedCalls.delete(callId);
    if (respond) {
      this.responses.held.expectWanted();
      this.#replies.toResult(this.responses.underWay.filter((id) => id !== calledIn));
    }
    this.next();
  }

  deferTool(callId: string): void {
    this.#awaitedCalls.delete(callId);
    this.next();
  }

  /** Makes the model speak, whatever was said before. */
  askToSpeak(): void {
    this.#replies.ask();
    this.next();
  }

  heardUser({ id, text, typed }: Utterance): void {
    if (typed) {
      this.memory.typed(id, text);
      this.responses.silence();
    }
    this.responses.held.expectWanted();
    this.#mayAnswerBoth = false;
    this.#delegations?.understood(true);
    const isDue = this.#replies.toWords(typed);
    if (isDue) this.#core.receive('session', { type: 'response.requested' });
    this.#understood(id);
  }

  overheard({ id, text, typed }: Utterance, subagentName: string, isAnswer: boolean): void {
    // ADDRESSEE-2: the reply that the model has begun is dropped.
    const wasHeld = !typed && this.responses.held.silence();
    if (!typed) {
      this.memory.forget(id);
      this.#delegations?.understood(false);
    }
    this.memory.note(overheardNote(text, subagentName, isAnswer));
    // Other words of the user wait for a reply that was part of the dropped output.
    if (wasHeld && this.#replies.isExpected) this.#replies.ask();
    this.#understood(id);
    this.#expectNoAnswer(typed, wasHeld);
  }

  /** ADDRESSEE-2: silences the further replies to words that were addressed to a subagent. */
  #expectNoAnswer(typed: boolean, wasHeld: boolean): void {
    const { capabilities, replyTimeoutMs } = this.#options;
    const isAnswered = wasHeld && !this.#mayAnswerBoth;
    this.#mayAnswerBoth = false;
    const mayAnswer = capabilities.responds === 'by_itself' && !typed && !isAnswered;
    // A reply to words that are not settled yet is held anyway.
    if (mayAnswer && !this.userHasFloor) this.responses.held.expectUnwanted(replyTimeoutMs);
  }

  send(command: TransportCommand): void {
    this.#connections.send(command);
  }

  called({ callId, name, arguments: json, responseId = '' }: MadeCall): void {
    const { records, host } = this.#core;
    // A known call id is a repetition: the call has its answer, or will have it.
    if (records.calls.has(callId) || records.conversation.get(callId)) return;
    this.#awaitedCalls.set(callId, responseId);
    intoConversation(this.#core, {
      type: 'tool.called',
      callId,
      name,
      arguments: json,
      calledAt: host.environment.clock.now(),
      requestId: records.utteranceId,
    });
  }

  replying(responseId: string): void {
    this.#replies.given(responseId);
  }

  responded(said: Attempt | null, status: string, calledOff: boolean): void {
    this.#mayAnswerBoth = status === 'cancelled' && !calledOff;
    if (said === null) {
      if (!calledOff && status !== 'completed') this.#replies.cameToNothing();
    } else if (status === 'completed' && this.#replies.resume()) this.memory.note(OWED_REPLY_NOTE);
  }

  settled(): void {
    if (!this.userHasFloor) this.responses.held.release();
    this.#delegations?.wordsSettled();
    this.next();
  }

  drained(): void {
    this.#waiting.update();
  }

  /** Requests the wanted reply, if nothing prevents it. */
  next(): void {
    this.#waiting.update();
    this.#holdFloor(this.#onlyToolWorks);
    if (this.#isBusy) return;
    if (this.#replies.take()) {
      this.responses.held.expectWanted();
      this.memory.sendQueued();
      this.responses.reply();
    } else if (!this.#replies.isExpected) {
      this.#core.receive('session', { type: 'response.ended' });
      this.#connections.rotateIfDue();
    }
  }

  /** Handles the loss of the client: no side speaks, and the speech so far is settled. */
  clientLeft(): void {
    this.listening.clientLeft();
    this.responses.clientLeft();
    this.#bargeIn.reset();
    this.#waiting.stop();
    this.settled();
  }

  /**
   * Handles the loss of a connection: the responses on it fail. `hearsAgain`: the user's current words are
   * sent to the next connection.
   */
  connectionLost(hearsAgain: boolean): void {
    this.#waiting.lost();
    this.memory.connectionLost(this.speech.unsettled);
    this.#bargeIn.reset();
    const wasReplying = this.responses.lost();
    const wasDelegating = this.#delegations?.lost() === true;
    // The unanswered words are part of the history that the next connection receives.
    this.#replies.moved(!hearsAgain && (wasReplying || wasDelegating));
    this.listening.reset();
  }

  /** Handles lost calls: the model no longer waits for their results. */
  callsLost(): void {
    this.#awaitedCalls.clear();
    this.#waiting.update();
  }

  stop(): void {
    // The last words get no reply any more, even when the cut-off speech is settled.
    this.#replies.stop();
    this.#waiting.lost();
    this.#waiting.stop();
    this.#holdFloor(false);
    this.#delegations?.stop();
    this.listening.reset();
    this.responses.stop();
    this.#bargeIn.reset();
  }

  /** TURNS-9: `holds`: the tool keeps the floor for a while; afterwards due deliveries may be spoken. */
  #holdFloor(holds: boolean): void {
    if (holds && this.#stopHolding) return;
    this.#stopHolding?.();
    const giveUp = (): void => {
      this.#stopHolding = null;
      if (this.#onlyToolWorks) this.#core.receive('session', { type: 'response.waiting' });
    };
    const { scheduler } = this.#core.host.environment;
    this.#stopHolding = holds ? scheduler.schedule(giveUp, HOLDS_FLOOR_MS) : null;
  }

  /** TURNS-9: whether an open tool call is the only reason not to request a response. */
  get #onlyToolWorks(): boolean {
    const isPossible = this.#options.capabilities.defersToolResults && !this.#answersResults;
    const isToolAwaited = this.#awaitedCalls.size > 0 && this.#delegations?.areUnderWay !== true;
    return isPossible && isToolAwaited && !this.#isTaken && !this.#replies.isExpected;
  }

  /** Only a model that speaks by itself has to be told when to stay silent. */
  #sendResult(callId: string, output: string, isSilent: boolean, noteId?: string): void {
    const { records, notes } = this.#core;
    const name = records.calls.get(callId)?.name ?? null;
    // A note is marked as one on every transport.
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

  /** Handles the settlement of an utterance: its words and its addressee are known. */
  #understood(utteranceId: string): void {
    this.listening.understood(utteranceId);
    this.settled();
  }

  /** Whether the model speaks to the results of its calls without being asked. */
  get #answersResults(): boolean {
    const { responds, schedulesToolResults } = this.#options.capabilities;
    return responds === 'by_itself' && !schedulesToolResults;
  }

  /** Whether the model can receive no request now. */
  get #isBusy(): boolean {
    return this.#isTaken || this.isToolAwaited;
  }

  /** Whether any side speaks or is about to, or no client or model is there. */
  get #isTaken(): boolean {
    const isSpeaking = this.responses.isBusy || this.#waiting.isAsked || this.userHasFloor;
    return isSpeaking || this.isOffLine;
  }
}
