// Presents the model's speech as responses. The wire has none: its sound is one continuous track, silent
// between replies, and its transcript comes in fragments without an end.
//
//   silent ──sound or words──▶ speaking ──quiet for long enough──▶ silent
//                                 └──called off──▶ unheard ──quiet──────▲
//
// Owns: where a response begins and ends, its ids, what was handed on of it, and the request that it answers.
// Does not: infer the user's utterances (`heard-utterances.ts`).
//
// SPOKEN-RESPONSES-1. A response begins with audible sound or with words, whichever is first, and ends after
//     `responseSilenceMs` of the track without both, or after `responseStallMs` if the track itself stops.
// SPOKEN-RESPONSES-2. Sound is passed on during a response, including its pauses, and never between
//     responses.
// SPOKEN-RESPONSES-3. No sound of a cancelled response is passed on. It ends with a pause, a shorter one if
//     the user spoke, or after `CANCEL_MS`, so that the session does not wait longer for a model that keeps
//     talking. Speech after the pause is another response.
// SPOKEN-RESPONSES-4. `response.ended` lists the sound up to the last audible frame: a user who heard that
//     has heard all of it.
// SPOKEN-RESPONSES-5. Late words belong to the response during which they were said.
//
// OPENAI-LIVE-REQUESTS-1. A response answers the request only if it began after the server took the text in,
//     and has no other possible cause: since the text was sent the user said nothing, there was no
//     delegation, and no other text to be said.
// OPENAI-LIVE-REQUESTS-2. Another cause is forgotten after the response that follows it, or after `causeMs`.
// OPENAI-LIVE-REQUESTS-3. Each request ends once: answered, lapsed, or refused.
// OPENAI-LIVE-REQUESTS-4. A request is sent when the model is silent and has no other cause to speak: while
//     it talks, heard or not, or may be about to, the request is held. A request that was never sent is never
//     spoken: it can be withdrawn and repeated without being said twice.

import type { Environment } from '../../actors/ports/environment.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import type { WireConnection } from '../socket/wire.ts';
import type { HeardUtterances } from './heard-utterances.ts';
import type { OpenaiLiveSettings, TurnTimes } from './options.ts';

/** Root mean square of a frame above which it is audible; the track between replies is below 30. */
const AUDIBLE_LEVEL = 65;
/** Shorter than the session's own timeout for a cancelled response. */
const CANCEL_MS = 2_000;
/** The length of the track before the first audible frame that is passed on: words begin softly. */
const ONSET_MS = 40;

type Status = Extract<TransportEvent, { type: 'response.ended' }>['status'];

interface Response {
  readonly responseId: string;
  readonly itemId: string;
  readonly responseKey: string | null;
  text: string;
  sentMs: number;
  audibleMs: number;
  /** Whether the server reported an error meanwhile. */
  isTroubled: boolean;
  isCancelled: boolean;
}

export class SpokenResponses {
  readonly #connection: WireConnection;
  readonly #sampleRateHz: number;
  readonly #times: TurnTimes;
  readonly #requests: Requests;
  readonly #utterances: HeardUtterances;
  #response: Response | null = null;
  #hasUserSpoken = false;
  #last: Response | null = null;
  #trackMs = 0;
  /** The last audible position on the track. */
  #audibleUntilMs = 0;
  #quietMs = 0;
  /** The end of the track while it is silent. */
  #onset: Int16Array | null = null;
  #lastAt = 0;
  #cancelStall: () => void = () => {};
  #cancelPatience: () => void = () => {};

  constructor(
    connection: WireConnection,
    { sampleRateHz, times }: Pick<OpenaiLiveSettings, 'sampleRateHz' | 'times'>,
    requests: Requests,
    utterances: HeardUtterances,
  ) {
    this.#connection = connection;
    this.#sampleRateHz = sampleRateHz;
    this.#times = times;
    this.#requests = requests;
    this.#utterances = utterances;
  }

  /** Whether the model speaks, heard or unheard. */
  get isSpeaking(): boolean {
    return this.#requests.isModelSpeaking;
  }

  get isHeard(): boolean {
    return this.#response !== null && !this.#response.isCancelled;
  }

