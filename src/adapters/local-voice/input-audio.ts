// The input audio buffer of one connection: the user's incoming sound, the detection of utterances in it, and
// its commitment as an utterance.
//
// INPUT-AUDIO-1. Times count from the first sample of the connection, on every event.
// INPUT-AUDIO-2. Sound that was committed or cleared never starts or ends another utterance.
// INPUT-AUDIO-3. At most ten minutes are held; during silence only the sound that may become the start of an
//     utterance.

import { messageOf } from '../../values/errors.ts';
import { Endpointer, endpointingSettings, type Endpoint } from './endpointing.ts';
import type { KnownSpeech } from './hearing.ts';
import type { TurnDetection } from './session-config.ts';
import { SoundBuffer } from './sound-buffer.ts';
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
