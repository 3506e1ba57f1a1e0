// The port to ears and a mouth: what the server needs of a speech engine. The
// built-in one (`built-in-engine.ts`) runs small models in worker threads; tests
// script one. Transcription and synthesis can be somebody else's (`Ears`, `Voice`).

import type { AudioFrame } from '../../../voice/audio/audio-frame.ts';
import type { Ears } from '../../../voice/speech/voice.ts';

/** What is to be said, and how. */
export interface SpokenRequest {
  readonly text: string;
  /** One of `voices`. */
  readonly voice: string;
  /** 1 is the voice's own pace; 0.25 to 1.5. */
  readonly speed: number;
}

/** Listens to one stream of sound. */
export interface SpeechDetector {
  /** Length of the stretch that one probability speaks of. */
  readonly windowMs: number;
  /**
   * Takes the next samples of the stream, at the rate that it was made for.
   * Resolves, in the order of the calls, with the probability of speech (0 to 1) in each window
   * that these samples completed; windows follow each other without a gap from the first sample.
   * Rejects when the engine failed; the stream can go on after that, with fresh windows.
   */
  push(samples: Int16Array): Promise<readonly number[]>;
  /** Forgets the stream. Later calls of `push` resolve with no windows. */
  close(): void;
}

/** Hears and speaks. Everything that it promises may reject with a `ProviderError`. */
export interface SpeechEngine extends Ears {
  /** Names of the voices, the default first. */
  readonly voices: readonly string[];
  /** Loads what it needs; resolves when it can hear and speak. Called before anything else, maybe more than once. */
  start(): Promise<void>;
  /** A detector for one stream of sound at this rate. */
  createDetector(sampleRateHz: number): SpeechDetector;
  /**
   * The sound of a text; silence of length 0 when there is nothing that can be pronounced. When
   * the signal aborts nobody wants it any more.
   */
  synthesize(request: SpokenRequest, signal?: AbortSignal): Promise<AudioFrame>;
  /** Lets go of threads and memory. What is under way rejects. */
  close(): Promise<void>;
}
