// The filler: a short phrase while the user waits ("One moment."), so that silence is not mistaken for a lost
// connection.
//
//   nobody waits ──▶ waiting ── afterMs ──▶ asked for ──▶ sounding ──▶ said: nothing more in this wait
//        ▲              │                      │             └── the user speaks ──▶ silent, at once
//        └──────────────┴── the answer is here ┘
//
// Owns:     when the filler is said, its text and its sound.
// Does not: know who is working or speaking (turns).
//
// Invariants
//   FILLER-1. The filler is said once per wait, and only while the user waits: not while a question has the
//        floor, and not when a delivery is about to be spoken.
//   FILLER-2. The filler is not speech: it creates no item, no response of the session and no delivery. It is
//        never heard, answered, interrupted or remembered, and it does not take the floor. The transcript
//        marks it as a filler.
//   FILLER-3. The user's voice ends it at once.
//   FILLER-4. The filler never delays the answer, except by the rest of a phrase that is already sounding: a
//        phrase that is not sounding when the answer comes is cancelled, no sound of it follows the model's
//        first sound, and the session does not wait for a model that never ends it.
//   FILLER-5. The model is asked for a filler only while it is asked for nothing else (RESPONSES-1).

import type { Environment } from '../../actors/ports/environment.ts';
import { createResampler, type Resampler } from '../audio/resampler.ts';
import { frameDurationMs, type AudioFrame } from '../audio/audio-frame.ts';
import { phrasesIn, type FillerSettings } from './filler-options.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import { soundOf, type Voice } from '../speech/voice.ts';
import type { TransportCommand, TransportEvent } from '../connection/transport.ts';

const KEY = 'filler:';
/** The session waits no longer than this for the model to say a filler. */
const PATIENCE_MS = 5000;
/** A cancelled filler reports its end within this time, or counts as ended. */
const CANCEL_GRACE_MS = 1000;

/** A filler as the transcript records it. */
export interface Filled {
  readonly id: string;
  readonly text: string;
  readonly final: boolean;
  readonly at: number;
  readonly interrupted: boolean;
}

export interface FillerPorts {
  /** Returns whether the user waits for the lead agent while no one speaks. */
  isWaitedFor(): boolean;
  /** Returns whether the model is being heard, which ends the wait. */
  isHeard(): boolean;
  /** Returns whether the user is speaking or no client is connected. */
  mustBeSilent(): boolean;
  /** Returns whether a question is open or a delivery is due. */
  isDue(): boolean;
  /** Returns the tag of the spoken language, such as `en-GB`. */
  language(): string;
  send(command: TransportCommand): void;
  sounds(frame: AudioFrame): void;
  /** Drops the filler sound that the client has not played. */
  ends(): void;
  wrote(item: Filled): void;
  /** Reports that the model may be free for another request. */
  settled(): void;
  report(error: unknown): void;
}

/** One filler, until it was played or cancelled. */
interface Saying {
  readonly id: string;
  readonly text: string;
  readonly at: number;
  readonly abort: AbortController;
  written: string;
  /** When its sound will have been played, in milliseconds since 1970; null while it has no sound. */
  endsAt: number | null;
  /** True once all of its sound has arrived. */
  isMade: boolean;
}

export class Filler {
  readonly #settings: FillerSettings;
  readonly #ports: FillerPorts;
  readonly #environment: Environment;
  readonly #sampleRateHz: number;
  /** The responses that the model makes for fillers. */
  readonly #responses = new RecentIds();
  #cancelWait: (() => void) | null = null;
  #saying: Saying | null = null;
  #cancelEnd: (() => void) | null = null;
  /** The key of the request that the model has not finished yet. */
  #askedKey: string | null = null;
  #isCalledOff = false;
  #cancelPatience: (() => void) | null = null;
  #wasSaid = false;
  #count = 0;

