// A short phrase of the runtime outside the conversation ("One moment."), which is either a filler or an
// acknowledgement. A voice says it, or the model does out of band. At most one phrase is in progress.
//
//   say ─▶ requested ─▶ audible ──▶ over
//              └────────────┴── the user speaks, or speech starts first ─▶ silent
//
// Owns:     the current phrase and its responses.
// Does not: decide when to say something or what to say (waiting, acknowledgement).
//
// Invariants
//   FILLER-2. The phrase is not part of the conversation. It creates no item, session response or delivery. It is never
//        reported as heard, answered, interrupted or remembered, and it does not take the floor. The transcript marks
//        it as a filler.
//   FILLER-3. The phrase stops as soon as the user speaks.
//   FILLER-4. A phrase that is already playing delays the answer by the rest of the phrase at most. A phrase without
//        audio is cancelled when the answer arrives. None of its audio follows the model's first audio, and the session
//        does not wait for a model that never ends the phrase.
//   FILLER-5. While the model is being asked for a phrase, it receives no other request (RESPONSES-1).
//   FILLER-6. A model that speaks for longer than the phrase can take is cut off, because it is saying something else
//        and would delay the next speech.

import type { Environment } from '../../actors/ports/environment.ts';
import type { LeadSession } from '../../actors/session/lead/lead-agents.ts';
import { frameDurationMs, type AudioFrame } from '../audio/audio-frame.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import { createResampler, type Resampler } from '../audio/resampler.ts';
import type { TransportEvent } from '../connection/transport.ts';
import { soundOf, type Voice } from '../speech/voice.ts';
import type { Speech } from './speech.ts';
import type { Turn } from './turn.ts';

const KEY = 'filler:';
/** The maximum time that the session waits for the model to say a phrase. */
const PATIENCE_MS = 5000;
/** If the end of a cancelled phrase has not been reported after this time, the phrase counts as ended. */
const CANCEL_GRACE_MS = 1000;
/** The maximum duration of a phrase in ms: a constant plus a time per character for the slowest speech (FILLER-6). */
const LONGEST_MS = { pause: 2000, character: 150 };

/** A phrase, until it has been played or cancelled. */
interface Saying {
  readonly id: string;
  readonly text: string;
  readonly at: number;
  /** The component that asked for the phrase. */
  readonly owner: object;
  readonly abort: AbortController;
  written: string;
  /**
   * The time at which the audio received so far will have been played, in milliseconds since 1970; null if there is no
   * audio.
   */
  endsAt: number | null;
  soundMs: number;
  /** Whether all of the phrase's audio has arrived. */
  isMade: boolean;
}

export interface AsideOptions {
  /** Null if the model says the phrase. */
  readonly voice: Voice | null;
  /** The sample rate of the model's audio. */
  readonly sampleRateHz: number;
  /** Called when the phrase becomes audible. */
  readonly changed: () => void;
}

export class Aside {
  readonly #core: LeadSession;
  readonly #speech: Speech;
  readonly #turn: Turn;
  readonly #options: AsideOptions;
  readonly #environment: Environment;
  /** The ids of the model's responses that say a phrase. */
  readonly #responses = new RecentIds();
  #saying: Saying | null = null;
  #cancelEnd: (() => void) | null = null;
  /** The key of the request whose response has not ended yet. */
  #askedKey: string | null = null;
  #isCalledOff = false;
  #cancelPatience: (() => void) | null = null;
  #count = 0;

  constructor(core: LeadSession, speech: Speech, turn: Turn, options: AsideOptions) {
    this.#core = core;
    this.#speech = speech;
    this.#turn = turn;
    this.#options = options;
    this.#environment = core.host.environment;
  }

  /** Whether a voice, rather than the model, says the phrases. */
  get hasVoice(): boolean {
    return this.#options.voice !== null;
  }

  /** Whether the model is being asked for a phrase, so that it must receive no other request. */
  get isAsked(): boolean {
    return this.#askedKey !== null;
  }

  get isUnderWay(): boolean {
    return this.#saying !== null || this.isAsked;
  }

  get isSounding(): boolean {
    const { endsAt = null } = this.#saying ?? {};
    return endsAt !== null && endsAt > this.#environment.clock.now();
  }

  /** The component whose phrase is in progress. */
  get owner(): object | null {
    return this.#saying?.owner ?? null;
  }

  /** Says a phrase. Must be called only while no phrase is in progress. */
  say(text: string, owner: object): void {
    const { ids, clock } = this.#environment;
    this.#count += 1;
    const saying: Saying = {
      id: ids.next('filler'),
      text,
      at: clock.now(),
      owner,
      abort: new AbortController(),
      written: '',
      endsAt: null,
      soundMs: 0,
      isMade: false,
    };
    this.#saying = saying;
    const { voice } = this.#options;
    if (voice) void this.#speak(saying, voice);
    else this.#ask(saying);
  }

  /** Stops the phrase immediately. */
  stop(): void {
    const saying = this.#saying;
    const wasSounding = this.isSounding;
    this.#callOff();
    if (!saying || !wasSounding) return;
    this.#speech.endBackground();
    this.#write(saying, true, true);
  }

  /** Handles the loss of the connection. A phrase that is already playing continues. */
  lost(): void {
    this.#answered();
    const saying = this.#saying;
    if (saying === null || this.hasVoice) return;
    if (this.isSounding) this.#made(saying);
    else this.#saying = null;
  }

