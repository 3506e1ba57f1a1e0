// Represents the model's speech as responses. The protocol has no responses. Its audio is one continuous track that is
// silent between replies, and its transcript arrives in fragments without a marker for the end.
//
//   silent ──audio or words──▶ speaking ──quiet for long enough──▶ silent
//                                 └──cancelled───▶ unheard ──quiet──────▲
//
// Owns:     a response's start and end, its ids, its forwarded part, and its request. It does not infer the user's
//           utterances (`heard-utterances.ts`).
//
// SPOKEN-RESPONSES-1. A response starts with the first audible audio or word. It ends after `responseSilenceMs` of the
//     track without either of them, or after `responseStallMs` if the track itself stops.
// SPOKEN-RESPONSES-2. Audio is forwarded during a response, including its pauses, but never between responses.
// SPOKEN-RESPONSES-3. No audio of a cancelled response is forwarded. The response ends at a pause (a shorter one if the
//     user spoke) or after `CANCEL_MS`, so that the session does not wait for a model that keeps talking. Speech after
//     the pause is a new response.
// SPOKEN-RESPONSES-4. `response.ended` lists the audio up to the last audible frame. A user who has heard that frame
//     has heard the whole response.
// SPOKEN-RESPONSES-5. Late words belong to the response that was playing when they were spoken.
// SPOKEN-RESPONSES-6. The model hears the user while it speaks, and may stop without reporting this. If the user spoke
//     during a response and it ends mid-sentence, the response counts as cancelled, because the user has not heard all
//     of it.
//
// OPENAI-LIVE-REQUESTS-1. A response belongs to a request only if it started after the server accepted the request's
//     text, and if it cannot have any other cause. In other words, since then the user has said nothing, the model has
//     not delegated, and no other text to say has been sent.
// OPENAI-LIVE-REQUESTS-2. Another cause expires after the next response or after `causeMs`.
// OPENAI-LIVE-REQUESTS-3. Each request ends once: as answered, lapsed or rejected.
// OPENAI-LIVE-REQUESTS-4. A request is sent when the model is silent and has no other reason to speak. Until then, the
//     request is held. A held request can be withdrawn and repeated without its text being spoken twice.
// OPENAI-LIVE-REQUESTS-5. If the request for a text has lapsed, or the model first spoke about something else, the text
//     is still spoken only once. For the next `causeMs` of silence, speech without another cause is treated as that
//     text. Such speech belongs to the request that repeats the text, even if that request comes up to `ASKED_MS`
//     later. The request is then not sent. If there is no such request, the speech is dropped. If a text was sent
//     twice, the second copy of the speech is dropped. The timeout of a request runs only while both sides are silent.

import type { Environment } from '../../actors/ports/environment.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import { endsSentence } from '../../values/sentences.ts';
import type { WireConnection } from '../socket/wire.ts';
import type { HeardUtterances } from './heard-utterances.ts';
import type { OpenaiLiveSettings, TurnTimes } from './options.ts';

/** The root mean square above which a frame is audible. Between replies, the track is below 30. */
const AUDIBLE_LEVEL = 65;
/** The maximum wait for a cancelled response to end. It is shorter than the session's own timeout. */
const CANCEL_MS = 2_000;
/** The maximum time within which the session repeats a request. */
const ASKED_MS = 2_000;
/** The amount of audio before the first audible frame that is also forwarded, because words start quietly. */
const ONSET_MS = 40;

type Status = Extract<TransportEvent, { type: 'response.ended' }>['status'];

interface Response {
  readonly responseId: string;
  readonly itemId: string;
  responseKey: string | null;
  /** Reports that are held until it is known which request was answered; null if reports are made immediately. */
  held: (() => void)[] | null;
  text: string;
  sentMs: number;
  audibleMs: number;
  /** Whether the server has reported an error during the response. */
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
  /** The position on the track after the last audible audio. */
  #audibleUntilMs = 0;
  #quietMs = 0;
  /** The most recent part of the track during silence. */
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

  /** Whether the model is speaking, even if the user does not hear it. */
  get isSpeaking(): boolean {
    return this.#requests.isModelSpeaking;
  }

  get isHeard(): boolean {
    return this.#response !== null && !this.#response.isCancelled && this.#response.held === null;
  }

  /** Handles the next part of the track. */
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

