// What the model says, from its first thought to the user's ear: asked for or by itself,
// held back, sent, broken off.
//
// Owns:     the responses, what is held of them, the sound on its way and the stream of it.
// Does not: decide what is asked for next, or whom the user's words were for (turns).
//
// Invariants
//   MODEL-VOICE-3. The user's voice stops ours at once, what is held back included.
//   MODEL-VOICE-7. An utterance is answered once: what the model says to words that may be for a subagent
//       is not heard before it is known (held-speech).

import type { Observable } from 'rxjs';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import type { Attempt } from '../connection/attempt.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { HeldSpeech } from './held-speech.ts';
import { Loudspeaker, type PlayedItem } from './loudspeaker.ts';
import type { ModelMemory } from './model-memory.ts';
import { ModelWork } from './model-work.ts';
import { Responses } from './responses.ts';
import { Speech } from './speech.ts';
import { NOT_RUN } from './speech-prompts.ts';
import type {
  TransportCapabilities,
  TransportCommand,
  TransportEvent,
} from '../connection/transport.ts';

export interface ModelVoiceOptions {
  readonly capabilities: TransportCapabilities;
  readonly clearReportMs: number;
  readonly responseTimeoutMs: number;
  /** What is held back is held so long after the user has fallen silent, at most. */
  readonly settleTimeoutMs: number;
}

export interface ModelVoicePorts {
  send(command: TransportCommand): void;
  /** Released, as if it were said now. */
  happened(event: TransportEvent): void;
  /** May what the model begins to say be an answer to words for somebody else? */
  isUndecided(): boolean;
  userHasFloor(): boolean;
  /** The model replies, in this response: the user hears it. */
  replying(responseId: string): void;
  /** What was asked for is over; see `ResponsesPorts.ended`. */
  responded(said: Attempt | null, status: string, calledOff: boolean): void;
  /** There may be room for something else. */
  settled(): void;
  /** Nothing plays any more. */
  drained(): void;
}

export class ModelVoice {
  readonly #core: LeadSession;
  readonly #ports: ModelVoicePorts;
  readonly #loudspeaker: Loudspeaker;
  readonly #speech: Speech;
  readonly #responses: Responses;
  readonly #held: HeldSpeech;
  readonly #work: ModelWork;
  /** Where speech that is stopped now had been paused. */
  #pausedAt: PlayedItem | null = null;