  /** Handles the response events that belong to phrases. Returns whether the event belongs to a phrase. */
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
      if (this.#saying?.isMade === false) this.#words(this.#saying, event.text, event.final);
      return true;
    }
    // Calls are not allowed, because no component could answer a call outside the conversation.
    if (type === 'tool.called') return this.#responses.has(event.responseId);
    if (type === 'transport.error' && this.isAsked && event.responseKey === this.#askedKey)
      this.#modelEnded();
    return false;
  }

  handleFrame(frame: AudioFrame): boolean {
    if (!this.#responses.has(frame.responseId ?? '')) return false;
    if (this.#saying) this.#sound(this.#saying, frame.samples, frame.sampleRateHz);
    return true;
  }

  async #speak(saying: Saying, voice: Voice): Promise<void> {
    const { text, abort } = saying;
    let resampler: Resampler | null = null;
    try {
      for await (const frame of soundOf(voice, { text, signal: abort.signal })) {
        const toHz = this.#options.sampleRateHz;
        resampler ??= createResampler({ fromHz: frame.sampleRateHz, toHz });
        this.#sound(saying, resampler.process(frame.samples), toHz);
      }
      if (resampler) this.#sound(saying, resampler.flush(), this.#options.sampleRateHz);
    } catch (error) {
      if (!abort.signal.aborted) this.#core.reportError(error, 'filler');
    }
    this.#made(saying);
  }

  #ask({ text }: Saying): void {
    const responseKey = `${KEY}${this.#count}`;
    this.#askedKey = responseKey;
    this.#expectEnd(PATIENCE_MS);
    // FILLER-5: the outbox makes no offer while the model is being asked for a phrase.
    this.#turn.chart.send({ type: 'floor.taken' });
    this.#turn.send({
      type: 'response.request',
      responseKey,
      outOfBand: true,
      instructions: `Say exactly ${JSON.stringify(text)}, and nothing else. Call no tool.`,
    });
  }

  #sound(saying: Saying, samples: Int16Array, sampleRateHz: number): void {
    if (saying !== this.#saying || saying.isMade || samples.length === 0) return;
    if (this.hasVoice && !this.#speech.isSilent) return this.noMore();
    const frame = { samples, sampleRateHz };
    const isFirst = saying.endsAt === null;
    const now = this.#environment.clock.now();
    saying.soundMs += frameDurationMs(frame);
    const longestMs = LONGEST_MS.pause + LONGEST_MS.character * saying.text.length;
    if (!this.hasVoice && saying.soundMs > longestMs) {
      this.#write(saying, true, true);
      this.#made(saying);
      return this.#cancelResponse();
    }
    saying.endsAt = Math.max(saying.endsAt ?? now, now) + frameDurationMs(frame);
    if (isFirst && this.hasVoice) this.#words(saying, saying.text, true);
    this.#options.changed();
    this.#speech.playBackground(frame);
  }

  /** Records words of the phrase; partials are appended. */
  #words(saying: Saying, text: string, final: boolean): void {
    saying.written = final ? text : saying.written + text;
    this.#write(saying, final, false);
  }

  #write({ id, written: text, at }: Saying, final: boolean, interrupted: boolean): void {
    if (text === '') return;
    const item = { id, text, final, at, role: 'assistant', filler: true } as const;
    this.#core.projection.emit({
      type: 'transcript.changed',
      item: interrupted ? { ...item, interrupted } : item,
    });
  }

  /** Records that all audio has arrived. The phrase ends when the audio has been played. */
  #made(saying: Saying): void {
    if (saying !== this.#saying || saying.isMade) return;
    saying.isMade = true;
    const { endsAt } = saying;
    const leftMs = endsAt === null ? 0 : endsAt - this.#environment.clock.now();
    this.#cancelEnd = this.#environment.scheduler.schedule(() => {
      this.#cancelEnd = null;
      this.#saying = null;
      this.#turn.next();
    }, leftMs);
  }

  #modelEnded(): void {
    this.#answered();
    if (this.#saying) this.#made(this.#saying);
    this.#turn.next();
  }

  /** Ends the phrase because the answer has arrived. Audio that has already arrived is still played. */
  noMore(): void {
    const saying = this.#saying;
    if (saying === null || saying.isMade) return;
    if (saying.endsAt === null) this.#callOff();
    else if (this.hasVoice) {
      saying.abort.abort();
      this.#made(saying);
    }
  }

  /** Cancels the phrase. */
  #callOff(): void {
    this.#saying?.abort.abort();
    this.#saying = null;
    this.#cancelEnd?.();
    this.#cancelEnd = null;
    this.#cancelResponse();
  }

  #cancelResponse(): void {
    if (!this.isAsked || this.#isCalledOff) return;
    this.#isCalledOff = true;
    this.#turn.send({ type: 'response.cancel' });
    this.#expectEnd(CANCEL_GRACE_MS);
  }

  #expectEnd(ms: number): void {
    this.#cancelPatience?.();
    this.#cancelPatience = this.#environment.scheduler.schedule(() => {
      if (this.#isCalledOff) this.#modelEnded();
      else this.#callOff();
    }, ms);
  }

  #answered(): void {
    this.#askedKey = null;
    this.#isCalledOff = false;
    this.#cancelPatience?.();
    this.#cancelPatience = null;
  }
}