  /** Handles a fragment of the transcript. `startMs` is its position on the track. */
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
    const words = spaced(delta, response.text);
    response.text += words;
    this.#transcribed(response, words, false);
  }

  /** SPOKEN-RESPONSES-3. @returns whether a response was in progress */
  cancel(): boolean {
    const response = this.#response;
    if (!response || response.held) return false;
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

  /** Records an error. The current speech may therefore be incomplete. */
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
    const { responseKey, lapsedKey, isUnwanted } = this.#requests.claim((key) => this.#isFor(key));
    const responseId = environment.ids.next('response');
    if (lapsedKey !== null) emit(nothingSaid(environment, lapsedKey, 'uncertain'));
    this.#hasUserSpoken = false;
    this.#quietMs = 0;
    this.#lastAt = environment.clock.now();
    this.#watchStall(this.#times.responseStallMs);
    const onset = this.#onset;
    this.#onset = null;
    if (isUnwanted === true) {
      this.#last = null;
      return;
    }
    const response: Response = {
      responseId,
      itemId: environment.ids.next('item'),
      responseKey,
      held: isUnwanted === 'unless_asked' ? [] : null,
      text: '',
      sentMs: 0,
      audibleMs: 0,
      isTroubled: false,
      isCancelled: false,
    };
    this.#response = response;
    this.#report(response, () => this.#started(response));
    if (onset) this.#handOn(onset.slice(), false);
    const patience = (): void => {
      if (this.#response === response && response.held) this.#forget();
    };
    if (response.held) this.#cancelPatience = environment.scheduler.schedule(patience, ASKED_MS);
  }

  #started({ responseId, responseKey }: Response): void {
    this.#connection.emit({ type: 'response.started', responseId, responseKey });
    this.#utterances.modelHeard(this.isHeard);
  }

  /** OPENAI-LIVE-REQUESTS-5: attributes the current speech to this request. */
  #isFor(key: string): void {
    const response = this.#response;
    const held = response?.held;
    if (!response || !held) return;
    this.#cancelPatience();
    response.responseKey = key;
    response.held = null;
    for (const report of held) report();
  }

  /** Drops the current speech, because no request has been made for it. */
  #forget(): void {
    this.#cancelPatience();
    this.#response = null;
    this.#last = null;
    this.#requests.notSaid();
  }

  #report({ held }: Response, report: () => void): void {
    if (held) held.push(report);
    else report();
  }

  #handOn(samples: Int16Array, isAudible: boolean): void {
    this.#lastAt = this.#connection.environment.clock.now();
    const response = this.#response;
    if (!response || response.isCancelled) return;
    response.sentMs += this.#durationOf(samples);
    if (isAudible) response.audibleMs = response.sentMs;
    const { responseId, itemId } = response;
    const sampleRateHz = this.#sampleRateHz;
    this.#report(response, () =>
      this.#connection.emitAudio({ samples, sampleRateHz, itemId, responseId }),
    );
  }

  #end(): void {
    this.#cancelStall();
    this.#finish();
    this.#requests.modelFellSilent();
  }

  /** Ends the response even if the model keeps speaking. */
  #finish(): void {
    const response = this.#response;
    if (!response) return;
    if (response.held) return this.#forget();
    this.#cancelPatience();
    this.#response = null;
    this.#last = response;
    const { responseId, responseKey, itemId, text, audibleMs } = response;
    if (text !== '') this.#transcribed(response, text, true);
    this.#connection.emit({
      type: 'response.ended',
      responseId,
      responseKey,
      status: this.#statusOf(response),
      reason: null,
      audio: audibleMs > 0 ? [{ itemId, durationMs: audibleMs }] : [],
    });
    this.#utterances.modelHeard(this.isHeard);
  }

  #statusOf({ isCancelled, isTroubled, text }: Response): Status {
    const isBrokenOff = this.#hasUserSpoken && text !== '' && !endsSentence(text);
    if (isCancelled || isBrokenOff) return 'cancelled';
    return isTroubled ? 'incomplete' : 'completed';
  }

  #lateWords(delta: string): void {
    const last = this.#last;
    if (!last || last.isCancelled) return;
    last.text += spaced(delta, last.text);
    this.#transcribed(last, last.text, true);
  }

  #transcribed(response: Response, text: string, final: boolean): void {
    const { itemId, responseId } = response;
    this.#report(response, () =>
      this.#connection.emit({ type: 'assistant.transcribed', itemId, responseId, text, final }),
    );
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

/** Returns the root mean square of the samples; full scale is 32,767. */
function levelOf(samples: Int16Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return Math.sqrt(sum / samples.length);
}

/** The reason for which the model is speaking. */
interface Claim {
  /** The request that the speech belongs to; null if this is uncertain. */
  readonly responseKey: string | null;
  /** The request that has failed because it is uncertain which speech belongs to it. */
  readonly lapsedKey: string | null;
  /**
   * Whether the speech can only belong to a cancelled request and must be silenced. `unless_asked`: whether the speech
   * may belong to a request that is about to repeat a lapsed one.
   */
  readonly isUnwanted: boolean | 'unless_asked';
}