  /** Handles the next stretch of the track. */
  sound(samples: Int16Array): void {
    if (samples.length === 0) return;
    const durationMs = this.#durationOf(samples);
    const isAudible = levelOf(samples) >= AUDIBLE_LEVEL;
    if (isAudible && !this.isSpeaking) this.#begin();
    this.#trackMs += durationMs;
    if (isAudible) this.#audibleUntilMs = this.#trackMs;
    if (!this.isSpeaking) {
      this.#onset = samples.subarray(-(ONSET_MS * this.#sampleRateHz) / 1000);
      return;
    }
    this.#quietMs = isAudible ? 0 : this.#quietMs + durationMs;
    this.#handOn(samples, isAudible);
    if (this.#quietMs >= this.#pauseMs) this.#end();
  }

  /** Handles a fragment of the transcript; `startMs` is its position on the track. */
  words(delta: string, startMs: number): void {
    if (delta === '') return;
    if (!this.isSpeaking && startMs < this.#audibleUntilMs) {
      this.#lateWords(delta);
      return;
    }
    if (!this.isSpeaking) this.#begin();
    this.#quietMs = 0;
    this.#lastAt = this.#connection.environment.clock.now();
    const response = this.#response;
    if (!response || response.isCancelled) return;
    response.text += delta;
    this.#transcribed(response, delta, false);
  }

  /** SPOKEN-RESPONSES-3. @returns whether there was anything to call off */
  cancel(): boolean {
    const response = this.#response;
    if (!response) return false;
    if (response.isCancelled) return true;
    response.isCancelled = true;
    this.#hasUserSpoken = this.#utterances.isSpeaking;
    const { scheduler } = this.#connection.environment;
    this.#cancelPatience = scheduler.schedule(() => this.#finish(), CANCEL_MS);
    this.#utterances.modelHeard(this.isHeard);
    return true;
  }

  userSpoke(): void {
    this.#hasUserSpoken = true;
  }

  /** Records an error: the current speech may be incomplete. */
  trouble(): void {
    if (this.#response) this.#response.isTroubled = true;
  }

  stop(): void {
    this.#cancelStall();
    this.#cancelPatience();
  }

  get #pauseMs(): number {
    const { responseSilenceMs, turnPauseMs } = this.#times;
    return !this.isHeard && this.#hasUserSpoken ? turnPauseMs : responseSilenceMs;
  }

  #begin(): void {
    const { environment, emit } = this.#connection;
    this.#utterances.modelBegins();
    const { responseKey, lapsedKey, isUnwanted } = this.#requests.claim();
    const responseId = environment.ids.next('response');
    if (lapsedKey !== null) emit(nothingSaid(environment, lapsedKey, 'uncertain'));
    this.#requests.isModelSpeaking = true;
    this.#hasUserSpoken = false;
    this.#quietMs = 0;
    this.#lastAt = environment.clock.now();
    this.#watchStall(this.#times.responseStallMs);
    const onset = this.#onset;
    this.#onset = null;
    if (isUnwanted) {
      this.#last = null;
      return;
    }
    this.#response = {
      responseId,
      itemId: environment.ids.next('item'),
      responseKey,
      text: '',
      sentMs: 0,
      audibleMs: 0,
      isTroubled: false,
      isCancelled: false,
    };
    emit({ type: 'response.started', responseId, responseKey });
    this.#utterances.modelHeard(this.isHeard);
    if (onset) this.#handOn(onset.slice(), false);
  }

  #handOn(samples: Int16Array, isAudible: boolean): void {
    this.#lastAt = this.#connection.environment.clock.now();
    const response = this.#response;
    if (!response || response.isCancelled) return;
    response.sentMs += this.#durationOf(samples);
    if (isAudible) response.audibleMs = response.sentMs;
    const { responseId, itemId } = response;
    const sampleRateHz = this.#sampleRateHz;
    this.#connection.emitAudio({ samples, sampleRateHz, itemId, responseId });
  }

  #end(): void {
    this.#requests.isModelSpeaking = false;
    this.#cancelStall();
    this.#finish();
    this.#requests.reconsider();
  }

  /** Ends the response, even if the model keeps speaking. */
  #finish(): void {
    const response = this.#response;
    if (!response) return;
    this.#cancelPatience();
    this.#response = null;
    this.#last = response;
    const { responseId, responseKey, itemId, text, audibleMs } = response;
    if (text !== '') this.#transcribed(response, text, true);
    this.#connection.emit({
      type: 'response.ended',
      responseId,
      responseKey,
      status: statusOf(response),
      reason: null,
      audio: audibleMs > 0 ? [{ itemId, durationMs: audibleMs }] : [],
    });
    this.#utterances.modelHeard(this.isHeard);
  }

  #lateWords(delta: string): void {
    const last = this.#last;
    if (!last || last.isCancelled) return;
    last.text += delta;
    this.#transcribed(last, last.text, true);
  }

  #transcribed({ itemId, responseId }: Response, text: string, final: boolean): void {
    this.#connection.emit({ type: 'assistant.transcribed', itemId, responseId, text, final });
  }

  #watchStall(delayMs: number): void {
    const { clock, scheduler } = this.#connection.environment;
    this.#cancelStall = scheduler.schedule(() => {
      const leftMs = this.#lastAt + this.#times.responseStallMs - clock.now();
      if (leftMs > 0) this.#watchStall(leftMs);
      else this.#end();
    }, delayMs);
  }

  #durationOf(samples: Int16Array): number {
    return (samples.length * 1000) / this.#sampleRateHz;
  }
}

