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
// SPOKEN-RESPONSES-6. The model hears the user while it speaks, and may break off without a sign. Speech that
//     ends in mid-sentence, after the user spoke into it, is cancelled: nobody has heard all of it.
//
// OPENAI-LIVE-REQUESTS-1. A response answers the request only if it began after the server took the text in,
//     and has no other possible cause: since the text was sent the user said nothing, there was no
//     delegation, and no other text to be said.
// OPENAI-LIVE-REQUESTS-2. Another cause is forgotten after the response that follows it, or after `causeMs`.
// OPENAI-LIVE-REQUESTS-3. Each request ends once: answered, lapsed, or refused.
// OPENAI-LIVE-REQUESTS-4. A request is sent when the model is silent and has no other cause to speak: while
//     it talks, heard or not, or may be about to, the request is held. A request that was never sent is never
//     spoken: it can be withdrawn and repeated without being said twice.
// OPENAI-LIVE-REQUESTS-5. A text is not told twice because its request lapsed, or because the model spoke to
//     something else first: for `causeMs` of silence afterwards, speech without another cause is that text. It
//     answers the request that repeats it, which is then not sent, also if that comes within `ASKED_MS`; without
//     one it is dropped. Of a text that was sent twice the second copy is dropped. The clock of a request runs
//     while both parties are silent.

import type { Environment } from '../../actors/ports/environment.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import { endsSentence } from '../../values/sentences.ts';
import type { WireConnection } from '../socket/wire.ts';
import type { HeardUtterances } from './heard-utterances.ts';
import type { OpenaiLiveSettings, TurnTimes } from './options.ts';

/** Root mean square of a frame above which it is audible; the track between replies is below 30. */
const AUDIBLE_LEVEL = 65;
/** Shorter than the session's own timeout for a cancelled response. */
const CANCEL_MS = 2_000;
/** The session repeats a request within this time, if it does. */
const ASKED_MS = 2_000;
/** The length of the track before the first audible frame that is passed on: words begin softly. */
const ONSET_MS = 40;

type Status = Extract<TransportEvent, { type: 'response.ended' }>['status'];

interface Response {
  readonly responseId: string;
  readonly itemId: string;
  responseKey: string | null;
  /** What is to be reported once it is known which request this answers; null: it is reported at once. */
  held: (() => void)[] | null;
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
    return this.#response !== null && !this.#response.isCancelled && this.#response.held === null;
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
    const words = spaced(delta, response.text);
    response.text += words;
    this.#transcribed(response, words, false);
  }

  /** SPOKEN-RESPONSES-3. @returns whether there was anything to call off */
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

  /** OPENAI-LIVE-REQUESTS-5: the speech under way answers this request. */
  #isFor(key: string): void {
    const response = this.#response;
    const held = response?.held;
    if (!response || !held) return;
    this.#cancelPatience();
    response.responseKey = key;
    response.held = null;
    for (const report of held) report();
  }

  /** Nobody has asked for the speech under way: it is not heard. */
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

  /** Ends the response, even if the model keeps speaking. */
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
  /**
   * It can only answer a cancelled request, and is not to be heard. `unless_asked`: it answers the request that
   * is about to repeat a lapsed one.
   */
  readonly isUnwanted: boolean | 'unless_asked';
}

interface Request {
  readonly responseKey: string;
  /** What the text is about, if a later request may be for the same. */
  readonly subject: string | null;
  readonly ticket: string;
  /** The model may say the same once more: it had been sent the text before. */
  readonly isRepeated: boolean;
  isAccepted: boolean;
  /** When it was cancelled, or said while a copy of its text is left; null if it is under way. */
  cancelledAt: number | null;
}

/** OPENAI-LIVE-REQUESTS-4. `send` sends the text to the model, and returns its ticket. */
interface Held {
  readonly responseKey: string;
  readonly subject: string | null;
  readonly send: () => string;
}

/** OPENAI-LIVE-REQUESTS-5. A text that the model has not said, although its request is over. */
interface Unsaid {
  readonly subject: string;
  /** Since when the model could have said it, and has not. */
  readonly since: number;
}