interface Request {
  readonly responseKey: string;
  /** The content of the text, which identifies a later request for the same content. */
  readonly subject: string | null;
  readonly ticket: string;
  /** Whether the text has been sent before, so that the model may say it once more. */
  readonly isRepeated: boolean;
  isAccepted: boolean;
  /**
   * The time at which the request was cancelled, or was answered while a copy of its text remained; null while it is in
   * progress.
   */
  cancelledAt: number | null;
}

/** OPENAI-LIVE-REQUESTS-4. `send`: sends the text to the model and returns the text's ticket. */
interface Held {
  readonly responseKey: string;
  readonly subject: string | null;
  readonly send: () => string;
}

/** OPENAI-LIVE-REQUESTS-5. A text that the model has not spoken although its request has ended. */
interface Unsaid {
  readonly subject: string;
  /** The time from which the model could have spoken the text. */
  readonly since: number;
}

const OTHER: Claim = { responseKey: null, lapsedKey: null, isUnwanted: false };

/**
 * Determines which response belongs to a request. The server never reports this. The model reads an appended text and
 * speaks when it chooses. It also speaks to the user and about other tasks.
 *
 *   asked ─▶ held ──no other cause to speak──▶ sent ──accepted──▶ may be said
 *              └── cancelled: never sent        │                   │
 *     speech without other cause: answered ◀────┼───────────────────┤
 *     other speech, or none in time: lapsed ◀───┼───────────────────┤
 *     cancelled: lapsed, speech dropped ◀───────┴───────────────────┘
 *
 *   lapsed and requested again: its speech within `causeMs` of silence answers; otherwise it is sent again
 *
 * Owns: the one current request, and the other causes for which the model may speak. It does not send texts
 * or handle audio.
 */
export class Requests {
  readonly #connection: WireConnection;
  readonly #times: Pick<TurnTimes, 'requestTimeoutMs' | 'causeMs'>;
  #isModelSpeaking = false;
  #held: Held | null = null;
  #cancelHold: () => void = () => {};
  #request: Request | null = null;
  #unsaid: Unsaid | null = null;
  /** The subject of the current speech if no request for it has been made yet. */
  #said: { readonly subject: string; readonly isFor: (responseKey: string) => void } | null = null;
  #lastCauseAt: number | null = null;
  #cancelTimeout: () => void = () => {};

  constructor(connection: WireConnection, times: Pick<TurnTimes, 'requestTimeoutMs' | 'causeMs'>) {
    this.#connection = connection;
    this.#times = times;
  }

  /** Whether the model is speaking, even if the user does not hear it. */
  get isModelSpeaking(): boolean {
    return this.#isModelSpeaking;
  }

  /**
   * Requests a response. `send`: sends the request's text to the model, now or later (OPENAI-LIVE-REQUESTS-4). Requests
   * for the same content have the same `subject`.
   */
  ask(responseKey: string, send: () => string, subject: string | null = null): void {
    const said = this.#said;
    if (said !== null && said.subject === subject) {
      this.#said = null;
      said.isFor(responseKey);
      return;
    }
    this.#held = { responseKey, subject, send };
    this.reconsider();
  }

