// Decides who speaks next in a voice session: each utterance is answered once, each tool result is reported,
// and two responses are never spoken at the same time.
//
// Owns:     the choice of the next response.
// Does not: decide when an offer may be said (outbox) or to whom an utterance is addressed (session), run
//           tools, or hold connections (connection manager); know which replies are owed (replies), the words of either
//           side (listening, model-voice), or the model's memory (model-memory) and delegations
//           (delegations).
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

import type { Prompt } from '../../actors/notes/note.ts';
import { shortNameOf } from '../../actors/notes/note-marks.ts';
import { HOLDS_FLOOR_MS, type Offer } from '../../actors/session/lead/lead-driver.ts';
import { overheardNote, OWED_REPLY_NOTE } from '../../actors/conversation/prompts.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { ProviderError } from '../../values/errors.ts';
import { Addressee } from './addressee.ts';
import { Attempt } from '../connection/attempt.ts';
import { BargeIn, type BargeInOptions } from './barge-in.ts';
import type { WorkOut } from './delegation-step.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import type { ConnectionManager } from '../connection/connection-manager.ts';
import { Delegations } from './delegations.ts';
import { LeadCalls } from './lead-calls.ts';
import { Listening } from './listening.ts';
import { ModelMemory } from '../output/model-memory.ts';
import { ModelVoice, type ModelVoiceOptions } from '../output/model-voice.ts';
import { Replies } from './replies.ts';
import { answerNote, offerInstructions, tellsCallsInWords } from '../output/speech-prompts.ts';
import type { TransportCommand, TransportEvent } from '../connection/transport.ts';
import { VoiceTranscript } from '../output/voice-transcript.ts';
import { Waiting, type WaitingOptions } from '../output/waiting.ts';
import type { Utterance } from '../../actors/contracts/records.ts';

export interface TurnsOptions extends ModelVoiceOptions, BargeInOptions, WaitingOptions {
  /** Fraction of an item's audio that must have been played for it to count as heard. */
  readonly heardFraction: number;
  /** Silence after which a model that answers by itself is asked to speak, in milliseconds. */
  readonly replyTimeoutMs: number;
  /** Length after which the session ends an utterance, in milliseconds. */
  readonly maxUtteranceMs: number;
  /** Interprets a delegation, for a transport that delegates. */
  readonly workOut?: WorkOut;
}

export class Turns {
  readonly memory: ModelMemory;
  readonly voice: ModelVoice;
  readonly listening: Listening;
  readonly #core: LeadSession;
  readonly #options: TurnsOptions;
  readonly #connections: ConnectionManager;
  readonly #transcript: VoiceTranscript;
  readonly #replies: Replies;
  readonly #bargeIn: BargeIn;
  readonly #calls: LeadCalls;
  readonly #delegations: Delegations | null;
  readonly #waiting: Waiting;
  readonly #addressee: Addressee;
  #stopHolding: (() => void) | null = null;

