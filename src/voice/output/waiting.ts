// The sounds that the user hears while they wait for the lead agent and no one speaks, so that silence is not
// mistaken for a lost connection: the thinking sound, a soft loop while a tool works, and the filler, a short
// phrase ("One moment.").
//
//   filler:  no wait ──▶ waiting ── afterMs ──▶ asked for ──▶ sounding ──▶ said: nothing more in this wait
//               ▲            │                     │             └── the user speaks ──▶ silent, at once
//               └────────────┴── the answer is here ┘
//
// Owns:     the wait of the user, when each sound begins and ends, and the text of the filler.
// Does not: know who is working or speaking (turns), or track playback: neither sound is speech.
//
// Invariants
//   THINKING-SOUND-1. The sound is heard only while the user waits for a tool, from `afterMs` on, and ends at
//       once; it is silent while the filler sounds.
//   THINKING-SOUND-2. The sound has no item and no response: it is never heard, interrupted or remembered.
//   THINKING-SOUND-3. Frames leave in real time, at most `AHEAD_MS` early, so that few have to be dropped.
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

import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { check } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { frameDurationMs, type AudioFrame } from '../audio/audio-frame.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import { createResampler, type Resampler } from '../audio/resampler.ts';
import type { Transport, TransportEvent } from '../connection/transport.ts';
import { checkVoice, soundOf, type Voice } from '../speech/voice.ts';
import type { Responses } from './responses.ts';
import type { Speech } from './speech.ts';
import type { Turn } from './turn.ts';

const FRAME_MS = 100;
const AHEAD_MS = 200;
const KEY = 'filler:';
/** The session waits no longer than this for the model to say a filler. */
const PATIENCE_MS = 5000;
/** A cancelled filler reports its end within this time, or counts as ended. */
const CANCEL_GRACE_MS = 1000;

export interface ThinkingSoundOptions {
  /** The sound, repeated: mono, 8 to 48 kHz, at least 100 ms. `workingSound()` makes one. */
  readonly loop: AudioFrame;
  /** Silence before the sound begins, in milliseconds. @defaultValue 800 */
  readonly afterMs?: number;
}

export interface FillerOptions {
  /** Silence before the phrase is said, in milliseconds. @defaultValue 2000 */
  readonly afterMs?: number;
  /**
   * The phrases, used in turn from wait to wait; or the phrases by language, such as `{ en: ['One moment.'],
   * it: ['Un attimo.'] }`. In a language without phrases the filler stays silent.
   * @defaultValue phrases in English, German, French and Spanish
   */
  readonly say?: readonly string[] | Readonly<Record<string, readonly string[]>>;
  /**
   * The voice that says the phrase. @defaultValue the voice of the transport (`withVoice`), else the model
   * itself, if the transport can speak out of band
   */
  readonly voice?: Voice;
}

/** Checked options with their defaults. */
export interface FillerSettings {
  readonly afterMs: number;
  readonly say: NonNullable<FillerOptions['say']>;
  /** Null if the model says the phrase. */
  readonly voice: Voice | null;
}

const DEFAULT_AFTER_MS = 2000;

const DEFAULT_PHRASES: Readonly<Record<string, readonly string[]>> = {
  en: ['One moment.', 'Just a second.', 'Let me see.'],
  de: ['Einen Moment.', 'Eine Sekunde.', 'Ich sehe nach.'],
  fr: ['Un instant.', 'Une seconde.', 'Je regarde.'],
  es: ['Un momento.', 'Un segundo.', 'Déjeme ver.'],
};

export interface WaitingOptions {
  /** The sound while a tool works; absent: none. */
  readonly thinkingSound?: ThinkingSoundOptions | undefined;
  /** The phrase while the user waits; absent: none. */
  readonly filler?: FillerSettings | undefined;
}

export class Waiting {
  readonly #core: LeadSession;
  readonly #responses: Responses;
  readonly #speech: Speech;
  readonly #turn: Turn;
  readonly #thinkingSound: ThinkingSound | null;
  readonly #filler: Filler | null;

  /** @param sampleRateHz The rate of the model's sound. */
  constructor(
    core: LeadSession,
    responses: Responses,
    speech: Speech,
    turn: Turn,
    { thinkingSound, filler }: WaitingOptions,
    sampleRateHz: number,
  ) {
    this.#core = core;
    this.#responses = responses;
    this.#speech = speech;
    this.#turn = turn;
    this.#thinkingSound = thinkingSound
      ? new ThinkingSound(core.host.environment, speech, thinkingSound, sampleRateHz)
      : null;
    this.#filler = filler ? new Filler(core, speech, turn, this, filler, sampleRateHz) : null;
  }

  /** Whether the model is asked for a filler and cannot be asked for anything else. */
  get isAsked(): boolean {
    return this.#filler?.isAsked === true;
  }

  /** Whether the user waits for a tool while no one speaks. */
  get isForTool(): boolean {
    return this.#turn.isToolAwaited && !this.#responses.isSpeaking && this.#canBeHeard;
  }

