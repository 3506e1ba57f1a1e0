// One connection's input audio buffer. It stores the user's incoming audio, detects utterances and commits them.
//
// INPUT-AUDIO-1. All event times are measured from the connection's first sample.
// INPUT-AUDIO-2. Audio that was committed or cleared never starts or ends another utterance.
// INPUT-AUDIO-3. The buffer holds at most ten minutes. During silence, it stores only audio that may belong to the
//     start of an utterance.
// INPUT-AUDIO-4. An utterance is transcribed during its pauses. An utterance's text is the transcription from its last
//     pause, unless this transcription is empty.
// INPUT-AUDIO-5. Audio is judged in order. While a pause waits for its transcription, later audio waits too, but at
//     most for `WORDS_TIMEOUT_MS`.
// INPUT-AUDIO-6. Words that stop the current speech ("stop", "not now") are reported as soon as they have been
//     transcribed. Because so little speech precedes them, the first pause after them only has to last a third of
//     `transcribeAfterMs`.

import type { Environment } from '../../actors/ports/environment.ts';
import { putsOff } from '../../language/side-talk.ts';
import { messageOf } from '../../values/errors.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { type EndOfTurn, judgeTurn, type OpenQuestion, type TurnEnd } from './end-of-turn.ts';
import {
  type Endpoint,
  Endpointer,
  endpointingSettings,
  type EndpointingSettings,
} from './endpointer.ts';
import { hearUtterance, type KnownSpeech } from './hearing.ts';
import { LevelGate, levelOf, nearestLevel, windowsBeforeNearest } from './level-gate.ts';
import type { TurnDetection } from './session-config.ts';
import type { SpeechDetector, SpeechEngine } from './speech/speech-engine.ts';
import { Refusal } from './wire-events.ts';

export const INPUT_SAMPLE_RATE_HZ = 24_000;
const MAX_BUFFERED_MS = 10 * 60_000;
const MIN_COMMITTED_MS = 100;
/** The maximum duration of speech that is checked for words that stop the current speech (INPUT-AUDIO-6). */
const SHORT_MS = 1_000;
/** The maximum time that a decision waits for words. Words that arrive later do not change the decision. */
const WORDS_TIMEOUT_MS = 1_000;
/** The delay of the detection. During silence, this much audio is stored in addition to the prefix. */
const NOTICE_MS = 1_000;

/** @throws {Refusal} `input_audio_buffer_commit_empty` if there is too little audio for an item. */
export function checkCommitted(durationMs: number): void {
  if (durationMs >= MIN_COMMITTED_MS) return;
  const message =
    'Error committing input audio buffer: buffer too small. ' +
    `Expected at least ${MIN_COMMITTED_MS}ms of audio, but buffer only has ${durationMs.toFixed(2)}ms of audio.`;
  throw new Refusal('input_audio_buffer_commit_empty', message);
}

/** User audio that has become an item. */
export interface Utterance {
  readonly itemId: string;
  readonly samples: Int16Array;
  /** The words; absent if the audio has not been transcribed yet. */
  readonly words?: Promise<string>;
}

/** The input audio buffer, as a session uses it. */
export interface InputBuffer {
  /** Sets the utterance detection; with `null`, the client commits utterances. `language`: the language of the words. */
  configure(detection: TurnDetection | null, language: string): void;
  /** Sets the question that the user may be answering now. Absent if the buffer does not use questions. */
  expect?(question: OpenQuestion | null): void;
  /** @throws {Refusal} `input_audio_buffer_full` */
  append(samples: Int16Array): void;
  /** Commits all audio in the buffer as one utterance. @throws {Refusal} `input_audio_buffer_commit_empty` */
  commit(): Utterance;
  clear(): void;
  close(): void;
}

export interface InputAudioEvents {
  newItemId(): string;
  speechStarted(itemId: string, startMs: number): void;
  /** INPUT-AUDIO-6 */
  stopWords(itemId: string, text: string): void;
  speechStopped(itemId: string, endMs: number): void;
  /** Reports an utterance that was committed because the user stopped speaking. */
  committed(utterance: Utterance): void;
  detectionFailed(message: string): void;
  endOfTurnFailed(message: string): void;
}

