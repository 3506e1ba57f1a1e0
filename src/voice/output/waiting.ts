// Plays what the user hears during a silent wait, so that the silence is not mistaken for a lost connection: the
// thinking sound, which is a soft loop while a model or tool is working; the filler, which is a short phrase ("One
// moment."); and the acknowledgement of an answer ("Premium. One moment.").
//
//   filler:  no wait ──▶ waiting ── afterMs ──▶ requested ──▶ audible ───▶ said: no more in this wait
//               ▲            │                     │             └── the user speaks ──▶ silent, at once
//               └────────────┴── the answer arrives ┘
//
// Owns:     how long the user has been waiting, the start and end of each sound, and the filler's text.
// Does not: determine who is working or speaking (turns), make a phrase audible (aside), or track playback (none of
//           these sounds is speech).
//
// Invariants
//   THINKING-SOUND-1. The thinking sound plays only while the user is waiting for a reply, for a tool, or for the end
//       of silenced speech that the model cannot stop. It starts after `afterMs`, stops without delay, and pauses while
//       the filler can be heard.
//   THINKING-SOUND-2. The thinking sound does not belong to an item or a response, so it is never reported as heard,
//                     interrupted or remembered.
//   THINKING-SOUND-3. Its frames are sent in real time, at most `AHEAD_MS` early, so that only a few have to be dropped
//                     at the end.
//   FILLER-1. The filler is said once per wait, and only while the user is waiting. It is not said while a question has
//        the floor or a delivery is due.

import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import type { WordsToQuestion } from '../../actors/contracts/records.ts';
import type { LeadSession } from '../../actors/session/lead/lead-agents.ts';
import { check } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import type { AudioFrame } from '../audio/audio-frame.ts';
import { createResampler } from '../audio/resampler.ts';
import type { Transport, TransportCapabilities } from '../connection/transport.ts';
import { checkVoice, type Voice } from '../speech/voice.ts';
import {
  acknowledgementOf,
  type Acknowledgement,
  type AcknowledgementSettings,
} from './acknowledgement.ts';
import { Aside } from './aside.ts';
import type { ReplyReader } from './held-speech.ts';
import type { Responses } from './responses.ts';
import type { Speech } from './speech.ts';
import type { Turn } from './turn.ts';

const FRAME_MS = 100;
const AHEAD_MS = 200;

/** The thinking sound that plays while the user is waiting, and the delay before it. */
export interface ThinkingSoundOptions {
  /** The audio to repeat: mono, 8 to 48 kHz, at least 100 ms. `workingSound()` creates one. */
  readonly loop: AudioFrame;
  /** The silence before the thinking sound starts, in milliseconds. @defaultValue 800 */
  readonly afterMs?: number;
}

/** The phrase with which a voice fills a silence, and when it does so. */
export interface FillerOptions {
  /** The silence before the phrase is said, in milliseconds. @defaultValue 2000 */
  readonly afterMs?: number;
  /**
   * The phrases, one for each wait in turn, or the phrases by language, such as `{ en: ['One moment.'], it: ['Un
   * attimo.'] }`. In a language without phrases, no filler is said.
   * @defaultValue phrases in English, German, French and Spanish
   */
  readonly say?: readonly string[] | Readonly<Record<string, readonly string[]>>;
  /**
   * The voice that says the phrase. @defaultValue the transport's voice (`withVoice`); without one, the model, if the
   * transport can speak out of band
   */
  readonly voice?: Voice;
}

/** The validated options, with defaults filled in. */
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
  /** The thinking sound while a model or tool is working; absent for no sound. */
  readonly thinkingSound?: ThinkingSoundOptions | undefined;
  /** The phrase that is said while the user is waiting; absent for no phrase. */
  readonly filler?: FillerSettings | undefined;
  /** The acknowledgement of an answer; absent for no acknowledgement. */
  readonly acknowledgement?: AcknowledgementSettings | undefined;
}