  /** Sends the held request if the model is silent and has no other reason to speak. */
  reconsider(): void {
    this.#cancelHold();
    this.#cancelHold = () => {};
    if (!this.#held || this.#isModelSpeaking) return;
    const waitMs = Math.max(this.#causeForMs, this.#calledOffForMs, this.#unsaidForMs);
    if (waitMs > 0)
      this.#cancelHold = this.#connection.environment.scheduler.schedule(
        () => this.reconsider(),
        waitMs,
      );
    else this.#send(this.#held);
  }

  /** Withdraws a request that has not been sent. If it is null, withdraws any held request. */
  withdraw(responseKey: string | null): void {
    const held = this.#held;
    if (!held || (responseKey !== null && held.responseKey !== responseKey)) return;
    this.#held = null;
    this.#cancelHold();
    this.#lapse(held.responseKey, 'cancelled');
  }

  /** Records that the server has accepted the text with this ticket. */
  accepted(ticket: string): void {
    if (this.#request?.ticket === ticket) this.#request.isAccepted = true;
  }

  /** Records that the server has rejected the text with this ticket. @returns the key of the text's request */
  refused(ticket: string): string | null {
    const request = this.#request;
    if (request?.ticket !== ticket) return null;
    this.#end();
    return request.cancelledAt === null ? request.responseKey : null;
  }

  /** Cancels the request. A text that has been sent cannot be withdrawn. */
  cancel(): void {
    const request = this.#request;
    if (!request || request.cancelledAt !== null) return;
    request.cancelledAt = this.#now;
    this.#lapse(request.responseKey, 'cancelled');
  }

  /** Records another cause that makes the model speak before it speaks the requested text. */
  otherCause(): void {
    this.#lastCauseAt = this.#now;
    if (this.#request) this.#watch(this.#request);
  }

  /**
   * Returns the cause of the speech that is starting.
   * @param isFor Called if a later request turns out to be the cause (`unless_asked`).
   */
  claim(isFor: (responseKey: string) => void): Claim {
    this.#isModelSpeaking = true;
    const request = this.#end();
    const hasOtherCause = this.#causeForMs > 0;
    this.#lastCauseAt = null;
    if (!request) return hasOtherCause ? OTHER : this.#claimUnsaid(isFor);
    const { responseKey, subject, isAccepted, cancelledAt } = request;
    const isSaid = isAccepted && !hasOtherCause;
    if (!isSaid && subject !== null && isAccepted) this.#unsaid = { subject, since: this.#now };
    if (cancelledAt !== null) {
      if (!isSaid) return OTHER;
      const isWanted = !request.isRepeated && subject !== null && subject === this.#held?.subject;
      return isWanted ? this.#claimHeld() : { ...OTHER, isUnwanted: true };
    }
    if (!isSaid) return { ...OTHER, lapsedKey: responseKey };
    // The model may still speak the other copy, which is then dropped.
    if (request.isRepeated) this.#request = { ...request, cancelledAt: this.#now };
    return { ...OTHER, responseKey };
  }

  /** Handles the end of the model's speech. The timeouts then continue. */
  modelFellSilent(): void {
    this.#isModelSpeaking = false;
    if (this.#unsaid) this.#unsaid = { ...this.#unsaid, since: this.#now };
    const request = this.#request;
    if (request && request.cancelledAt !== null) {
      request.cancelledAt = this.#now;
      this.#watch(request);
    }
    this.reconsider();
  }

  stop(): void {
    this.#held = null;
    this.#unsaid = null;
    this.#said = null;
    this.#cancelHold();
    this.#end();
  }

  /** OPENAI-LIVE-REQUESTS-5 */
  #claimUnsaid(isFor: (responseKey: string) => void): Claim {
    const unsaid = this.#unsaid;
    if (!unsaid || this.#unsaidForMs <= 0) return OTHER;
    this.#unsaid = null;
    if (unsaid.subject === this.#held?.subject) return this.#claimHeld();
    if (this.#held) return { ...OTHER, isUnwanted: true };
    this.#said = { subject: unsaid.subject, isFor };
    return { ...OTHER, isUnwanted: 'unless_asked' };
  }

  /** Records that speech without a request was dropped. */
  notSaid(): void {
    this.#said = null;
  }

  /** Attributes speech about the held request's subject to that request, which then need not be sent. */
  #claimHeld(): Claim {
    const responseKey = this.#held?.responseKey ?? null;
    this.#held = null;
    this.#cancelHold();
    return { ...OTHER, responseKey };
  }

  #send({ responseKey, subject, send }: Held): void {
    const isRepeated = subject !== null && this.#unsaid?.subject === subject;
    this.#held = null;
    this.#unsaid = null;
    this.#end();
    // The model already has a repeated text. Its next speech is that text, whichever copy causes it.
    this.#request = {
      responseKey,
      subject,
      ticket: send(),
      isRepeated,
      isAccepted: isRepeated,
      cancelledAt: null,
    };
    this.#watch(this.#request);
  }

  /** Starts the timeout for this request's speech. */
  #watch({ responseKey, subject }: Request): void {
    this.#cancelTimeout();
    this.#cancelTimeout = this.#connection.environment.scheduler.schedule(() => {
      const request = this.#end();
      if (request?.cancelledAt !== null) return;
      if (subject !== null) this.#unsaid = { subject, since: this.#now };
      this.#lapse(responseKey, 'nothing_said');
    }, this.#times.requestTimeoutMs);
  }

  /** OPENAI-LIVE-REQUESTS-2: the time in which another cause may still make the model speak. */
  get #causeForMs(): number {
    return this.#leftOf(this.#lastCauseAt);
  }

  /** The time in which the model may still respond to a cancelled request. */
  get #calledOffForMs(): number {
    return this.#leftOf(this.#request?.cancelledAt ?? null);
  }

  /** The time in which the model may still speak the text of a lapsed request. */
  get #unsaidForMs(): number {
    return this.#leftOf(this.#unsaid?.since ?? null);
  }

  #leftOf(since: number | null): number {
    return since === null ? 0 : since + this.#times.causeMs - this.#now;
  }

  get #now(): number {
    return this.#connection.environment.clock.now();
  }

  /** Reports that the request failed because it was cancelled or the model stayed silent. */
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

/** Returns the report on the end of a failed request. */
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

/** Separates two turns of the model, whose texts would otherwise be joined without a space. */
const spaced = (delta: string, before: string): string =>
  /\p{L}{2}[.!?]$/u.test(before) && /^\p{Lu}/u.test(delta) ? ` ${delta}` : delta;
