// Presents the model's speech as responses. The wire has none: its sound is one continuous track, silent
// between replies, and its transcript comes in fragments without an end.
//
//   silent ──sound or words──▶ speaking ──quiet for long enough──▶ silent
//                                 └──called off──▶ unheard ──quiet──────▲
//
// Owns: where a response begins and ends, its ids, what was handed on of it. Does not: know
// why the model speaks (`requests.ts`).
//
// SPOKEN-RESPONSES-1. A response begins with audible sound or with words, whichever is first, and ends after
//     `silenceMs` of the track without both, or after `stallMs` if the track itself stops.
// SPOKEN-RESPONSES-2. Sound is passed on during a response, including its pauses, and never between
//     responses.
// SPOKEN-RESPONSES-3. No sound of a cancelled response is passed on. It ends with a pause, a shorter one if
//     the user spoke, or after `CANCEL_MS`, so that the session does not wait longer for a model that keeps
//     talking. Speech after the pause is another response.
// SPOKEN-RESPONSES-4. `response.ended` lists the sound up to the last audible frame: a user who heard that
//     has heard all of it.
// SPOKEN-RESPONSES-5. Late words belong to the response during which they were said.

import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import { nothingSaid, type Claim } from './requests.ts';

/** Root mean square of a frame above which it is audible; the track between replies is below 30. */
const AUDIBLE_LEVEL = 65;
/** Shorter than the session's own timeout for a cancelled response. */
const CANCEL_MS = 2_000;
/** The length of the track before the first audible frame that is passed on: words begin softly. */
const ONSET_MS = 40;

export interface SpokenResponsesOptions {
  readonly sampleRateHz: number;
  readonly silenceMs: number;
  readonly stallMs: number;
  /** The pause that ends a cancelled response, once the user has spoken. */
  readonly turnMs: number;
}

export interface SpokenResponsesPorts {
  readonly environment: Environment;
  emit(event: TransportEvent): void;
  emitAudio(frame: AudioFrame): void;
  /** Returns the cause of a response that begins. Called before the response is announced. */
  claim(): Claim;
  /** Reports that a response starts or stops being heard. */
  turned(): void;
  /** Reports that the model has stopped speaking, heard or unheard. */
  fellSilent(): void;
  isUserSpeaking(): boolean;
}

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
  readonly #options: SpokenResponsesOptions;
  readonly #ports: SpokenResponsesPorts;
  #response: Response | null = null;
  /** Whether the model speaks, heard or unheard. */
  #isSpeaking = false;
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

  constructor(options: SpokenResponsesOptions, ports: SpokenResponsesPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** Whether the model speaks, heard or unheard. */
  get isSpeaking(): boolean {
    return this.#isSpeaking;
  }

  get isHeard(): boolean {
    return this.#response !== null && !this.#response.isCancelled;
  }

  /** Handles the next stretch of the track. */
  sound(samples: Int16Array): void {
    if (samples.length === 0) return;
    const durationMs = this.#durationOf(samples);
    const isAudible = levelOf(samples) >= AUDIBLE_LEVEL;
    if (isAudible && !this.#isSpeaking) this.#begin();
    this.#trackMs += durationMs;
    if (isAudible) this.#audibleUntilMs = this.#trackMs;
    if (!this.#isSpeaking) {
      this.#onset = samples.subarray(-(ONSET_MS * this.#options.sampleRateHz) / 1000);
      return;
    }
    this.#quietMs = isAudible ? 0 : this.#quietMs + durationMs;
    this.#handOn(samples, isAudible);
    if (this.#quietMs >= this.#pauseMs) this.#end();
  }

  /** Handles a fragment of the transcript; `startMs` is its position on the track. */
  words(delta: string, startMs: number): void {
    if (delta === '') return;
    if (!this.#isSpeaking && startMs < this.#audibleUntilMs) {
      this.#lateWords(delta);
      return;
    }
    if (!this.#isSpeaking) this.#begin();
    this.#quietMs = 0;
    this.#lastAt = this.#ports.environment.clock.now();
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
    const { environment, isUserSpeaking, turned } = this.#ports;
    this.#hasUserSpoken = isUserSpeaking();
    this.#cancelPatience = environment.scheduler.schedule(() => this.#finish(), CANCEL_MS);
    turned();
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
    const { silenceMs, turnMs } = this.#options;
    return !this.isHeard && this.#hasUserSpoken ? turnMs : silenceMs;
  }

  #begin(): void {
    const { environment, claim, emit } = this.#ports;
    const { responseKey, lapsedKey, isUnwanted } = claim();
    const responseId = environment.ids.next('response');
    if (lapsedKey !== null) emit(nothingSaid(environment, lapsedKey, 'uncertain'));
    this.#isSpeaking = true;
    this.#hasUserSpoken = false;
    this.#quietMs = 0;
    this.#lastAt = environment.clock.now();
    this.#watchStall(this.#options.stallMs);
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
    this.#ports.turned();
    if (onset) this.#handOn(onset.slice(), false);
  }

  #handOn(samples: Int16Array, isAudible: boolean): void {
    this.#lastAt = this.#ports.environment.clock.now();
    const response = this.#response;
    if (!response || response.isCancelled) return;
    response.sentMs += this.#durationOf(samples);
    if (isAudible) response.audibleMs = response.sentMs;
    const { responseId, itemId } = response;
    const { sampleRateHz } = this.#options;
    this.#ports.emitAudio({ samples, sampleRateHz, itemId, responseId });
  }

  #end(): void {
    this.#isSpeaking = false;
    this.#cancelStall();
    this.#finish();
    this.#ports.fellSilent();
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
    this.#ports.emit({
      type: 'response.ended',
      responseId,
      responseKey,
      status: statusOf(response),
      reason: null,
      audio: audibleMs > 0 ? [{ itemId, durationMs: audibleMs }] : [],
    });
    this.#ports.turned();
  }

  #lateWords(delta: string): void {
    const last = this.#last;
    if (!last || last.isCancelled) return;
    last.text += delta;
    this.#transcribed(last, last.text, true);
  }

  #transcribed({ itemId, responseId }: Response, text: string, final: boolean): void {
    this.#ports.emit({ type: 'assistant.transcribed', itemId, responseId, text, final });
  }

  #watchStall(delayMs: number): void {
    const { clock, scheduler } = this.#ports.environment;
    this.#cancelStall = scheduler.schedule(() => {
      const leftMs = this.#lastAt + this.#options.stallMs - clock.now();
      if (leftMs > 0) this.#watchStall(leftMs);
      else this.#end();
    }, delayMs);
  }

  #durationOf(samples: Int16Array): number {
    return (samples.length * 1000) / this.#options.sampleRateHz;
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