function statusOf({ isCancelled, isTroubled }: Response): Status {
  if (isCancelled) return 'cancelled';
  return isTroubled ? 'incomplete' : 'completed';
}

/** Returns the root mean square, of full scale 32,767. */
function levelOf(samples: Int16Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return Math.sqrt(sum / samples.length);
}

/** The cause of the model's speech. */
interface Claim {
  /** The request that it answers, if that is certain. */
  readonly responseKey: string | null;
  /** The request that failed, because this may or may not be its answer. */
  readonly lapsedKey: string | null;
  /** It can only answer a cancelled request, and is not to be heard. */
  readonly isUnwanted: boolean;
}

interface Request {
  readonly responseKey: string;
  readonly ticket: string;
  isAccepted: boolean;
  /** When it was cancelled; null if it was not. */
  cancelledAt: number | null;
}

/** OPENAI-LIVE-REQUESTS-4. `send` sends the text to the model, and returns its ticket. */
interface Held {
  readonly responseKey: string;
  readonly send: () => string;
}

/**
 * Determines which response answers a request. The wire never reports it: the model reads an appended text
 * and speaks at a time of its own choice, as it also does to the user and for its own tasks.
 *
 *   asked ─▶ held ──nothing else may make the model speak──▶ sent ──taken in──▶ may be said
 *              └── called off: never sent                     │                     │
 *     speech, and no other cause: ours ◀──────────────────────┼─────────────────────┤
 *     speech before, or with another cause; none for `requestTimeoutMs`: lapsed ◀──────────┤
 *     called off: lapsed; if it is said all the same, it is dropped ◀───────────────┘
 *
 * Owns: the one request that is under way, and what else may make the model speak. Does not:
 * say or hear anything.
 */
export class Requests {
  readonly #connection: WireConnection;
  readonly #times: Pick<TurnTimes, 'requestTimeoutMs' | 'causeMs'>;
  /** Whether the model speaks, heard or unheard. */
  isModelSpeaking = false;
  #held: Held | null = null;
  #cancelHold: () => void = () => {};
  #request: Request | null = null;
  #lastCauseAt: number | null = null;
  #cancelTimeout: () => void = () => {};

  constructor(connection: WireConnection, times: Pick<TurnTimes, 'requestTimeoutMs' | 'causeMs'>) {
    this.#connection = connection;
    this.#times = times;
  }

  /**
   * Requests a response by the text that `send` sends to the model, now or later (OPENAI-LIVE-REQUESTS-4).
   */
  ask(responseKey: string, send: () => string): void {
    this.#held = { responseKey, send };
    this.reconsider();
  }