  /** @param sampleRateHz The rate of the model's sound. */
  constructor(
    environment: Environment,
    settings: FillerSettings,
    sampleRateHz: number,
    ports: FillerPorts,
  ) {
    this.#environment = environment;
    this.#settings = settings;
    this.#sampleRateHz = sampleRateHz;
    this.#ports = ports;
  }

  /** Whether a voice, and not the model, says the filler. */
  get hasVoice(): boolean {
    return this.#settings.voice !== null;
  }

  /** Whether the model is asked for a filler and cannot be asked for anything else. */
  get isAsked(): boolean {
    return this.#askedKey !== null;
  }

  get isSounding(): boolean {
    const { endsAt = null } = this.#saying ?? {};
    return endsAt !== null && endsAt > this.#environment.clock.now();
  }

  /** Reconsiders the state after a change: starts or ends a wait. */
  look(): void {
    const { isWaitedFor, isHeard, mustBeSilent } = this.#ports;
    if (mustBeSilent()) {
      this.stop();
      this.#wasSaid = false;
      return;
    }
    if (isHeard()) this.#wasSaid = false;
    if (!isWaitedFor()) {
      this.#stopWaiting();
      this.#noMore();
    } else if (!this.#wasSaid && this.#saying === null && !this.isAsked) this.#wait();
  }

  /** Stops the filler at once. */
  stop(): void {
    this.#stopWaiting();
    const saying = this.#saying;
    const wasSounding = this.isSounding;
    this.#callOff();
    if (!saying || !wasSounding) return;
    this.#ports.ends();
    this.#write(saying, true, true);
  }

  /** Handles the loss of the connection. A filler that is sounding plays on. */
  lost(): void {
    this.#answered();
    const saying = this.#saying;
    if (saying === null || this.hasVoice) return;
    if (this.isSounding) this.#made(saying);
    else this.#saying = null;
  }

  /**
   * Handles the events of the responses that the model makes for fillers. Returns whether the event was one.
   */
  handle(event: TransportEvent): boolean {
    const { type } = event;
    if (type === 'response.started' || type === 'response.ended') {
      const { responseId, responseKey } = event;
      if (!responseKey?.startsWith(KEY)) return false;
      if (type === 'response.started') this.#responses.add(responseId);
      else if (responseKey === this.#askedKey) this.#modelEnded();
      return true;
    }
    if (type === 'assistant.transcribed') {
      if (!this.#responses.has(event.responseId)) return false;
      if (this.#saying) this.#words(this.#saying, event.text, event.final);
      return true;
    }
    // The request allows no calls; outside the conversation no component could answer one.
    if (type === 'tool.called') return this.#responses.has(event.responseId);
    if (type === 'transport.error' && this.isAsked && event.responseKey === this.#askedKey)
      this.#modelEnded();
    return false;
  }

  takesFrame(frame: AudioFrame): boolean {
    if (!this.#responses.has(frame.responseId ?? '')) return false;
    if (this.#saying) this.#sound(this.#saying, frame.samples, frame.sampleRateHz);
    return true;
  }

  #wait(): void {
    this.#cancelWait ??= this.#after(this.#settings.afterMs, () => {
      this.#cancelWait = null;
      if (!this.#ports.isWaitedFor()) return;
      if (this.#ports.isDue()) this.#wait();
      else this.#begin();
    });
  }

  #stopWaiting(): void {
    this.#cancelWait?.();
    this.#cancelWait = null;
  }

  #begin(): void {
    const environment = this.#environment;
    const { say, voice } = this.#settings;
    const phrases = phrasesIn(say, this.#ports.language());
    const text = phrases[this.#count % phrases.length];
    if (text === undefined) return;
    this.#wasSaid = true;
    this.#count += 1;
    const saying: Saying = {
      id: environment.ids.next('filler'),
      text,
      at: environment.clock.now(),
      abort: new AbortController(),
      written: '',
      endsAt: null,
      isMade: false,
    };
    this.#saying = saying;
    if (voice) void this.#speak(saying, voice);
    else this.#ask(saying);
  }

  async #speak(saying: Saying, voice: Voice): Promise<void> {
    const { text, abort } = saying;
    let resampler: Resampler | null = null;
    try {
      for await (const frame of soundOf(voice, { text, signal: abort.signal })) {
        const toHz = this.#sampleRateHz;
        resampler ??= createResampler({ fromHz: frame.sampleRateHz, toHz });
        this.#sound(saying, resampler.process(frame.samples), toHz);
      }
      if (resampler) this.#sound(saying, resampler.flush(), this.#sampleRateHz);
    } catch (error) {
      if (!abort.signal.aborted) this.#ports.report(error);
    }
    this.#made(saying);
  }

  #ask({ text }: Saying): void {
    const responseKey = `${KEY}${this.#count}`;
    this.#askedKey = responseKey;
    this.#expectEnd(PATIENCE_MS);
    this.#ports.send({
      type: 'response.request',
      responseKey,
      outOfBand: true,
      instructions: `Say exactly ${JSON.stringify(text)}, and nothing else. Call no tool.`,
    });
  }

  #sound(saying: Saying, samples: Int16Array, sampleRateHz: number): void {
    if (saying !== this.#saying || saying.isMade || samples.length === 0) return;
    if (this.hasVoice && this.#ports.isHeard()) return this.#noMore();
    const frame = { samples, sampleRateHz };
    const isFirst = saying.endsAt === null;
    const now = this.#environment.clock.now();
    saying.endsAt = Math.max(saying.endsAt ?? now, now) + frameDurationMs(frame);
    if (isFirst && this.hasVoice) this.#words(saying, saying.text, true);
    this.#ports.sounds(frame);
  }

  /** Records words of the filler; partials append. */
  #words(saying: Saying, text: string, final: boolean): void {
    saying.written = final ? text : saying.written + text;
    this.#write(saying, final, false);
  }

  #write({ id, written: text, at }: Saying, final: boolean, interrupted: boolean): void {
    if (text !== '') this.#ports.wrote({ id, text, final, at, interrupted });
  }

  /** All sound has arrived: the filler is over when that has been played. */
  #made(saying: Saying): void {
    if (saying !== this.#saying || saying.isMade) return;
    saying.isMade = true;
    const { endsAt } = saying;
    const leftMs = endsAt === null ? 0 : endsAt - this.#environment.clock.now();
    this.#cancelEnd = this.#after(leftMs, () => {
      this.#cancelEnd = null;
      this.#saying = null;
      this.#ports.settled();
    });
  }

  #modelEnded(): void {
    this.#answered();
    if (this.#saying) this.#made(this.#saying);
    this.#ports.settled();
  }

  /** The answer has arrived: the sound that has already come plays to its end, and no more follows. */
  #noMore(): void {
    const saying = this.#saying;
    if (saying === null || saying.isMade) return;
    if (saying.endsAt === null) this.#callOff();
    else if (this.hasVoice) {
      saying.abort.abort();
      this.#made(saying);
    }
  }

  /** Cancels the filler. */
  #callOff(): void {
    this.#saying?.abort.abort();
    this.#saying = null;
    this.#cancelEnd?.();
    this.#cancelEnd = null;
    if (!this.isAsked || this.#isCalledOff) return;
    this.#isCalledOff = true;
    this.#ports.send({ type: 'response.cancel' });
    this.#expectEnd(CANCEL_GRACE_MS);
  }

  #expectEnd(ms: number): void {
    this.#cancelPatience?.();
    this.#cancelPatience = this.#after(ms, () => {
      if (this.#isCalledOff) this.#modelEnded();
      else this.#callOff();
    });
  }

  #answered(): void {
    this.#askedKey = null;
    this.#isCalledOff = false;
    this.#cancelPatience?.();
    this.#cancelPatience = null;
  }

  #after(ms: number, task: () => void): () => void {
    return this.#environment.scheduler.schedule(task, ms);
  }
}
