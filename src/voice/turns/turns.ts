// Who speaks next in a voice session: what the user said is answered once, what tools found
// is told, and two never speak at a time.
//
// Owns:     what is responded to next.
// Does not: decide when an offer may be said (outbox) or who an utterance is for (session),
//           run tools, hold connections (line); know what is owed (replies), what was said
//           (listening, model-voice), what the model remembers (model-memory) or delegates
//           (delegations).
//
// Invariants
//   TURNS-1. One response at a time (responses). What asks for another one meanwhile is answered
//       by the next.
//   TURNS-2. Nothing is asked of the model while the user has the floor (listening).
//   TURNS-7. An utterance is answered once: by the lead agent or by the subagent that it was for,
//       also where the model answers by itself what it hears.
//   TURNS-9. While a tool of the lead agent works for longer than `HOLDS_FLOOR_MS`, what is due is told,
//       and the tool's answer is spoken to afterwards: where a response can be made while a call is
//       open, and the model does not speak to results by itself. The turn of the lead agent goes on.

import type { Prompt } from '../../actors/notes/note.ts';
import { shortNameOf } from '../../actors/notes/note-marks.ts';
import { HOLDS_FLOOR_MS, type Offer } from '../../actors/session/lead/lead.ts';
import { overheardNote, OWED_REPLY_NOTE } from '../../actors/conversation/prompts.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { ProviderError } from '../../values/errors.ts';
import { Addressee } from './addressee.ts';
import { Attempt } from '../connection/attempt.ts';
import { BargeIn, type BargeInOptions } from './barge-in.ts';
import type { WorkOut } from './delegation-step.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
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
  /** So much of an item's audio must have been played for it to count as heard. */
  readonly heardFraction: number;
  /** A model that answers by itself is asked to if it stays silent for so long. */
  readonly replyTimeoutMs: number;
  /** An utterance that lasts longer is ended by the session. */
  readonly maxUtteranceMs: number;
  /** What a delegation means, for a transport that delegates. */
  readonly workOut?: WorkOut;
}

export interface TurnsPorts {
  send(command: TransportCommand): void;
  /** Is there nobody who could be asked? */
  isOffLine(): boolean;
  /** Nobody speaks, and nobody is about to. */
  rested(): void;
}

export class Turns {
  readonly memory: ModelMemory;
  readonly voice: ModelVoice;
  readonly listening: Listening;
  readonly #core: LeadSession;
  readonly #options: TurnsOptions;
  readonly #ports: TurnsPorts;
  readonly #transcript: VoiceTranscript;
  readonly #replies: Replies;
  readonly #bargeIn: BargeIn;
  readonly #calls: LeadCalls;
  readonly #delegations: Delegations | null;
  readonly #waiting: Waiting;
  readonly #addressee: Addressee;
  #stopHolding: (() => void) | null = null;

  constructor(core: LeadSession, options: TurnsOptions, ports: TurnsPorts) {
    this.#core = core;
    this.#options = options;
    this.#ports = ports;
    const { capabilities, settleTimeoutMs, maxUtteranceMs, workOut } = options;
    const { responseTimeoutMs: timeoutMs } = options;
    const { endsUtterances } = capabilities;
    const send = (command: TransportCommand): void => ports.send(command);
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
        // TURNS-1: nothing is offered while the model is asked for a word.
        if (command.type === 'response.request')
          core.receive('session', { type: 'response.requested' });
        send(command);
      },
      isToolAwaited: () => this.#isToolAwaited,
      isReplyAwaited: () => this.#replies.isWanted || (this.voice.isBusy && this.voice.isReply),
      userHasFloor,
      isOffLine: () => ports.isOffLine(),
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

