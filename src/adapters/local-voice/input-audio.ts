// The input audio buffer of one connection: the user's incoming sound, the detection of utterances in it, and
// its commitment as an utterance.
//
// INPUT-AUDIO-1. Times count from the first sample of the connection, on every event.
// INPUT-AUDIO-2. Sound that was committed or cleared never starts or ends another utterance.
// INPUT-AUDIO-3. At most ten minutes are held; during silence only the sound that may become the start of an
//     utterance.
//
// ENDPOINTING-1. `started` and `stopped` alternate, beginning with `started`.
// ENDPOINTING-2. Speech shorter than two windows (64 ms: a click, a breath) starts nothing.
// ENDPOINTING-3. An utterance ends when no window was speech for `silenceMs`; a pause that is shorter is part of it.

import { messageOf } from '../../values/errors.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { TurnDetection } from './session-config.ts';
import type { SpeechDetector, SpeechEngine } from './speech/speech-engine.ts';
import { Refusal } from './wire-events.ts';

export const INPUT_SAMPLE_RATE_HZ = 24_000;
const MAX_BUFFERED_MS = 10 * 60_000;
const MIN_COMMITTED_MS = 100;
/** Speech is detected late: this much more than the prefix is kept during silence. */
const NOTICE_MS = 1_000;

/** @throws {Refusal} `input_audio_buffer_commit_empty` for too little sound to be an item. */
export function checkCommitted(durationMs: number): void {
  if (durationMs >= MIN_COMMITTED_MS) return;
  const message =
    'Error committing input audio buffer: buffer too small. ' +
    `Expected at least ${MIN_COMMITTED_MS}ms of audio, but buffer only has ${durationMs.toFixed(2)}ms of audio.`;
  throw new Refusal('input_audio_buffer_commit_empty', message);
}

/** Sound of the user that became an item. */
export interface Utterance {
  readonly itemId: string;
  readonly samples: Int16Array;
  /** The detector's probabilities for it; absent if it did not listen. */
  readonly speech: KnownSpeech | undefined;
  /** The words, if the engine knows them without a transcription. */
  readonly words?: Promise<string>;
}

/** The input audio buffer, as a session uses it. */
export interface InputBuffer {
  /** Sets the detection of utterances; `null` leaves the commitment to the client. */
  configure(detection: TurnDetection | null): void;
  /** @throws {Refusal} `input_audio_buffer_full` */
  append(samples: Int16Array): void;
  /** Makes all held sound an utterance. @throws {Refusal} `input_audio_buffer_commit_empty` */
  commit(): Utterance;
  clear(): void;
  close(): void;
}

export interface InputAudioEvents {
  newItemId(): string;
  speechStarted(itemId: string, startMs: number): void;
  speechStopped(itemId: string, endMs: number): void;
  /** Reports an utterance that the end of speech committed. */
  committed(utterance: Utterance): void;
  detectionFailed(message: string): void;
}

/** A detector, and the position of its windows in the sound of the connection. */
interface Listening {
  readonly detector: SpeechDetector;
  /** The end of the last window with a result. */
  heardMs: number;
  /** The probabilities of the windows since `windowsFromMs`. */
  windows: number[];
  windowsFromMs: number;
}

export class InputAudio implements InputBuffer {
  readonly #engine: SpeechEngine;
  readonly #events: InputAudioEvents;
  readonly #buffer = new SoundBuffer(INPUT_SAMPLE_RATE_HZ);
  readonly #endpointer = new Endpointer();
  #detection: TurnDetection | null = null;
  #listening: Listening | null = null;
  /** The announced id of the current utterance. */
  #itemId: string | null = null;

  constructor(engine: SpeechEngine, events: InputAudioEvents) {
    this.#engine = engine;
    this.#events = events;
  }

  configure(detection: TurnDetection | null): void {
    this.#detection = detection;
    if (detection === null) this.#stopListening();
    else this.#listening ??= this.#startListening();
  }

  append(samples: Int16Array): void {
    const addedMs = (samples.length * 1000) / INPUT_SAMPLE_RATE_HZ;
    if (this.#buffer.durationMs + addedMs > MAX_BUFFERED_MS) {
      const minutes = MAX_BUFFERED_MS / 60_000;
      const message = `The input audio buffer holds at most ${minutes} minutes; commit or clear it.`;
      throw new Refusal('input_audio_buffer_full', message);
    }
    this.#buffer.append(samples);
    const listening = this.#listening;
    if (listening === null) return;
    listening.detector.push(samples).then(
      (windows) => this.#onWindows(listening, windows),
      (error: unknown) => this.#onDetectionFailed(listening, error),
    );
  }

