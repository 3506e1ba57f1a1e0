// The fake's input audio buffer: it only counts and stores audio; the test decides where speech starts and ends, and
// its words.

import {
  checkCommitted,
  INPUT_SAMPLE_RATE_HZ,
  type InputAudioEvents,
  type InputBuffer,
  type Utterance,
  SoundBuffer,
} from '../../../adapters/local-voice/input-audio.ts';
import type { TurnDetection } from '../../../adapters/local-voice/session-config.ts';
import { ProviderError } from '../../../values/errors.ts';
import type { TranscriptTiming } from '../engine/control.ts';
import type { Timers } from '../engine/timers.ts';

/** The duration of silence that is kept. */
const PREFIX_MS = 1_000;

/** An utterance's words, and when they become known. */
export interface Spoken {
  readonly text: string;
  readonly words: Promise<string>;
}

const nothingSaid: Spoken = { text: '', words: Promise.resolve('') };

export class FakeTranscriber implements InputBuffer {
  readonly #events: InputAudioEvents;
  readonly #onCommitted: (itemId: string, text: string) => void;
  readonly #buffer = new SoundBuffer(INPUT_SAMPLE_RATE_HZ);
  #listens = false;
  #itemId: string | null = null;
  /** Words spoken without turn detection, which belong to the next commit. */
  #spoken = nothingSaid;

  constructor(events: InputAudioEvents, onCommitted: (itemId: string, text: string) => void) {
    this.#events = events;
    this.#onCommitted = onCommitted;
  }

  /** The audio since the connection started. */
  get heardMs(): number {
    return this.#buffer.endMs;
  }

  configure(detection: TurnDetection | null): void {
    this.#listens = detection !== null;
    if (!this.#listens) this.#itemId = null;
  }

  append(samples: Int16Array): void {
    this.#buffer.append(samples);
    if (this.#listens && this.#itemId === null) {
      this.#buffer.dropBefore(this.#buffer.endMs - PREFIX_MS);
    }
  }

  commit(): Utterance {
    const { startMs, endMs, durationMs } = this.#buffer;
    checkCommitted(durationMs);
    const spoken = this.#spoken;
    this.#spoken = nothingSaid;
    return this.#utterance(spoken, startMs, endMs);
  }

  clear(): void {
    this.#buffer.dropBefore(this.#buffer.endMs);
    this.#itemId = null;
    this.#spoken = nothingSaid;
  }

  close(): void {}

  begin(): void {
    if (!this.#listens) return;
    this.#itemId = this.#events.newItemId();
    this.#events.speechStarted(this.#itemId, Math.round(this.#buffer.endMs));
  }

  end(spoken: Spoken): void {
    if (!this.#listens || this.#itemId === null) {
      this.#spoken = spoken;
      return;
    }
    const { startMs, endMs } = this.#buffer;
    this.#events.speechStopped(this.#itemId, Math.round(endMs));
    this.#events.committed(this.#utterance(spoken, startMs, endMs));
  }

  #utterance({ text, words }: Spoken, startMs: number, endMs: number): Utterance {
    const itemId = this.#itemId ?? this.#events.newItemId();
    this.#itemId = null;
    this.#onCommitted(itemId, text);
    return { itemId, samples: this.#buffer.take(startMs, endMs), words };
  }
}

export function transcriptOf(
  text: string,
  timing: TranscriptTiming,
  timers: Timers,
): Promise<string> {
  if (typeof timing === 'object') {
    return new Promise((resolve) => {
      timers.later(() => resolve(text), timing.lateMs);
    });
  }
  switch (timing) {
    case 'none':
      return new Promise(() => {});
    case 'failed': {
      const failed = Promise.reject(
        new ProviderError('audio_unintelligible', 'The audio could not be transcribed.'),
      );
      // The session reads the rejection if the client wants transcripts; otherwise it is not a failure.
      failed.catch(() => {});
      return failed;
    }
    case 'prompt':
    case 'early':
    case 'duplicated':
      return Promise.resolve(text);
  }
}