export class Waiting {
  readonly #core: LeadSession;
  readonly #responses: Responses;
  readonly #speech: Speech;
  readonly #turn: Turn;
  readonly #thinkingSound: ThinkingSound | null;
  /** Plays the phrases, and receives the events and the audio of a model that was asked for a phrase. */
  readonly aside: Aside;
  readonly #filler: Filler | null;
  readonly #acknowledgement: Acknowledgement | null;

  constructor(
    core: LeadSession,
    responses: Responses,
    speech: Speech,
    turn: Turn,
    { thinkingSound, filler, acknowledgement }: WaitingOptions,
    {
      outputSampleRateHz: sampleRateHz,
      speaksOutOfBand,
    }: Pick<TransportCapabilities, 'outputSampleRateHz' | 'speaksOutOfBand'>,
  ) {
    this.#core = core;
    this.#responses = responses;
    this.#speech = speech;
    this.#turn = turn;
    this.#thinkingSound = thinkingSound
      ? thinkingSoundOf(core.host.environment, speech, thinkingSound, sampleRateHz)
      : null;
    const voice = filler?.voice ?? acknowledgement?.voice ?? null;
    const changed = (): void => this.updateThinkingSound();
    this.aside = new Aside(core, speech, turn, { voice, sampleRateHz, changed });
    this.#filler = filler ? fillerOf(core, speech, turn, this, this.aside, filler) : null;
    this.#acknowledgement = acknowledgement
      ? acknowledgementOf(
          core,
          this,
          this.aside,
          acknowledgement,
          voice !== null || speaksOutOfBand,
        )
      : null;
  }

  /** Whether the user is waiting for a tool while no one is speaking. */
  get isForTool(): boolean {
    return this.#turn.isToolAwaited && !this.#responses.isSpeaking && this.#canBeHeard;
  }

  /** Whether the model is generating silenced speech and cannot say anything else until it ends. */
  get isForEnd(): boolean {
    return this.#responses.isCalledOff && this.#speech.isSilent && this.#canBeHeard;
  }

  /** Whether a reply is owed that the model has not started to say. */
  get isForReply(): boolean {
    return this.#turn.isReplyAwaited && this.#speech.isSilent && this.#canBeHeard;
  }

  get isAttached(): boolean {
    return this.#core.unit.isAttached;
  }

  get hasOtherSound(): boolean {
    return !this.#canBeHeard || !this.#speech.isSilent;
  }

  get isSilent(): boolean {
    return this.#canBeHeard && this.#speech.isSilent && !this.#responses.isBusy;
  }

  /** Whether a question is open. The filler is not said then, and also not while `isDeliveryDue` (FILLER-1). */
  get isQuestionOpen(): boolean {
    return this.#core.unit.owner !== null;
  }

  get isDeliveryDue(): boolean {
    const { current, pending } = this.#core.unit.outbox.snapshot.context;
    return current !== null || pending.some(({ resting }) => !resting);
  }

  /** Called after a change: decides again which sounds to play. */
  update(): void {
    if (this.#turn.userHasFloor || !this.isAttached) this.aside.stop();
    this.#filler?.update();
    this.#acknowledgement?.update();
    this.updateThinkingSound();
  }

  /** Handles words that answer a question, so that the model does not reply to them. */
  understood(were: NonNullable<WordsToQuestion>): void {
    this.#acknowledgement?.understood(were);
  }

  /** Returns a reader for the model's own reply to such words, if the reply may serve as the acknowledgement. */
  readerFor(were: NonNullable<WordsToQuestion>): ReplyReader | undefined {
    return this.#acknowledgement?.readerFor(were);
  }

  /** Starts or stops the thinking sound, which is silent while a phrase is audible. */
  updateThinkingSound(): void {
    const isWanted = this.isForReply || this.isForTool || this.isForEnd;
    this.#thinkingSound?.update(isWanted && !this.aside.isSounding);
  }

  /** Stops the thinking sound, because the client plays speech only after the audio that it has buffered. */
  stopThinkingSound(): void {
    this.#thinkingSound?.stop();
  }

  /** Stops the phrases because speech is about to start. */
  silence(): void {
    this.#filler?.stop();
    this.#acknowledgement?.stop();
  }

  /** Stops all sounds. */
  stop(): void {
    this.silence();
    this.stopThinkingSound();
  }

  get #canBeHeard(): boolean {
    return !this.#turn.userHasFloor && !this.#turn.isOffLine && this.isAttached;
  }
}