  commit(): Utterance {
    const { startMs, endMs, durationMs } = this.#buffer;
    checkCommitted(durationMs);
    const itemId = this.#itemId ?? this.#events.newItemId();
    const samples = this.#buffer.take(startMs, endMs);
    this.#forgetSpeech();
    return { itemId, samples, speech: undefined };
  }

  clear(): void {
    this.#buffer.dropBefore(this.#buffer.endMs);
    this.#forgetSpeech();
  }

  close(): void {
    this.#stopListening();
  }

  #startListening(): Listening {
    const { endMs } = this.#buffer;
    return {
      detector: this.#engine.createDetector(INPUT_SAMPLE_RATE_HZ),
      heardMs: endMs,
      windows: [],
      windowsFromMs: endMs,
    };
  }

  #stopListening(): void {
    this.#listening?.detector.close();
    this.#listening = null;
    this.#endpointer.reset();
    this.#itemId = null;
  }

  #forgetSpeech(): void {
    this.#endpointer.reset();
    this.#itemId = null;
    if (this.#listening !== null) this.#listening.windows = [];
  }

  #onWindows(listening: Listening, windows: readonly number[]): void {
    if (this.#listening !== listening) return;
    const { windowMs } = listening.detector;
    for (const probability of windows) {
      listening.heardMs += windowMs;
      // Skips windows that consist mostly of sound committed or cleared meanwhile.
      if (listening.heardMs - windowMs / 2 < this.#buffer.startMs) continue;
      if (listening.windows.length === 0) listening.windowsFromMs = listening.heardMs - windowMs;
      listening.windows.push(probability);
      const settings = this.#detection && endpointingSettings(this.#detection);
      if (settings === null) return;
      const endpoint = this.#endpointer.push(probability, listening.heardMs, windowMs, settings);
      if (endpoint !== null) this.#onEndpoint(listening, endpoint, settings.threshold);
      else if (!this.#endpointer.inSpeech) this.#forgetSilence(listening, settings.prefixPaddingMs);
      // The client may have reacted to the event by turning the detector off.
      if (this.#listening !== listening) return;
    }
  }

  #onEndpoint(listening: Listening, endpoint: Endpoint, threshold: number): void {
    if (endpoint.type === 'started') {
      this.#itemId = this.#events.newItemId();
      const startMs = Math.max(endpoint.startMs, this.#buffer.startMs);
      this.#events.speechStarted(this.#itemId, Math.round(startMs));
      return;
    }
    const itemId = this.#itemId ?? this.#events.newItemId();
    this.#itemId = null;
    const { windowMs } = listening.detector;
    // Starts at a boundary of windows, so that windows and samples cover the same sound.
    const startMs = Math.max(endpoint.startMs, listening.windowsFromMs);
    const firstWindow = Math.floor((startMs - listening.windowsFromMs) / windowMs);
    const windows = listening.windows.slice(firstWindow);
    const samples = this.#buffer.take(
      listening.windowsFromMs + firstWindow * windowMs,
      endpoint.endMs,
    );
    listening.windows = [];
    this.#events.speechStopped(itemId, Math.round(endpoint.endMs));
    this.#events.committed({ itemId, samples, speech: { windows, windowMs, threshold } });
  }

  #forgetSilence(listening: Listening, prefixPaddingMs: number): void {
    this.#buffer.dropBefore(listening.heardMs - prefixPaddingMs - NOTICE_MS);
    const { windowMs } = listening.detector;
    const surplus = Math.floor((this.#buffer.startMs - listening.windowsFromMs) / windowMs);
    if (surplus <= 0) return;
    listening.windows.splice(0, surplus);
    listening.windowsFromMs += surplus * windowMs;
  }

  #onDetectionFailed(listening: Listening, error: unknown): void {
    if (this.#listening !== listening) return;
    this.#stopListening();
    if (this.#detection !== null) this.#listening = this.#startListening();
    this.#events.detectionFailed(messageOf(error));
  }
}

/** Known speech probabilities of a sound. */
export interface KnownSpeech {
  /** The probability of speech in each window, from the first sample on. */
  readonly windows: readonly number[];
  readonly windowMs: number;
  readonly threshold: number;
}

interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

const DEFAULT_THRESHOLD = 0.5;
/** A longer pause separates two transcriptions. */
const LONGEST_PAUSE_MS = 600;
/** The model cannot handle more at once. */
const LONGEST_SPAN_MS = 24_000;
/** A span that is too long is cut at the quietest window of its last part. */
const CUT_WITHIN_MS = 6_000;
/** Silence kept before and after speech; the second setting is tried if the first gives no words. */
const PADDINGS = [
  { beforeMs: 250, afterMs: 300 },
  { beforeMs: 100, afterMs: 100 },
] as const;

/**
 * Transcribes a stretch of sound: finds the speech in it, cuts it out with a little of the silence around it
 * (the model hears nothing in long silence), and has each part transcribed.
 *
 * Returns the words in a sound; empty if there are none. @throws the engine's error
 */
export async function transcribeSound(
  engine: SpeechEngine,
  sound: AudioFrame,
  known?: KnownSpeech,
): Promise<string> {
  const speech = known ?? (await detect(engine, sound));
  const words: string[] = [];
  for (const span of findSpeech(speech)) {
    const text = await transcribe(engine, sound, span);
    if (text !== '') words.push(text);
  }
  return words.join(' ');
}

/** Returns the stretches of speech: close ones joined, long ones cut. */
export function findSpeech({ windows, windowMs, threshold }: KnownSpeech): Span[] {
  const spans: { first: number; last: number }[] = [];
  let current: { first: number; last: number } | undefined;
  for (const [index, probability] of windows.entries()) {
    const pauseMs = current === undefined ? Infinity : (index - current.last - 1) * windowMs;
    if (current !== undefined && pauseMs < LONGEST_PAUSE_MS) {
      if (probability >= silenceThreshold(threshold)) current.last = index;
    } else if (probability >= threshold) {
      current = { first: index, last: index };
      spans.push(current);
    }
  }
  return spans.flatMap(({ first, last }) =>
    cutSpan(windows, first, last, Math.floor(LONGEST_SPAN_MS / windowMs), windowMs),
  );
}

function cutSpan(
  windows: readonly number[],
  first: number,
  last: number,
  longest: number,
  windowMs: number,
): Span[] {
  const spans: Span[] = [];
  let start = first;
  while (last - start + 1 > longest) {
    let cut = start + longest - 1;
    const earliest = cut - Math.floor(CUT_WITHIN_MS / windowMs);
    for (let index = cut; index > earliest; index -= 1) {
      if ((windows[index] as number) < (windows[cut] as number)) cut = index;
    }
    spans.push({ startMs: start * windowMs, endMs: cut * windowMs });
    start = cut;
  }
  spans.push({ startMs: start * windowMs, endMs: (last + 1) * windowMs });
  return spans;
}

async function detect(engine: SpeechEngine, sound: AudioFrame): Promise<KnownSpeech> {
  const detector = engine.createDetector(sound.sampleRateHz);
  try {
    const windows = await detector.push(sound.samples);
    return { windows, windowMs: detector.windowMs, threshold: DEFAULT_THRESHOLD };
  } finally {
    detector.close();
  }
}

async function transcribe(engine: SpeechEngine, sound: AudioFrame, span: Span): Promise<string> {
  const sampleAt = (ms: number): number => Math.round((ms * sound.sampleRateHz) / 1000);
  for (const { beforeMs, afterMs } of PADDINGS) {
    const start = Math.max(0, sampleAt(span.startMs - beforeMs));
    const samples = sound.samples.slice(start, sampleAt(span.endMs + afterMs));
    const text = await engine.transcribe({ samples, sampleRateHz: sound.sampleRateHz });
    if (text !== '') return text;
  }
  return '';
}

interface EndpointingSettings {
  /** A window with at least this probability is speech. */
  readonly threshold: number;
  /** The length of sound before the first speech that belongs to the utterance. */
  readonly prefixPaddingMs: number;
  /** The length of silence that ends an utterance. */
  readonly silenceMs: number;
}

export type Endpoint =
  | { readonly type: 'started'; readonly startMs: number }
  /** `endMs` includes the silence that ended it. */
  | { readonly type: 'stopped'; readonly startMs: number; readonly endMs: number };

const WINDOWS_TO_START = 2;
/** After speech has begun, a slightly lower probability suffices: syllables fade. */
const HYSTERESIS = 0.15;
const LEAST_THRESHOLD = 0.01;

/** There is no semantic model here, so eagerness is a length of silence. */
const SEMANTIC_SILENCE_MS = { low: 1_200, medium: 700, auto: 700, high: 400 } as const;
const SEMANTIC_PREFIX_PADDING_MS = 300;
const SEMANTIC_THRESHOLD = 0.5;

/** Returns the settings for the wire's `turn_detection`. */
export function endpointingSettings(detection: TurnDetection): EndpointingSettings {
  if (detection.type === 'semantic_vad') {
    return {
      threshold: SEMANTIC_THRESHOLD,
      prefixPaddingMs: SEMANTIC_PREFIX_PADDING_MS,
      silenceMs: SEMANTIC_SILENCE_MS[detection.eagerness],
    };
  }
  return {
    threshold: detection.threshold,
    prefixPaddingMs: detection.prefix_padding_ms,
    silenceMs: detection.silence_duration_ms,
  };
}

/** Returns the probability below which a window is silence, once there was speech. */
function silenceThreshold(threshold: number): number {
  return Math.max(threshold - HYSTERESIS, LEAST_THRESHOLD);
}

/**
 * Detects the start and the end of utterances in a stream of speech probabilities. Pure: it uses the time of
 * the sound only, never a clock.
 */
export class Endpointer {
  /** The number of consecutive windows of speech while waiting for a start. */
  #run = 0;
  #startMs: number | null = null;
  #lastSpeechMs = 0;

  /** Whether an utterance is under way. */
  get inSpeech(): boolean {
    return this.#startMs !== null;
  }

  /** @param endMs where the window ends, in the time of the stream */
  push(
    probability: number,
    endMs: number,
    windowMs: number,
    settings: EndpointingSettings,
  ): Endpoint | null {
    if (this.#startMs === null) {
      this.#run = probability >= settings.threshold ? this.#run + 1 : 0;
      if (this.#run < WINDOWS_TO_START) return null;
      const startMs = Math.max(0, endMs - this.#run * windowMs - settings.prefixPaddingMs);
      this.#startMs = startMs;
      this.#lastSpeechMs = endMs;
      return { type: 'started', startMs };
    }
    if (probability >= silenceThreshold(settings.threshold)) this.#lastSpeechMs = endMs;
    if (endMs - this.#lastSpeechMs < Math.max(settings.silenceMs, windowMs)) return null;
    const startMs = this.#startMs;
    this.reset();
    return { type: 'stopped', startMs, endMs };
  }

  /** Forgets the current utterance. */
  reset(): void {
    this.#run = 0;
    this.#startMs = null;
  }
}

/**
 * Sound of the user that is not committed yet, addressed by its time since the
 * first sample of the connection.
 *
 * Holds a stretch of one stream of samples.
 */
export class SoundBuffer {
  readonly #samplesPerMs: number;
  #chunks: Int16Array[] = [];
  #startSample = 0;
  #endSample = 0;

  constructor(sampleRateHz: number) {
    this.#samplesPerMs = sampleRateHz / 1000;
  }

  /** The time of the first held sample. */
  get startMs(): number {
    return this.#startSample / this.#samplesPerMs;
  }

  /** The length of all appended sound. */
  get endMs(): number {
    return this.#endSample / this.#samplesPerMs;
  }

  get durationMs(): number {
    return this.endMs - this.startMs;
  }

  append(samples: Int16Array): void {
    if (samples.length === 0) return;
    this.#chunks.push(samples);
    this.#endSample += samples.length;
  }

  /** Takes the held sound from `fromMs` to `toMs`, and drops earlier sound. */
  take(fromMs: number, toMs: number): Int16Array {
    this.dropBefore(fromMs);
    const count = this.#clamp(toMs) - this.#startSample;
    const taken = new Int16Array(Math.max(0, count));
    let filled = 0;
    for (const chunk of this.#chunks) {
      if (filled === taken.length) break;
      const part = chunk.subarray(0, taken.length - filled);
      taken.set(part, filled);
      filled += part.length;
    }
    this.dropBefore(toMs);
    return taken;
  }

  /** Drops the sound before `ms`. */
  dropBefore(ms: number): void {
    let surplus = this.#clamp(ms) - this.#startSample;
    if (surplus <= 0) return;
    this.#startSample += surplus;
    let whole = 0;
    while (surplus > 0) {
      const chunk = this.#chunks[whole] as Int16Array;
      if (chunk.length > surplus) {
        this.#chunks[whole] = chunk.subarray(surplus);
        break;
      }
      surplus -= chunk.length;
      whole += 1;
    }
    this.#chunks.splice(0, whole);
  }

  #clamp(ms: number): number {
    const sample = Math.round(ms * this.#samplesPerMs);
    return Math.min(Math.max(sample, this.#startSample), this.#endSample);
  }
}