  /** Sends the held request if the model is silent and has no other cause to speak. */
  reconsider(): void {
    this.#cancelHold();
    this.#cancelHold = () => {};
    if (!this.#held || this.isModelSpeaking) return;
    const waitMs = Math.max(this.#causeForMs, this.#calledOffForMs);
    if (waitMs > 0)
      this.#cancelHold = this.#connection.environment.scheduler.schedule(
        () => this.reconsider(),
        waitMs,
      );
    else this.#send(this.#held);
  }

  /** Withdraws a request that was not sent yet; any, without a key. */
  withdraw(responseKey: string | null): void {
    const held = this.#held;
    if (!held || (responseKey !== null && held.responseKey !== responseKey)) return;
    this.#held = null;
    this.#cancelHold();
    this.#lapse(held.responseKey, 'cancelled');
  }

  /** Records that the server took in the text of this ticket. */
  accepted(ticket: string): void {
    if (this.#request?.ticket === ticket) this.#request.isAccepted = true;
  }

  /** Records that the server refused the text of this ticket. @returns the key of its request */
  refused(ticket: string): string | null {
    const request = this.#request;
    if (request?.ticket !== ticket) return null;
    this.#end();
    return request.cancelledAt === null ? request.responseKey : null;
  }

  /** Cancels the request; a text that was sent to the model cannot be withdrawn. */
  cancel(): void {
    const request = this.#request;
    if (!request || request.cancelledAt !== null) return;
    request.cancelledAt = this.#connection.environment.clock.now();
    this.#lapse(request.responseKey, 'cancelled');
  }

  /** Records another cause for the model to speak. */
  otherCause(): void {
    this.#lastCauseAt = this.#connection.environment.clock.now();
  }

  /** Returns the cause of the speech that begins. */
  claim(): Claim {
    const request = this.#end();
    const hasOtherCause = this.#causeForMs > 0;
    this.#lastCauseAt = null;
    if (!request) return { responseKey: null, lapsedKey: null, isUnwanted: false };
    const { responseKey, isAccepted, cancelledAt } = request;
    const isOurs = isAccepted && !hasOtherCause;
    if (cancelledAt !== null) return { responseKey: null, lapsedKey: null, isUnwanted: isOurs };
    return isOurs
      ? { responseKey, lapsedKey: null, isUnwanted: false }
      : { responseKey: null, lapsedKey: responseKey, isUnwanted: false };
  }

  stop(): void {
    this.#held = null;
    this.#cancelHold();
    this.#end();
  }

  #send({ responseKey, send }: Held): void {
    this.#held = null;
    this.#end();
    this.#request = { responseKey, ticket: send(), isAccepted: false, cancelledAt: null };
    this.#cancelTimeout = this.#connection.environment.scheduler.schedule(() => {
      const request = this.#end();
      if (request?.cancelledAt === null) this.#lapse(responseKey, 'nothing_said');
    }, this.#times.requestTimeoutMs);
  }

  /** OPENAI-LIVE-REQUESTS-2: how long the model may still speak because of another cause. */
  get #causeForMs(): number {
    if (this.#lastCauseAt === null) return 0;
    return this.#lastCauseAt + this.#times.causeMs - this.#connection.environment.clock.now();
  }

  /** How long an earlier, cancelled request may still be answered. */
  get #calledOffForMs(): number {
    const { cancelledAt = null } = this.#request ?? {};
    if (cancelledAt === null) return 0;
    return cancelledAt + this.#times.causeMs - this.#connection.environment.clock.now();
  }

  /** Reports that the request failed: it was cancelled, or the model stayed silent. */
  #lapse(responseKey: string, reason: string): void {
    this.#connection.emit(nothingSaid(this.#connection.environment, responseKey, reason));
  }

  #end(): Request | null {
    const request = this.#request;
    this.#request = null;
    this.#cancelTimeout();
    this.#cancelTimeout = () => {};
    return request;
  }
}

/** Returns the end of a request that failed. */
function nothingSaid(
  { ids }: Environment,
  responseKey: string,
  reason: string,
): Extract<TransportEvent, { type: 'response.ended' }> {
  return {
    type: 'response.ended',
    responseId: ids.next('response'),
    responseKey,
    status: 'cancelled',
    reason,
    audio: [],
  };
}