  constructor(core: LeadSession, options: TurnsOptions, connections: ConnectionManager) {
    this.#core = core;
    this.#options = options;
    this.#connections = connections;
    const { capabilities, settleTimeoutMs, maxUtteranceMs, workOut } = options;
    const { responseTimeoutMs: timeoutMs } = options;
    const { endsUtterances } = capabilities;
    const send = (command: TransportCommand): void => connections.send(command);
    const next = (): void => this.next();
    const userHasFloor = (): boolean => this.listening.hasFloor;
    this.#calls = new LeadCalls(core);
    this.#transcript = new VoiceTranscript(core);
    this.memory = new ModelMemory(core, this.#transcript, capabilities, send);
    this.listening = new Listening(
      core,
      this.#transcript,
      {
        brokeIn: (utteranceId, startedAt) => this.#bargeIn.began(utteranceId, startedAt),
        fellSilent: (utteranceId) => this.#bargeIn.ended(utteranceId),
        isBackchannel: (utteranceId, text, final) =>
          this.#bargeIn.isBackchannel(utteranceId, text, final),
        meantNothing: (utteranceId) => this.memory.forget(utteranceId),
        settled: () => this.#settled(),
        end: (utteranceId) => send({ type: 'utterance.end', utteranceId }),
      },
      { settleTimeoutMs, maxUtteranceMs, endsUtterances },
    );
    this.voice = new ModelVoice(core, this.memory, options, {
      send,
      happened: (event) => this.happened(event),
      isUndecided: () => this.#addressee.isUndecided,
      userHasFloor,
      replying: (responseId) => this.#replies.given(responseId),
      responded: (said, status, calledOff) => this.#responded(said, status, calledOff),
      settled: next,
      drained: () => this.#waiting.look(),
    });
    this.#replies = new Replies(
      core.host.environment,
      {
        answersWords: capabilities.responds === 'by_itself',
        answersResults: this.#answersResults,
        timeoutMs: options.replyTimeoutMs,
      },
      { isBusy: () => this.#isBusy, overdue: next },
    );
    this.#addressee = new Addressee(core, capabilities, options.replyTimeoutMs, {
      held: this.voice.held,
      hasFloor: userHasFloor,
      isReplyExpected: () => this.#replies.isExpected,
    });
    this.#bargeIn = new BargeIn(core, options, this.#transcript, this.voice, this.#replies);
    this.#waiting = new Waiting(core, this.voice, options, capabilities.outputSampleRateHz, {
      send: (command) => {
        // TURNS-1: no offer while the model is asked for a filler.
        if (command.type === 'response.request')
          core.receive('session', { type: 'response.requested' });
        send(command);
      },
      isToolAwaited: () => this.#isToolAwaited,
      isReplyAwaited: () => this.#replies.isWanted || (this.voice.isBusy && this.voice.isReply),
      userHasFloor,
      isOffLine: () => !connections.isAvailable,
      settled: next,
    });
    const delegationPorts = {
      send,
      called: this.#calls.made.bind(this.#calls),
      userHasFloor,
      unfinished: () => this.#transcript.unfinished,
      settled: next,
    };
    this.#delegations = workOut
      ? new Delegations(core, workOut, delegationPorts, { settleTimeoutMs, timeoutMs })
      : null;
  }

  /** Handles the events of the transport, except those about the connection itself. */
  happened(event: TransportEvent): void {
    if (!this.#waiting.handle(event)) this.#happened(event);
    this.#waiting.look();
    this.#holdFloor(this.#onlyToolWorks);
  }

  /** Handles a frame of the model's sound. */
  spoke(frame: AudioFrame): void {
    if (!this.#waiting.takesFrame(frame)) this.voice.spoke(frame);
  }

  #happened(event: TransportEvent): void {
    if (this.voice.handle(event)) {
      if (event.type === 'response.ended' && event.status === 'cancelled') this.#bargeIn.confirm();
      return;
    }
    switch (event.type) {
      case 'utterance.started':
      case 'utterance.ended':
      case 'utterance.transcribed':
      case 'utterance.untranscribed':
        this.listening.happened(event);
        break;
      case 'assistant.transcribed':
        this.voice.sign();
        this.#transcript.modelSaid(event);
        break;
      case 'tool.called':
        this.#replies.given();
        this.#calls.made(event);
        break;
      case 'tool.cancelled':
        this.#calls.cancelled(event.callId);
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
        if (event.responseKey !== null) this.voice.refused(event.responseKey, event.code);
        break;
      // The model voice has already handled these events.
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
    if (callId !== null) this.#tellResult(callId, notes.text(prompt, noteId), true, noteId);
    // An earlier offer is already in the model's conversation.
    else this.memory.noteOnce(noteId, prompt);
    // The journal may be slow: the user may have begun to speak meanwhile, or be gone.
    if (this.#isTaken) {
      this.voice.notHeard('delivery.interrupted', attempt);
      return;
    }
    this.memory.tellWaiting();
    const words = offerInstructions(offer, notes.markOf(noteId));
    // If instructions have the role of the user, they are sent as a note.
    const instructions =
      notes.systemAs === 'user'
        ? notes.text({ says: words }, `${noteId} ${offer.generation}`)
        : words;
    this.voice.say(attempt, instructions, notes.data(prompt, noteId));
    this.#waiting.look();
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
    if (this.voice.isReply) this.#replies.cutOff();
    this.#waiting.silence();
    this.voice.silence();
    // While only a tool works there is a pause anyway.
    if (this.voice.isBusy) return;
    const type = this.#calls.areAwaited ? 'response.waiting' : 'response.ended';
    this.#core.receive('session', { type });
  }

  answerTool(callId: string, output: unknown, respond: boolean, noteId?: string): void {
    const { notes } = this.#core;
    const text = typeof output === 'string' ? output : JSON.stringify(output ?? null);
    this.#tellResult(
      callId,
      noteId === undefined ? notes.guard(text) : notes.text(output as Prompt, noteId),
      !respond || !this.#answersResults,
      noteId,
    );
    const calledIn = this.#calls.responseOf(callId);
    this.#calls.settled(callId);
    if (respond) {
      this.voice.held.expectWanted();
      this.#replies.toResult(this.voice.underWay.filter((id) => id !== calledIn));
    }
    this.next();
  }

  deferTool(callId: string): void {
    this.#calls.settled(callId);
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
      this.voice.silence();
    }
    this.#addressee.isLead();
    this.#delegations?.understood(true);
    const isDue = this.#replies.toWords(typed);
    if (isDue) this.#core.receive('session', { type: 'response.requested' });
    this.#understood(id);
  }

  overheard({ id, text, typed }: Utterance, subagentName: string, isAnswer: boolean): void {
    const wasHeld = this.#addressee.isSubagent(typed);
    if (!typed) {
      this.memory.forget(id);
      this.#delegations?.understood(false);
    }
    this.memory.note(overheardNote(text, subagentName, isAnswer));
    // Other words of the user wait for a reply that was part of the dropped output.
    if (wasHeld && this.#replies.isExpected) this.#replies.ask();
    this.#understood(id);
    this.#addressee.expectsNothing(typed, wasHeld);
  }

  /** Handles the loss of the client: no side speaks, and the speech so far is settled. */
  clientLeft(): void {
    this.listening.giveUpWaiting();
    this.voice.nobodyListens();
    this.#bargeIn.reset();
    this.#waiting.stop();
    this.#settled();
  }

  /** Whether no side speaks or is about to; earlier speech may still be playing. */
  get isAtRest(): boolean {
    return !this.#isBusy && !this.#replies.isWanted;
  }

  /** How much of the user's newest sound holds words that are not understood or answered, in milliseconds. */
  get unheardMs(): number {
    const isAnswered = this.#replies.hasAnswered && !this.voice.isBusy;
    return isAnswered ? 0 : this.listening.unknownMs;
  }

  /**
   * Handles the loss of a connection: the responses on it fail. `hearsAgain`: the user's current words are
   * sent to the next connection.
   */
  lineLost(hearsAgain: boolean): void {
    this.#waiting.lost();
    this.memory.lineLost(this.voice.unsettled);
    this.#bargeIn.reset();
    const wasReplying = this.voice.lost();
    const wasDelegating = this.#delegations?.lost() === true;
    // The unanswered words are part of the history that the next connection receives.
    this.#replies.moved(!hearsAgain && (wasReplying || wasDelegating));
    this.listening.reset();
  }

  /** Handles lost calls: the model no longer waits for their results. */
  callsLost(): void {
    this.#calls.reset();
    this.#waiting.look();
  }

  stop(): void {
    // The last words get no reply any more, even when the cut-off speech is settled.
    this.#replies.stop();
    this.#waiting.lost();
    this.#waiting.stop();
    this.#holdFloor(false);
    this.#delegations?.stop();
    this.listening.reset();
    this.voice.stop();
    this.#bargeIn.reset();
  }

  /** Requests the wanted reply, if nothing prevents it. */
  next(): void {
    this.#waiting.look();
    this.#holdFloor(this.#onlyToolWorks);
    if (this.#isBusy) return;
    if (this.#replies.take()) {
      this.voice.held.expectWanted();
      this.memory.tellWaiting();
      this.voice.reply();
    } else if (!this.#replies.isExpected) {
      this.#core.receive('session', { type: 'response.ended' });
      this.#connections.rotateIfDue();
    }
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
    const isToolAwaited = this.#calls.areAwaited && this.#delegations?.areUnderWay !== true;
    return isPossible && isToolAwaited && !this.#isTaken && !this.#replies.isExpected;
  }

  /** Only a model that speaks by itself has to be told when to stay silent. */
  #tellResult(callId: string, output: string, isSilent: boolean, noteId?: string): void {
    const { records, notes } = this.#core;
    const name = records.calls.get(callId)?.name ?? null;
    // A note is marked as one on every transport.
    const asNote = (): string =>
      noteId === undefined
        ? notes.text(answerNote(callId, name, output), `${callId} answered`)
        : output;
    const told = tellsCallsInWords(this.#options.capabilities) ? asNote() : undefined;
    const silent = this.#options.capabilities.responds === 'by_itself' && isSilent;
    this.#connections.send({
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
    this.#settled();
  }

  /** Handles a floor that may have become free. */
  #settled(): void {
    if (!this.listening.hasFloor) this.voice.held.release();
    this.#delegations?.wordsSettled();
    this.next();
  }

  #responded(said: Attempt | null, status: string, calledOff: boolean): void {
    this.#addressee.responded(status, calledOff);
    if (said === null) {
      if (!calledOff && status !== 'completed') this.#replies.cameToNothing();
    } else if (status === 'completed' && this.#replies.resume()) this.memory.note(OWED_REPLY_NOTE);
  }

  /** Whether the model speaks to the results of its calls without being asked. */
  get #answersResults(): boolean {
    const { responds, schedulesToolResults } = this.#options.capabilities;
    return responds === 'by_itself' && !schedulesToolResults;
  }

  /** Whether the model can receive no request now. */
  get #isBusy(): boolean {
    return this.#isTaken || this.#isToolAwaited;
  }

  /** Whether any side speaks or is about to, or no client or model is there. */
  get #isTaken(): boolean {
    const isSpeaking = this.voice.isBusy || this.#waiting.isAsked || this.listening.hasFloor;
    return isSpeaking || !this.#connections.isAvailable;
  }

  /** Whether the model waits for a tool result. */
  get #isToolAwaited(): boolean {
    return this.#calls.areAwaited || this.#delegations?.areUnderWay === true;
  }
}