  /** What the wire says, but for the connection itself. */
  happened(event: TransportEvent): void {
    if (!this.#waiting.takes(event)) this.#happened(event);
    this.#waiting.look();
    this.#holdFloor(this.#onlyToolWorks);
  }

  /** Sound of the model. */
  spoke(frame: AudioFrame): void {
    if (!this.#waiting.takesFrame(frame)) this.voice.spoke(frame);
  }

  #happened(event: TransportEvent): void {
    if (this.voice.takes(event)) {
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
      // The voice has dealt with these.
      case 'response.started':
      case 'response.ended':
      case 'model.changed':
      // They are about the line, and not about who speaks.
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
    // What was offered before is in the model's conversation already.
    else this.memory.noteOnce(noteId, prompt);
    // Where the journal takes its time, somebody may have begun to speak meanwhile, or is gone.
    if (this.#isTaken) {
      this.voice.notHeard('delivery.interrupted', attempt);
      return;
    }
    this.memory.tellWaiting();
    const words = offerInstructions(offer, notes.markOf(noteId));
    // Where instructions have the role of the user, they are a note.
    const instructions =
      notes.systemAs === 'user'
        ? notes.text({ says: words }, `${noteId} ${offer.generation}`)
        : words;
    this.voice.say(attempt, instructions, notes.data(prompt, noteId));
    this.#waiting.look();
  }

  /** Under which the model is told of a delivery; of one that is put in other words, again. */
  #noteIdOf(deliveryId: string, prompt: Prompt): string {
    const id = `${deliveryId}.note`;
    const told = this.#core.books.conversation.get(id);
    if (typeof prompt === 'string' || told?.role !== 'system') return id;
    const says = prompt.says ?? '';
    return told.text === says ? id : `${id}.${shortNameOf(says)}`;
  }

  /** Something urgent waits. */
  interrupt(): void {
    if (this.voice.isReply) this.#replies.cutOff();
    this.#waiting.hush();
    this.voice.hush();
    // While only a tool works there is a pause.
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

  /** The model shall speak, whatever was said before. */
  askToSpeak(): void {
    this.#replies.ask();
    this.next();
  }

  heardUser({ id, text, typed }: Utterance): void {
    if (typed) {
      this.memory.typed(id, text);
      this.voice.hush();
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
    // What else was said waits for a reply that was in what is not heard.
    if (wasHeld && this.#replies.isExpected) this.#replies.ask();
    this.#understood(id);
    this.#addressee.expectsNothing(typed, wasHeld);
  }

  /** Nobody is there any more: nobody speaks, and what was said so far is settled. */
  clientLeft(): void {
    this.listening.giveUpWaiting();
    this.voice.nobodyListens();
    this.#bargeIn.reset();
    this.#waiting.stop();
    this.#settled();
  }

  /** Nobody speaks, and nobody is about to; what was said may still be playing. */
  get isAtRest(): boolean {
    return !this.#isBusy && !this.#replies.isWanted;
  }

  /** So much of the user's sound, the newest, holds words that nobody has understood or answered; in milliseconds. */
  get unheardMs(): number {
    const isAnswered = this.#replies.hasAnswered && !this.voice.isBusy;
    return isAnswered ? 0 : this.listening.unknownMs;
  }

  /**
   * What was in the making on a connection that is not in use any more comes to nothing.
   * `hearsAgain`: what the user was saying is given to the next one.
   */
  lineLost(hearsAgain: boolean): void {
    this.#waiting.lost();
    this.memory.lineLost(this.voice.unsettled);
    this.#bargeIn.reset();
    const wasReplying = this.voice.lost();
    const wasDelegating = this.#delegations?.lost() === true;
    // The words that were still to be answered are part of what the next connection is told.
    this.#replies.moved(!hearsAgain && (wasReplying || wasDelegating));
    this.listening.reset();
  }

  /** Nobody on the line waits for the answer to a call. */
  callsLost(): void {
    this.#calls.reset();
    this.#waiting.look();
  }

  stop(): void {
    // What was said last gets no reply any more, also when what was cut off is settled.
    this.#replies.stop();
    this.#waiting.lost();
    this.#waiting.stop();
    this.#holdFloor(false);
    this.#delegations?.stop();
    this.listening.reset();
    this.voice.stop();
    this.#bargeIn.reset();
  }

  /** Asks for the reply that is wanted, if nothing is in its way. */
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
      this.#ports.rested();
    }
  }

  /** TURNS-9: `holds`: for a while still; then what is due may be told. */
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

  /** TURNS-9: nothing else keeps the model from being asked for something. */
  get #onlyToolWorks(): boolean {
    const isPossible = this.#options.capabilities.defersToolResults && !this.#answersResults;
    const isToolAwaited = this.#calls.areAwaited && this.#delegations?.areUnderWay !== true;
    return isPossible && isToolAwaited && !this.#isTaken && !this.#replies.isExpected;
  }

  /** Only a model that speaks by itself has to be told where it shall not. */
  #tellResult(callId: string, output: string, isSilent: boolean, noteId?: string): void {
    const { books, notes } = this.#core;
    const name = books.calls.get(callId)?.name ?? null;
    // A note is one on any wire.
    const asNote = (): string =>
      noteId === undefined
        ? notes.text(answerNote(callId, name, output), `${callId} answered`)
        : output;
    const told = tellsCallsInWords(this.#options.capabilities) ? asNote() : undefined;
    const silent = this.#options.capabilities.responds === 'by_itself' && isSilent;
    this.#ports.send({
      type: 'tool.answer',
      callId,
      output,
      ...(told === undefined ? {} : { told }),
      ...(silent && { silent }),
    });
  }

  /** It is known what was said, and to whom. */
  #understood(utteranceId: string): void {
    this.listening.understood(utteranceId);
    this.#settled();
  }

  /** The user may have the floor no more. */
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

  /** The model speaks to the results of its calls without being asked. */
  get #answersResults(): boolean {
    const { responds, schedulesToolResults } = this.#options.capabilities;
    return responds === 'by_itself' && !schedulesToolResults;
  }

  /** Nothing can be asked of the model. */
  get #isBusy(): boolean {
    return this.#isTaken || this.#isToolAwaited;
  }

  /** Somebody speaks, or is about to, or nobody is there who could. */
  get #isTaken(): boolean {
    const isSpeaking = this.voice.isBusy || this.#waiting.isAsked || this.listening.hasFloor;
    return isSpeaking || this.#ports.isOffLine();
  }

  /** The model waits for what a tool brings. */
  get #isToolAwaited(): boolean {
    return this.#calls.areAwaited || this.#delegations?.areUnderWay === true;
  }
}