const OTHER: Claim = { responseKey: null, lapsedKey: null, isUnwanted: false };

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
 *   lapsed, and asked for again: what is said of it within `causeMs` of silence is ours; then it is sent again
 *
 * Owns: the one request that is under way, and what else may make the model speak. Does not:
 * say or hear anything.
 */
export class Requests {
  readonly #connection: WireConnection;
  readonly #times: Pick<TurnTimes, 'requestTimeoutMs' | 'causeMs'>;
  #isModelSpeaking = false;
  #held: Held | null = null;
  #cancelHold: () => void = () => {};
  #request: Request | null = null;
  #unsaid: Unsaid | null = null;
  /** The subject of the speech under way, for which no request is there yet. */
  #said: { readonly subject: string; readonly isFor: (responseKey: string) => void } | null = null;
  #lastCauseAt: number | null = null;
  #cancelTimeout: () => void = () => {};

  constructor(connection: WireConnection, times: Pick<TurnTimes, 'requestTimeoutMs' | 'causeMs'>) {
    this.#connection = connection;
    this.#times = times;
  }

  /** Whether the model speaks, heard or unheard. */
  get isModelSpeaking(): boolean {
    return this.#isModelSpeaking;
  }

  /**
   * Requests a response by the text that `send` sends to the model, now or later (OPENAI-LIVE-REQUESTS-4).
   * Requests for the same thing have the same `subject`.
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

  /** Sends the held request if the model is silent and has no other cause to speak. */
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
    request.cancelledAt = this.#now;
    this.#lapse(request.responseKey, 'cancelled');
  }

  /** Records another cause for the model to speak: what it was asked for comes after that. */
  otherCause(): void {
    this.#lastCauseAt = this.#now;
    if (this.#request) this.#watch(this.#request);
  }

  /**
   * Returns the cause of the speech that begins.
   * @param isFor is called if a later request turns out to be the cause (`unless_asked`)
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
    // The copy that is left may still be said: that is dropped.
    if (request.isRepeated) this.#request = { ...request, cancelledAt: this.#now };
    return { ...OTHER, responseKey };
  }

  /** Handles the end of the model's speech: the clocks run while it is silent. */
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

  /** The speech that nobody had asked for was not heard. */
  notSaid(): void {
    this.#said = null;
  }

  /** The held request need not be sent: the model says what it is about. */
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
    // The model knows a repeated text already: what it says now is that text, whichever copy made it.
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

  /** Waits for the speech to this request, from now on. */
  #watch({ responseKey, subject }: Request): void {
    this.#cancelTimeout();
    this.#cancelTimeout = this.#connection.environment.scheduler.schedule(() => {
      const request = this.#end();
      if (request?.cancelledAt !== null) return;
      if (subject !== null) this.#unsaid = { subject, since: this.#now };
      this.#lapse(responseKey, 'nothing_said');
    }, this.#times.requestTimeoutMs);
  }

  /** OPENAI-LIVE-REQUESTS-2: how long the model may still speak because of another cause. */
  get #causeForMs(): number {
    return this.#leftOf(this.#lastCauseAt);
  }

  /** How long an earlier, cancelled request may still be answered. */
  get #calledOffForMs(): number {
    return this.#leftOf(this.#request?.cancelledAt ?? null);
  }

  /** How long a text whose request has lapsed may still be said. */
  get #unsaidForMs(): number {
    return this.#leftOf(this.#unsaid?.since ?? null);
  }

  #leftOf(since: number | null): number {
    return since === null ? 0 : since + this.#times.causeMs - this.#now;
  }

  get #now(): number {
    return this.#connection.environment.clock.now();
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

/** Two turns of the model may follow each other without a pause, and without a space between their words. */
const spaced = (delta: string, before: string): string =>
  /\p{L}{2}[.!?]$/u.test(before) && /^\p{Lu}/u.test(delta) ? ` ${delta}` : delta;