  constructor(
    core: LeadSession,
    memory: ModelMemory,
    { capabilities, clearReportMs, responseTimeoutMs, settleTimeoutMs }: ModelVoiceOptions,
    ports: ModelVoicePorts,
  ) {
    this.#core = core;
    this.#ports = ports;
    const { environment } = core.host;
    const tell = (type: string): void => core.receive('session', { type });
    const report = (error: unknown): void => core.reportError(error, 'transport');
    const settled = (): void => ports.settled();
    this.#loudspeaker = new Loudspeaker(() => core.projection.emit({ type: 'playout.clear' }));
    this.#speech = new Speech(
      {
        started: () => tell('playout.started'),
        drained: () => {
          this.#loudspeaker.drained();
          tell('playout.drained');
          ports.drained();
        },
        begun: (attempt) => this.notHeard('delivery.playing', attempt),
        heard: ({ offer: { generation } }) =>
          core.receive('outbox', { type: 'delivery.heard', generation, grade: 'played' }),
        interrupted: (attempt) => this.notHeard('delivery.interrupted', attempt),
        clear: () => {
          this.#pausedAt = this.#loudspeaker.drop();
        },
        cut: (item) => memory.heardPart(item),
        settled,
      },
      environment,
      clearReportMs,
    );
    this.#responses = new Responses(
      {
        send: (command) => ports.send(command),
        begun: () => tell('response.requested'),
        ended: (said, status, calledOff) => ports.responded(said, status, calledOff),
        settled,
        interrupted: (attempt) => this.notHeard('delivery.interrupted', attempt),
        failed: (attempt) => this.notHeard('delivery.failed', attempt),
        report,
      },
      this.#speech,
      environment,
      capabilities,
      responseTimeoutMs,
    );
    this.#work = new ModelWork(
      environment,
      { begun: () => tell('response.requested'), ended: settled, report },
      responseTimeoutMs,
    );
    this.#held = new HeldSpeech(
      environment,
      {
        isUndecided: () => ports.isUndecided(),
        hasFloor: () => ports.userHasFloor(),
        spoke: (frame) => this.#say(frame),
        happened: (event) => ports.happened(event),
        silenced: (responseId, isOver) => {
          this.#responses.silence(responseId, isOver);
          memory.silenced();
        },
        refused: (callId) =>
          ports.send({ type: 'tool.answer', callId, output: NOT_RUN, silent: true }),
        unplayed: (itemId) => memory.unplayed(itemId),
      },
      settleTimeoutMs,
    );
  }

  /** The sound, as it goes to the client. Hot. */
  get audioOut(): Observable<AudioFrame> {
    return this.#loudspeaker.audioOut;
  }

  /** What is said to words that may not be for the model. */
  get held(): Pick<HeldSpeech, 'release' | 'silence' | 'expectUnwanted' | 'expectWanted'> {
    return this.#held;
  }

  /** A response is in the making, or the model works at one. */
  get isBusy(): boolean {
    return this.#responses.isUnderWay || this.#work.isWorking;
  }

  /** Something is said, or about to be, that the user could break off. */
  get isSpeaking(): boolean {
    return this.#responses.isUnderWay || !this.#speech.isSilent;
  }

  /** The items that play, or are about to. */
  get playing(): readonly string[] {
    return this.#speech.playing;
  }

  /** The items of which it is still to be seen how much is heard. */
  get unsettled(): readonly string[] {
    return this.#speech.unsettled;
  }

  /** What is in the making replies to the user. */
  get isReply(): boolean {
    return this.#responses.isReply;
  }

  /** When the model last began to respond by itself; milliseconds since 1970. */
  get ownSince(): number {
    return this.#responses.ownSince;
  }

  reply(): void {
    this.#responses.reply();
  }

  say(attempt: Attempt, instructions: string, about: string): void {
    this.#responses.say(attempt, instructions, about);
  }

  /** Tells the outbox what became of an attempt, if it was not heard. */
  notHeard(type: string, { offer: { generation } }: Attempt): void {
    this.#core.receive('outbox', { type, generation });
  }

  /** It need not be said any more. */
  abandon(generation: number): void {
    if (this.#speech.attempt?.offer.generation !== generation) return;
    this.#speech.giveUp();
    this.#breakOff();
  }

  /** Sound of the model. */
  spoke(frame: AudioFrame): void {
    if (!this.#held.takesFrame(frame)) this.#say(frame);
  }

  /** Takes what is about responses, and what is not to be known now. */
  takes(event: TransportEvent): boolean {
    if (this.#held.takesEvent(event)) return true;
    if (event.type === 'response.started') {
      const isOwn = this.#responses.started(event.responseId, event.responseKey);
      if (isOwn) this.#held.began(event.responseId);
    } else if (event.type === 'response.ended') this.#responses.ended(event);
    else if (event.type === 'model.changed') this.#work.changed(event.status);
    else return false;
    return true;
  }

  /** The wire refused a request. */
  refused(responseKey: string, code: string): void {
    this.#responses.refused(responseKey, code);
  }

  /** A sign of life. */
  sign(): void {
    this.#work.sign();
  }

  /** The client's word on what it played. */
  played(itemId: string, playedMs: number): void {
    const played = this.#loudspeaker.played({ itemId, playedMs });
    this.#speech.played(played.itemId, played.playedMs);
  }

  /** Silence, now. */
  hush(): void {
    this.#held.silence();
    this.#breakOff();
  }

  /** Silence, now, that may turn out not to be for good. False: there is nothing to go on with. */
  pause(): boolean {
    return !this.#speech.isSilent && this.#loudspeaker.pause();
  }

  /** The sound on its way, for what is no speech. */
  get background(): Pick<Loudspeaker, 'murmur' | 'endMurmur'> {
    return this.#loudspeaker;
  }

  get isPaused(): boolean {
    return this.#loudspeaker.isPaused;
  }

  /** What is in the making, by the ids of the responses. */
  get underWay(): readonly string[] {
    return this.#responses.underWay;
  }

  /** From where it was heard. */
  goOn(): void {
    const from = this.#loudspeaker.goOn();
    if (!from) return;
    const { itemId, playedMs } = from;
    this.#core.projection.emit({ type: 'speech.resumed', itemId, playedMs });
  }

  /** Nobody is there to hear it, or to say how much was heard. */
  nobodyListens(): void {
    this.#speech.stopWaiting();
    this.#speech.giveUp();
    this.hush();
    this.#speech.stopWaiting();
  }

  /** The connection is gone. What was sent goes on playing. Returns whether a reply was under way. */
  lost(): boolean {
    this.#speech.completedAll();
    this.#held.reset();
    this.#work.reset();
    return this.#responses.lost();
  }

  /** Nothing is said any more. */
  stop(): void {
    this.#responses.stopWatching();
    this.#held.reset();
    this.#work.reset();
    this.#speech.stopWaiting();
    this.#loudspeaker.complete();
  }

  #say(frame: AudioFrame): void {
    if (!this.#responses.wants(frame)) return;
    this.#work.sign();
    if (this.#responses.isReply) this.#ports.replying(frame.responseId ?? '');
    this.#speech.sent(frame);
    this.#loudspeaker.say(frame);
  }

  #breakOff(): void {
    this.#responses.stop();
    // A client that was paused has said already how far it came.
    const at = this.#pausedAt;
    this.#pausedAt = null;
    if (at) this.#speech.played(at.itemId, at.playedMs);
  }
}
