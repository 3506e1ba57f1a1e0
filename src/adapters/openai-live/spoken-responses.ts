// What the model says, as responses. The wire knows of none: its sound is one track that
// goes on for as long as the session, silent between replies, and its transcript comes in
// fragments without an end.
//
//   silent ──sound or words──▶ speaking ──quiet for long enough──▶ silent
//                                 └──called off──▶ unheard ──quiet──────▲
//
// Owns: where a response begins and ends, its ids, what was handed on of it. Does not: know
// why the model speaks (`requests.ts`).
//
// SPOKEN-RESPONSES-1. A response begins with audible sound or with words, whichever is first, and ends when
//     neither came for `silenceMs` of the track, or for `stallMs` if the track itself stops.
// SPOKEN-RESPONSES-2. Sound is handed on while a response lasts, pauses included, and never between them.
// SPOKEN-RESPONSES-3. Of a response that was called off nothing is handed on any more. It ends with a pause, a
//     shorter one if the user spoke, or after `CANCEL_MS`: nobody waits longer for a model that
//     talks to itself. What it says after the pause is another response.
// SPOKEN-RESPONSES-4. `response.ended` lists the sound up to the last that was audible: who heard that has
//     heard it all.
// SPOKEN-RESPONSES-5. Words that come late belong to the response that they were said in.

import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { TransportEvent } from '../../voice/connection/transport.ts';
import { nothingSaid, type Claim } from './requests.ts';

/** Root mean square of a frame above which it is audible; the track between replies has below 30. */
const AUDIBLE_LEVEL = 65;
/** Less than a session waits for the end of what it called off. */
const CANCEL_MS = 2_000;
/** So much of the track before the first audible frame is handed on: words begin softly. */
const ONSET_MS = 40;

export interface SpokenResponsesOptions {
  readonly sampleRateHz: number;
  readonly silenceMs: number;
  readonly stallMs: number;
  /** The pause that ends what was called off, once the user has spoken. */
  readonly turnMs: number;
}

export interface SpokenResponsesPorts {
  readonly environment: Environment;
  emit(event: TransportEvent): void;
  emitAudio(frame: AudioFrame): void;
  /** The model begins to speak: why? Called before the response is announced. */
  claim(): Claim;
  /** A response is heard from now on, or is no more. */
  turned(): void;
  /** The model speaks no more, heard or unheard. */
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
  /** The server said that something went wrong meanwhile. */
  isTroubled: boolean;
  isCancelled: boolean;
}

export class SpokenResponses {
  readonly #options: SpokenResponsesOptions;
  readonly #ports: SpokenResponsesPorts;
  #response: Response | null = null;
  /** The model speaks, heard or unheard. */
  #isSpeaking = false;
  #hasUserSpoken = false;
  #last: Response | null = null;
  #trackMs = 0;
  /** Where on the track the model was last audible. */
  #audibleUntilMs = 0;
  #quietMs = 0;
  /** The end of the track, while it is silent. */
  #onset: Int16Array | null = null;
  #lastAt = 0;
  #cancelStall: () => void = () => {};
  #cancelPatience: () => void = () => {};

  constructor(options: SpokenResponsesOptions, ports: SpokenResponsesPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** The model speaks, heard or unheard. */
  get isSpeaking(): boolean {
    return this.#isSpeaking;
  }

  get isHeard(): boolean {
    return this.#response !== null && !this.#response.isCancelled;
  }

  /** The next stretch of the track. */
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

  /** A fragment of the transcript; `startMs`: where on the track it was said. */
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

  /** Something went wrong: what is being said may be incomplete. */
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

  /** The response is over, whether the model speaks on or not. */
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

/** Root mean square, of full scale 32,767. */
function levelOf(samples: Int16Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return Math.sqrt(sum / samples.length);
}