export interface InputAudioOptions {
  readonly environment: Environment;
  readonly engine: SpeechEngine;
  /** The maximum length of an utterance, in milliseconds. */
  readonly longestUtteranceMs: number;
  /** Words are transcribed after this much silence, in milliseconds; null to wait for the end of the utterance. */
  readonly transcribeAfterMs: number | null;
  readonly endOfTurn?: EndOfTurn | undefined;
  /** How much quieter the user may be than in recent utterances, in dB; null for no limit. */
  readonly levelMarginDb: number | null;
}

/** A detector, and the position of its windows in the connection's audio. */
interface Listening {
  readonly detector: SpeechDetector;
  /** The probabilities of windows that have not been judged yet. */
  readonly waiting: number[];
  /** The end of the last judged window. */
  heardMs: number;
  /** The probabilities and levels of the windows since `windowsFromMs`. */
  windows: number[];
  levels: number[];
  windowsFromMs: number;
}

/** The current pause, which ends when speech continues. */
interface SpeechPause {
  /** The start of the audio before the pause. */
  readonly fromMs: number;
  readonly text: Promise<string>;
  /** The judgement; null until it is known. */
  end: TurnEnd | null;
}

export class InputAudio implements InputBuffer {
  readonly #options: InputAudioOptions;
  readonly #events: InputAudioEvents;
  readonly #buffer = new SoundBuffer(INPUT_SAMPLE_RATE_HZ);
  readonly #endpointer = new Endpointer();
  #detection: TurnDetection | null = null;
  #language = 'en';
  #question: OpenQuestion | null = null;
  #listening: Listening | null = null;
  readonly #gate: LevelGate | null;
  /** The levels of the current utterance's speech windows. */
  #speechLevels: number[] = [];
  /** The id that was announced for the current utterance. */
  #itemId: string | null = null;
  #pause: SpeechPause | null = null;
  /** The pause whose words the buffer is waiting for (INPUT-AUDIO-5). */
  #judged: SpeechPause | null = null;
  /** Settles when the last pause has been transcribed, because transcriptions must not overlap. */
  #lastText: Promise<unknown> = Promise.resolve();

  constructor(options: InputAudioOptions, events: InputAudioEvents) {
    this.#options = options;
    this.#events = events;
    const { levelMarginDb } = options;
    this.#gate = levelMarginDb === null ? null : new LevelGate(levelMarginDb);
  }

  configure(detection: TurnDetection | null, language: string): void {
    this.#detection = detection;
    this.#language = language;
    if (detection === null) this.#stopListening();
    else this.#listening ??= this.#startListening();
  }