  /** Whether a reply is owed and the model has not begun to speak. */
  get isForReply(): boolean {
    return this.#turn.isReplyAwaited && this.#speech.isSilent && this.#canBeHeard;
  }

  get isAttached(): boolean {
    return this.#core.unit.isAttached;
  }

  /** Reconsiders both sounds after a change. */
  update(): void {
    this.#filler?.update();
    this.updateThinkingSound();
  }

  /** Starts or stops the thinking sound; only one of the two sounds is heard at a time. */
  updateThinkingSound(): void {
    this.#thinkingSound?.update(this.isForTool && this.#filler?.isSounding !== true);
  }

  /** Handles the events of a filler that the model was asked for. Returns whether the event was one. */
  handle(event: TransportEvent): boolean {
    return this.#filler?.handle(event) === true;
  }

  /** Handles a frame of a filler that the model was asked for. Returns whether the frame was one. */
  handleFrame(frame: AudioFrame): boolean {
    return this.#filler?.handleFrame(frame) === true;
  }

  /** Stops the filler because speech is about to begin. */
  silence(): void {
    this.#filler?.stop();
  }

  /** Handles the loss of the connection. */
  lost(): void {
    this.#filler?.lost();
  }

  /** Stops both sounds. */
  stop(): void {
    this.#filler?.stop();
    this.#thinkingSound?.stop();
  }

  get #canBeHeard(): boolean {
    return !this.#turn.userHasFloor && !this.#turn.isOffLine && this.isAttached;
  }
}

class ThinkingSound {
  readonly #environment: Environment;
  readonly #speech: Speech;
  readonly #loop: Int16Array;
  readonly #sampleRateHz: number;
  readonly #afterMs: number;
  #position = 0;
  #cancel: (() => void) | null = null;
  #isHeard = false;

  constructor(
    environment: Environment,
    speech: Speech,
    { loop, afterMs = 800 }: ThinkingSoundOptions,
    sampleRateHz: number,
  ) {
    const resampler = createResampler({ fromHz: loop.sampleRateHz, toHz: sampleRateHz });
    const parts = [resampler.process(loop.samples), resampler.flush()];
    this.#environment = environment;
    this.#speech = speech;
    this.#loop = Int16Array.from(parts.flatMap((part) => [...part]));
    this.#sampleRateHz = sampleRateHz;
    this.#afterMs = afterMs;
  }

  /** Starts the sound after a while if it is wanted, or stops it. */
  update(isWanted: boolean): void {
    if (isWanted) this.#cancel ??= after(this.#environment, this.#afterMs, () => this.#begin());
    else this.stop();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
    const wasHeard = this.#isHeard;
    this.#isHeard = false;
    if (wasHeard) this.#speech.endBackground();
  }