type ThinkingSound = ReturnType<typeof thinkingSoundOf>;

function thinkingSoundOf(
  environment: Environment,
  speech: Speech,
  { loop, afterMs = 800 }: ThinkingSoundOptions,
  sampleRateHz: number,
) {
  let position = 0;
  let cancel: (() => void) | null = null;
  let isHeard = false;
  const resampler = createResampler({ fromHz: loop.sampleRateHz, toHz: sampleRateHz });
  const parts = [resampler.process(loop.samples), resampler.flush()];
  const sound = Int16Array.from(parts.flatMap((part) => [...part]));

  function stop(): void {
    cancel?.();
    cancel = null;
    const wasHeard = isHeard;
    isHeard = false;
    if (wasHeard) speech.endBackground();
  }

  function begin(): void {
    position = 0;
    isHeard = true;
    for (let ms = FRAME_MS; ms < AHEAD_MS; ms += FRAME_MS) play();
    playOn();
  }

  function playOn(): void {
    play();
    cancel = environment.scheduler.schedule(playOn, FRAME_MS);
  }

  function play(): void {
    const samples = new Int16Array((sampleRateHz * FRAME_MS) / 1000);
    for (let n = 0; n < samples.length; n += 1) {
      samples[n] = sound[position] as number;
      position = (position + 1) % sound.length;
    }
    speech.playBackground({ samples, sampleRateHz });
  }

  return {
    /** Starts the thinking sound after a delay if it is needed; otherwise stops it. */
    update(isWanted: boolean): void {
      const { scheduler } = environment;
      if (isWanted) cancel ??= scheduler.schedule(() => begin(), afterMs);
      else stop();
    },
    stop,
  };
}

type Filler = ReturnType<typeof fillerOf>;

function fillerOf(
  core: LeadSession,
  speech: Speech,
  turn: Turn,
  waiting: Waiting,
  aside: Aside,
  settings: FillerSettings,
) {
  let cancelWait: (() => void) | null = null;
  let wasSaid = false;
  let count = 0;
  const isWaitedFor = (): boolean => waiting.isForTool || (aside.hasVoice && waiting.isForReply);

  function wait(): void {
    cancelWait ??= core.host.environment.scheduler.schedule(() => {
      cancelWait = null;
      if (!isWaitedFor()) return;
      if (waiting.isQuestionOpen || waiting.isDeliveryDue) wait();
      else begin();
    }, settings.afterMs);
  }

  function stopWaiting(): void {
    cancelWait?.();
    cancelWait = null;
  }

  function begin(): void {
    const phrases = phrasesIn(settings.say, core.agents.current.language ?? 'en');
    const text = phrases[count % phrases.length];
    if (text === undefined) return;
    wasSaid = true;
    count += 1;
    aside.say(text, self);
  }

  const self = {
    /** Handles a change of the state, which may start or end a wait. */
    update(): void {
      if (turn.userHasFloor || !waiting.isAttached) {
        stopWaiting();
        wasSaid = false;
        return;
      }
      if (!speech.isSilent) wasSaid = false;
      if (!isWaitedFor()) {
        stopWaiting();
        if (aside.owner === self) aside.noMore();
      } else if (!wasSaid && !aside.isUnderWay) wait();
    },
    stop(): void {
      stopWaiting();
      aside.stop();
    },
  };
  return self;
}

const phrases = z.array(z.string().trim().min(1)).min(1);

const optionsSchema = z.strictObject({
  afterMs: z.number().nonnegative().optional(),
  say: z.union([phrases, z.record(z.string().min(1), phrases)]).optional(),
  voice: z.custom<Voice>().optional(),
});

/**
 * @throws {ConfigurationError} `INVALID_OPTION`, or `FILLER_NEEDS_VOICE` if the transport cannot make its model speak
 *   out of band and no voice is passed.
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
