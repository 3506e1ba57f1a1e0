// The speech of the voice model from generation to playback: requested or unprompted, held back, sent and
// interrupted.
//
// Owns:     the responses, their held output, the sound on its way and its stream.
// Does not: decide what is requested next, or to whom the user's words are addressed (turns).
//
// Invariants
//   MODEL-VOICE-3. The user's voice stops the model's speech at once, including held output.
//   MODEL-VOICE-7. An utterance is answered once: a reply to words that may be addressed to a subagent is not
//       heard before the addressee is known (held-speech).

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
  /** The longest time for which output is held after the user has fallen silent. */
  readonly settleTimeoutMs: number;
}

export interface ModelVoicePorts {
  send(command: TransportCommand): void;
  /** Handles a released event as if it had just arrived. */
  happened(event: TransportEvent): void;
  /** Returns whether a response that the model begins may answer words that are addressed to a subagent. */
  isUndecided(): boolean;
  userHasFloor(): boolean;
  /** Reports that the model replies to the user in this response. */
  replying(responseId: string): void;
  /** Reports the end of a requested response; see `ResponsesPorts.ended`. */
  responded(said: Attempt | null, status: string, calledOff: boolean): void;
  /** Reports that the model may be free for another request. */
  settled(): void;
  /** Reports that no sound is playing any more. */
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
  /** The position at which the speech that is being stopped was paused before. */
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
    const tell = (type: 'playout.started' | 'playout.drained' | 'response.requested'): void =>
      core.receive('session', { type });
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

  /** The sound on its way to the client. Hot. */
  get audioOut(): Observable<AudioFrame> {
    return this.#loudspeaker.audioOut;
  }

  /** Controls the held responses to words that may not be addressed to the model. */
  get held(): Pick<HeldSpeech, 'release' | 'silence' | 'expectUnwanted' | 'expectWanted'> {
    return this.#held;
  }

  /** Whether a response is being generated, or the model works on one. */
  get isBusy(): boolean {
    return this.#responses.isUnderWay || this.#work.isWorking;
  }

  /** Whether there is or will soon be speech that the user could interrupt. */
  get isSpeaking(): boolean {
    return this.#responses.isUnderWay || !this.#speech.isSilent;
  }

  /** The ids of the items that play or are about to. */
  get playing(): readonly string[] {
    return this.#speech.playing;
  }

  /** The ids of the items whose heard part is not known yet. */
  get unsettled(): readonly string[] {
    return this.#speech.unsettled;
  }

  /** Whether the response being generated replies to the user. */
  get isReply(): boolean {
    return this.#responses.isReply;
  }

  /** When the model last began a response by itself, in milliseconds since 1970. */
  get ownSince(): number {
    return this.#responses.ownSince;
  }

  reply(): void {
    this.#responses.reply();
  }

  say(attempt: Attempt, instructions: string, about: string): void {
    this.#responses.say(attempt, instructions, about);
  }

  /** Tells the outbox the outcome of an attempt that was not heard. */
  notHeard(
    type: 'delivery.playing' | 'delivery.interrupted' | 'delivery.failed',
    { offer: { generation } }: Attempt,
  ): void {
    this.#core.receive('outbox', { type, generation });
  }

  /** Gives up an attempt that need not be said any more. */
  abandon(generation: number): void {
    if (this.#speech.attempt?.offer.generation !== generation) return;
    this.#speech.giveUp();
    this.#breakOff();
  }

  /** Handles a frame of the model's sound. */
  spoke(frame: AudioFrame): void {
    if (!this.#held.takesFrame(frame)) this.#say(frame);
  }

  /** Handles events about responses, and events that are to be held. Returns whether the event was one. */
  handle(event: TransportEvent): boolean {
    if (this.#held.takesEvent(event)) return true;
    if (event.type === 'response.started') {
      const isOwn = this.#responses.started(event.responseId, event.responseKey);
      if (isOwn) this.#held.began(event.responseId);
    } else if (event.type === 'response.ended') this.#responses.ended(event);
    else if (event.type === 'model.changed') this.#work.changed(event.status);
    else return false;
    return true;
  }

  /** Handles the transport's refusal of a request. */
  refused(responseKey: string, code: string): void {
    this.#responses.refused(responseKey, code);
  }

  /** Records a sign of life of the model. */
  sign(): void {
    this.#work.sign();
  }

  /** Handles a client report of played sound. */
  played(itemId: string, playedMs: number): void {
    const played = this.#loudspeaker.played({ itemId, playedMs });
    this.#speech.played(played.itemId, played.playedMs);
  }

  /** Stops all speech at once. */
  silence(): void {
    this.#held.silence();
    this.#breakOff();
  }

  /**
   * Stops all speech at once so that it can continue later. Returns false if there is nothing to continue.
   */
  pause(): boolean {
    return !this.#speech.isSilent && this.#loudspeaker.pause();
  }

  /** The loudspeaker, for sound that is not speech. */
  get background(): Pick<Loudspeaker, 'playBackground' | 'endBackground'> {
    return this.#loudspeaker;
  }

  get isPaused(): boolean {
    return this.#loudspeaker.isPaused;
  }

  /** The ids of the responses being generated. */
  get underWay(): readonly string[] {
    return this.#responses.underWay;
  }

  /** Continues the speech from where it was heard. */
  resume(): void {
    const from = this.#loudspeaker.resume();
    if (!from) return;
    const { itemId, playedMs } = from;
    this.#core.projection.emit({ type: 'speech.resumed', itemId, playedMs });
  }

  /** Handles the loss of the client: no one hears the sound or reports how much was heard. */
  nobodyListens(): void {
    this.#speech.stopWaiting();
    this.#speech.giveUp();
    this.silence();
    this.#speech.stopWaiting();
  }

  /**
   * Handles the loss of the connection. Sound that was sent plays on. Returns whether a reply was being
   * generated.
   */
  lost(): boolean {
    this.#speech.completedAll();
    this.#held.reset();
    this.#work.reset();
    return this.#responses.lost();
  }

  /** Stops for good. */
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
    // A paused client has already reported its position.
    const at = this.#pausedAt;
    this.#pausedAt = null;
    if (at) this.#speech.played(at.itemId, at.playedMs);
  }
}