  #begin(): void {
    this.#position = 0;
    this.#isHeard = true;
    for (let ms = FRAME_MS; ms < AHEAD_MS; ms += FRAME_MS) this.#play();
    this.#continue();
  }

  #continue(): void {
    this.#play();
    this.#cancel = after(this.#environment, FRAME_MS, () => this.#continue());
  }

  #play(): void {
    const samples = new Int16Array((this.#sampleRateHz * FRAME_MS) / 1000);
    for (let n = 0; n < samples.length; n += 1) {
      samples[n] = this.#loop[this.#position] as number;
      this.#position = (this.#position + 1) % this.#loop.length;
    }
    this.#speech.playBackground({ samples, sampleRateHz: this.#sampleRateHz });
  }
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

class Filler {
  readonly #core: LeadSession;
  readonly #speech: Speech;
  readonly #turn: Turn;
  readonly #waiting: Waiting;
  readonly #settings: FillerSettings;
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

  constructor(
    core: LeadSession,
    speech: Speech,
    turn: Turn,
    waiting: Waiting,
    settings: FillerSettings,
    sampleRateHz: number,
  ) {
    this.#core = core;
    this.#speech = speech;
    this.#turn = turn;
    this.#waiting = waiting;
    this.#settings = settings;
    this.#environment = core.host.environment;
    this.#sampleRateHz = sampleRateHz;
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
  update(): void {
    if (this.#turn.userHasFloor || !this.#waiting.isAttached) {
      this.stop();
      this.#wasSaid = false;
      return;
    }
    if (this.#isAnswerHeard) this.#wasSaid = false;
    if (!this.#isWaitedFor) {
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
    this.#speech.endBackground();
    this.#write(saying, true, true);
  }

  /** Handles the loss of the connection. A filler that is sounding plays on. */
  lost(): void {
    this.#answered();
    const saying = this.#saying;
    if (saying === null || this.#hasVoice) return;
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

  handleFrame(frame: AudioFrame): boolean {
    if (!this.#responses.has(frame.responseId ?? '')) return false;
    if (this.#saying) this.#sound(this.#saying, frame.samples, frame.sampleRateHz);
    return true;
  }

  /** Whether a voice, and not the model, says the filler. */
  get #hasVoice(): boolean {
    return this.#settings.voice !== null;
  }

  get #isWaitedFor(): boolean {
    return this.#waiting.isForTool || (this.#hasVoice && this.#waiting.isForReply);
  }

  /** Whether the model is being heard, which ends the wait. */
  get #isAnswerHeard(): boolean {
    return !this.#speech.isSilent;
  }

  /** Whether a question is open or a delivery is due (FILLER-1). */
  get #isOtherDue(): boolean {
    const { owner, outbox } = this.#core.unit;
    const { current, pending } = outbox.snapshot.context;
    return owner !== null || current !== null || pending.some(({ resting }) => !resting);
  }

  #wait(): void {
    this.#cancelWait ??= after(this.#environment, this.#settings.afterMs, () => {
      this.#cancelWait = null;
      if (!this.#isWaitedFor) return;
      if (this.#isOtherDue) this.#wait();
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
    const phrases = phrasesIn(say, this.#core.agents.current.language ?? 'en');
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
      if (!abort.signal.aborted) this.#core.reportError(error, 'filler');
    }
    this.#made(saying);
  }

  #ask({ text }: Saying): void {
    const responseKey = `${KEY}${this.#count}`;
    this.#askedKey = responseKey;
    this.#expectEnd(PATIENCE_MS);
    // FILLER-5: no offer while the model is asked for a filler.
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
    if (this.#hasVoice && this.#isAnswerHeard) return this.#noMore();
    const frame = { samples, sampleRateHz };
    const isFirst = saying.endsAt === null;
    const now = this.#environment.clock.now();
    saying.endsAt = Math.max(saying.endsAt ?? now, now) + frameDurationMs(frame);
    if (isFirst && this.#hasVoice) this.#words(saying, saying.text, true);
    this.#waiting.updateThinkingSound();
    this.#speech.playBackground(frame);
  }

  /** Records words of the filler; partials append. */
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

  /** All sound has arrived: the filler is over when that has been played. */
  #made(saying: Saying): void {
    if (saying !== this.#saying || saying.isMade) return;
    saying.isMade = true;
    const { endsAt } = saying;
    const leftMs = endsAt === null ? 0 : endsAt - this.#environment.clock.now();
    this.#cancelEnd = after(this.#environment, leftMs, () => {
      this.#cancelEnd = null;
      this.#saying = null;
      this.#turn.next();
    });
  }

  #modelEnded(): void {
    this.#answered();
    if (this.#saying) this.#made(this.#saying);
    this.#turn.next();
  }

  /** The answer has arrived: the sound that has already come plays to its end, and no more follows. */
  #noMore(): void {
    const saying = this.#saying;
    if (saying === null || saying.isMade) return;
    if (saying.endsAt === null) this.#callOff();
    else if (this.#hasVoice) {
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
    this.#turn.send({ type: 'response.cancel' });
    this.#expectEnd(CANCEL_GRACE_MS);
  }

  #expectEnd(ms: number): void {
    this.#cancelPatience?.();
    this.#cancelPatience = after(this.#environment, ms, () => {
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
}

const phrases = z.array(z.string().trim().min(1)).min(1);

const optionsSchema = z.strictObject({
  afterMs: z.number().nonnegative().optional(),
  say: z.union([phrases, z.record(z.string().min(1), phrases)]).optional(),
  voice: z.custom<Voice>().optional(),
});

/**
 * @throws {ConfigurationError} `INVALID_OPTION`, or `FILLER_NEEDS_VOICE` if the transport cannot make its
 *   model speak out of band and no voice is given.
 */
export function checkedFiller(options: FillerOptions, transport: Transport): FillerSettings {
  check('filler', optionsSchema, options);
  const { afterMs = DEFAULT_AFTER_MS, say = DEFAULT_PHRASES } = options;
  const voice = options.voice ?? transport.voice ?? null;
  if (voice !== null) checkVoice('filler.voice', voice);
  else if (!transport.capabilities.speaksOutOfBand)
    throw new ConfigurationError(
      'FILLER_NEEDS_VOICE',
      `filler: the model of \`${transport.name}\` cannot speak out of band. ` +
        'Expected `filler.voice`, such as aiSdkVoice(…), or no filler',
    );
  return { afterMs, say, voice };
}

/** Returns the phrases for a language tag such as `en-GB`. */
export function phrasesIn(say: FillerSettings['say'], tag: string): readonly string[] {
  if (isList(say)) return say;
  const language = tag.toLowerCase();
  const [code = language] = language.split(/[-_]/);
  return say[tag] ?? say[language] ?? say[code] ?? [];
}

function isList(say: FillerSettings['say']): say is readonly string[] {
  return Array.isArray(say);
}

function after({ scheduler }: Environment, ms: number, task: () => void): () => void {
  return scheduler.schedule(task, ms);
}
