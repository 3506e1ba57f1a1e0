// Detects the start and end of utterances in a stream of speech probabilities. It does not use a clock, because it
// derives time from the length of the audio.
//
// ENDPOINTING-1. `started` and `stopped` alternate, starting with `started`.
// ENDPOINTING-2. Speech shorter than two windows (64 ms, such as a click or a breath) does not start an utterance.
// ENDPOINTING-3. An utterance ends after `silenceMs` without speech. A shorter pause is part of the utterance.
// ENDPOINTING-4. An utterance lasts at most `longestMs`. Later speech belongs to the next utterance, so that no speech
//     is lost.

import type { TurnEnd } from './end-of-turn.ts';
import type { TurnDetection } from './session-config.ts';

/** The silence that ends an utterance, depending on its words. */
type Waits = Readonly<Record<TurnEnd, number>>;

export interface EndpointingSettings {
  /** A window with at least this probability counts as speech. */
  readonly threshold: number;
  /** The duration of audio before the first speech that belongs to the utterance. */
  readonly prefixPaddingMs: number;
  /** The silence that ends an utterance. With `Waits`, it depends on the words. */
  readonly silenceMs: number | Waits;
}

export type Endpoint =
  | { readonly type: 'started'; readonly startMs: number }
  /** `endMs` includes the silence that ended the utterance. */
  | { readonly type: 'stopped'; readonly startMs: number; readonly endMs: number };

const WINDOWS_TO_START = 2;
/**
 * The tolerance after the start of an utterance. Syllables fade, so a slightly lower probability still counts as
 * speech.
 */
const HYSTERESIS = 0.15;
const LEAST_THRESHOLD = 0.01;

/** The duration of the pauses that end an utterance. Low eagerness suits people who think while they speak. */
const SEMANTIC_SILENCE_MS = {
  low: { answered: 500, finished: 1_200, unfinished: 2_500 },
  medium: { answered: 300, finished: 500, unfinished: 1_800 },
  auto: { answered: 300, finished: 500, unfinished: 1_800 },
  high: { answered: 300, finished: 400, unfinished: 1_500 },
} as const satisfies Record<string, Waits>;
/**
 * The longest pause within an utterance with `semantic_vad`. The parts before and after it are transcribed together.
 */
export const LONGEST_PAUSE_MS = SEMANTIC_SILENCE_MS.low.unfinished;
const SEMANTIC_PREFIX_PADDING_MS = 300;
const SEMANTIC_THRESHOLD = 0.5;

/** Returns the settings for `turn_detection`. */
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

/** Returns the probability below which a window counts as silence during an utterance. */
export function silenceThreshold(threshold: number): number {
  return Math.max(threshold - HYSTERESIS, LEAST_THRESHOLD);
}

/** One window of audio, and the settings for it. */
export interface Window {
  /** The window's speech probability. */
  readonly probability: number;
  /** The time at the end of the window, measured in the stream. */
  readonly endMs: number;
  readonly windowMs: number;
  /** The duration of silence that would end an utterance now. */
  readonly silenceMs: number;
  readonly longestMs: number;
  readonly settings: Pick<EndpointingSettings, 'threshold' | 'prefixPaddingMs'>;
}

export class Endpointer {
  /** The number of consecutive speech windows while no utterance has started. */
  #run = 0;
  #startMs: number | null = null;
  #lastSpeechMs = 0;

  /** The start of the current utterance; null between utterances. */
  get startMs(): number | null {
    return this.#startMs;
  }

  /** The end of the current utterance's last speech window. */
  get lastSpeechMs(): number {
    return this.#lastSpeechMs;
  }

  push({ probability, endMs, windowMs, silenceMs, longestMs, settings }: Window): Endpoint | null {
    const { threshold, prefixPaddingMs } = settings;
    if (this.#startMs === null) {
      this.#run = probability >= threshold ? this.#run + 1 : 0;
      if (this.#run < WINDOWS_TO_START) return null;
      const startMs = Math.max(0, endMs - this.#run * windowMs - prefixPaddingMs);
      this.#startMs = startMs;
      this.#lastSpeechMs = endMs;
      return { type: 'started', startMs };
    }
    if (probability >= silenceThreshold(threshold)) this.#lastSpeechMs = endMs;
    const isSilent = endMs - this.#lastSpeechMs >= Math.max(silenceMs, windowMs);
    if (!isSilent && endMs - this.#startMs < longestMs) return null;
    const startMs = this.#startMs;
    this.reset();
    return { type: 'stopped', startMs, endMs };
  }

  /** Resets the detection of the current utterance. */
  reset(): void {
    this.#run = 0;
    this.#startMs = null;
  }
}
