// Detects the start and the end of utterances in a stream of speech probabilities. Pure: it uses the time of
// the sound only, never a clock.
//
// ENDPOINTING-1. `started` and `stopped` alternate, beginning with `started`.
// ENDPOINTING-2. Speech shorter than two windows (64 ms: a click, a breath) starts nothing.
// ENDPOINTING-3. An utterance ends when no window was speech for `silenceMs`; a pause that is shorter is part of it.

import type { TurnDetection } from './session-config.ts';

export interface EndpointingSettings {
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
export function silenceThreshold(threshold: number): number {
  return Math.max(threshold - HYSTERESIS, LEAST_THRESHOLD);
}

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