  expect(question: OpenQuestion | null): void {
    this.#question = question;
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
      (windows) => {
        listening.waiting.push(...windows);
        this.#judgeWindows(listening);
      },
      (error: unknown) => this.#onDetectionFailed(listening, error),
    );
  }

  commit(): Utterance {
    const { startMs, endMs, durationMs } = this.#buffer;
    checkCommitted(durationMs);
    const itemId = this.#itemId ?? this.#events.newItemId();
    const samples = this.#buffer.take(startMs, endMs);
    this.#forgetSpeech();
    return { itemId, samples };
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
      detector: this.#options.engine.createDetector(INPUT_SAMPLE_RATE_HZ),
      waiting: [],
      heardMs: endMs,
      windows: [],
      levels: [],
      windowsFromMs: endMs,
    };
  }

  #stopListening(): void {
    const listening = this.#listening;
    this.#listening = null;
    listening?.detector.close();
    this.#forgetSpeech();
  }

  #forgetSpeech(): void {
    this.#endpointer.reset();
    this.#itemId = null;
    this.#pause = null;
    this.#judged = null;
    const listening = this.#listening;
    if (listening === null) return;
    listening.windows = [];
    listening.levels = [];
    // The judged pause is over, but the windows that waited for the judgement have not been processed yet.
    this.#judgeWindows(listening);
  }

  #judgeWindows(listening: Listening): void {
    // The client may turn the detector off in response to an event.
    while (this.#listening === listening && this.#judged === null) {
      const probability = listening.waiting.shift();
      if (probability === undefined) return;
      this.#judgeWindow(listening, probability);
    }
  }

  #judgeWindow(listening: Listening, anyVoice: number): void {
    const { windowMs } = listening.detector;
    listening.heardMs += windowMs;
    // Skips windows that consist mostly of audio that has been committed or cleared.
    if (listening.heardMs - windowMs / 2 < this.#buffer.startMs) return;
    if (listening.windows.length === 0) listening.windowsFromMs = listening.heardMs - windowMs;
    const settings = this.#detection && endpointingSettings(this.#detection);
    if (settings === null) return;
    const level = levelOf(this.#buffer.copy(listening.heardMs - windowMs, listening.heardMs));
    const probability = this.#gate
      ? this.#gate.admit(anyVoice, level, windowMs, settings.threshold)
      : anyVoice;
    listening.windows.push(probability);
    listening.levels.push(level);
    if (probability >= settings.threshold) this.#speechLevels.push(level);
    const endpoint = this.#endpointer.push({
      probability,
      endMs: listening.heardMs,
      windowMs,
      settings,
      silenceMs: this.#silenceMs(settings),
      longestMs: this.#options.longestUtteranceMs,
    });
    if (endpoint !== null) this.#onEndpoint(listening, endpoint, settings.threshold);
    else if (this.#endpointer.startMs === null) {
      if (probability < settings.threshold) this.#speechLevels = [];
      this.#forgetSilence(listening, settings.prefixPaddingMs);
    } else this.#duringUtterance(listening, this.#endpointer.startMs, settings);
  }

  /** Returns the duration of silence that would end the utterance now. */
  #silenceMs({ silenceMs }: EndpointingSettings): number {
    return typeof silenceMs === 'number' ? silenceMs : silenceMs[this.#pause?.end ?? 'finished'];
  }

  /** INPUT-AUDIO-4 */
  #duringUtterance(listening: Listening, startMs: number, settings: EndpointingSettings): void {
    const { heardMs } = listening;
    const silentMs = heardMs - this.#endpointer.lastSpeechMs;
    if (silentMs === 0) {
      this.#pause = null;
      return;
    }
    const { transcribeAfterMs } = this.#options;
    const isShort = this.#endpointer.lastSpeechMs - startMs < settings.prefixPaddingMs + SHORT_MS;
    if (transcribeAfterMs === null || silentMs < transcribeAfterMs / (isShort ? 3 : 1)) return;
    this.#pause ??= this.#beginPause(listening, startMs, settings.threshold);
    const { silenceMs } = settings;
    if (typeof silenceMs === 'number' || this.#pause.end !== null) return;
    // The next window may end the utterance.
    if (silentMs + listening.detector.windowMs >= silenceMs.answered)
      this.#judge(listening, this.#pause);
  }

  #beginPause(listening: Listening, startMs: number, threshold: number): SpeechPause {
    const { from, speech } = this.#speechSince(listening, startMs, threshold);
    const samples = this.#buffer.copy(from, listening.heardMs);
    const sound = { samples, sampleRateHz: INPUT_SAMPLE_RATE_HZ };
    const isPast = (): boolean => this.#pause !== pause;
    const text = this.#lastText.then(() => (isPast() ? '' : this.#hear(sound, speech)));
    const itemId = this.#itemId;
    this.#lastText = text.then(
      (words) => {
        if (itemId !== null && !isPast() && putsOff(words, this.#language))
          this.#events.stopWords(itemId, words);
      },
      () => undefined,
    );
    const pause: SpeechPause = { fromMs: from, text, end: null };
    return pause;
  }

  /** INPUT-AUDIO-5 */
  #judge(listening: Listening, pause: SpeechPause): void {
    const { endOfTurn, environment } = this.#options;
    const { scheduler } = environment;
    const question = this.#question;
    const language = this.#language;
    this.#judged = pause;
    const end = (turnEnd: TurnEnd): void => {
      cancel();
      pause.end ??= turnEnd;
      if (this.#judged !== pause) return;
      this.#judged = null;
      this.#judgeWindows(listening);
    };
    const cancel = scheduler.schedule(() => end('finished'), WORDS_TIMEOUT_MS, {
      isBackground: true,
    });
    const judge = {
      endOfTurn,
      scheduler,
      failed: (message: string) => this.#events.endOfTurnFailed(message),
    };
    const samples = this.#buffer.copy(pause.fromMs, listening.heardMs);
    const audio = { samples, sampleRateHz: INPUT_SAMPLE_RATE_HZ };
    const judged = pause.text.then((text) =>
      text === '' ? ('finished' as const) : judgeTurn(judge, { audio, text, question, language }),
    );
    // The failure of a transcription is reported when the utterance ends.
    judged.then(end, () => end('finished'));
  }

  #hear(sound: AudioFrame, speech: KnownSpeech): Promise<string> {
    const context = { question: this.#question, language: this.#language };
    return hearUtterance(this.#options.engine, sound, speech, context);
  }

  #onEndpoint(listening: Listening, endpoint: Endpoint, threshold: number): void {
    if (endpoint.type === 'started') {
      this.#itemId = this.#events.newItemId();
      const startMs = Math.max(endpoint.startMs, this.#buffer.startMs);
      this.#events.speechStarted(this.#itemId, Math.round(startMs));
      return;
    }
    const itemId = this.#itemId ?? this.#events.newItemId();
    const pause = this.#pause;
    this.#itemId = null;
    this.#pause = null;
    const level = nearestLevel(this.#speechLevels);
    this.#speechLevels = [];
    this.#gate?.ended();
    const { from, speech } = this.#speechSince(listening, endpoint.startMs, threshold);
    const samples = this.#buffer.take(from, endpoint.endMs);
    listening.windows = [];
    listening.levels = [];
    this.#events.speechStopped(itemId, Math.round(endpoint.endMs));
    const sound = { samples, sampleRateHz: INPUT_SAMPLE_RATE_HZ };
    const words = pause
      ? pause.text.then((text) => (text === '' ? this.#hear(sound, speech) : text))
      : this.#hear(sound, speech);
    words.then(
      (text) => {
        if (text !== '' && level !== null) this.#gate?.accepted(level);
      },
      () => undefined,
    );
    this.#events.committed({ itemId, samples, words });
  }

  /**
   * Returns the speech of the nearest voice since this time. It is cut at a window boundary, so that windows and
   * samples match.
   */
  #speechSince(
    listening: Listening,
    sinceMs: number,
    threshold: number,
  ): { readonly from: number; readonly speech: KnownSpeech } {
    const { windowMs } = listening.detector;
    const startMs = Math.max(sinceMs, listening.windowsFromMs);
    const since = Math.floor((startMs - listening.windowsFromMs) / windowMs);
    const elsewhere = this.#gate ? windowsBeforeNearest(listening.levels.slice(since)) : 0;
    const firstWindow = since + elsewhere;
    return {
      from: listening.windowsFromMs + firstWindow * windowMs,
      speech: { windows: listening.windows.slice(firstWindow), windowMs, threshold },
    };
  }

  #forgetSilence(listening: Listening, prefixPaddingMs: number): void {
    this.#buffer.dropBefore(listening.heardMs - prefixPaddingMs - NOTICE_MS);
    const { windowMs } = listening.detector;
    const surplus = Math.floor((this.#buffer.startMs - listening.windowsFromMs) / windowMs);
    if (surplus <= 0) return;
    listening.windows.splice(0, surplus);
    listening.levels.splice(0, surplus);
    listening.windowsFromMs += surplus * windowMs;
  }

  #onDetectionFailed(listening: Listening, error: unknown): void {
    if (this.#listening !== listening) return;
    this.#stopListening();
    if (this.#detection !== null) this.#listening = this.#startListening();
    this.#events.detectionFailed(messageOf(error));
  }
}

/** User audio that has not been committed yet, indexed by the time since the connection's first sample. */
export class SoundBuffer {
  readonly #samplesPerMs: number;
  #chunks: Int16Array[] = [];
  #startSample = 0;
  #endSample = 0;

  constructor(sampleRateHz: number) {
    this.#samplesPerMs = sampleRateHz / 1000;
  }

  /** The time of the first sample in the buffer, in milliseconds. */
  get startMs(): number {
    return this.#startSample / this.#samplesPerMs;
  }

  /** The total length of the audio appended so far, in milliseconds. */
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

  /** Removes and returns the audio from `fromMs` to `toMs`, and drops earlier audio. */
  take(fromMs: number, toMs: number): Int16Array {
    const taken = this.copy(fromMs, toMs);
    this.dropBefore(toMs);
    return taken;
  }

  /** Returns the audio in the buffer from `fromMs` to `toMs`. */
  copy(fromMs: number, toMs: number): Int16Array {
    const from = this.#clamp(fromMs);
    const copied = new Int16Array(Math.max(0, this.#clamp(toMs) - from));
    let filled = 0;
    let skipped = from - this.#startSample;
    for (const chunk of this.#chunks) {
      if (filled === copied.length) break;
      const first = Math.min(skipped, chunk.length);
      skipped -= first;
      const part = chunk.subarray(first, first + copied.length - filled);
      copied.set(part, filled);
      filled += part.length;
    }
    return copied;
  }

  /** Drops the audio before `ms`. */
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
