// The interface to a speech engine. The built-in engine (`built-in-engine.ts`) runs small models in worker threads.
// Tests use scripted engines. External services (`Transcriber`, `Voice`) can perform transcription and synthesis.

import type { AudioFrame } from '../../../voice/audio/audio-frame.ts';
import type { Transcriber } from '../../../voice/speech/voice.ts';

/** A request for speech. */
export interface SpokenRequest {
  /** The text to speak. */
  readonly text: string;
  /** One of `voices`. */
  readonly voice: string;
  /** The relative speed, from 0.25 to 1.5; 1 is the voice's normal pace. */
  readonly speed: number;
}

/** Detects speech in one audio stream. */
export interface SpeechDetector {
  /** The duration of audio to which one probability applies. */
  readonly windowMs: number;
  /**
   * Adds the next samples of the stream, at the detector's rate. Resolves, in the order of the calls, with the speech
   * probability (0 to 1) of each window that these samples complete. Windows are contiguous, starting at the first
   * sample. Rejects if the engine fails. The stream can then continue with new windows.
   */
  push(samples: Int16Array): Promise<readonly number[]>;
  /** Ends the stream. Later calls to `push` resolve without windows. */
  close(): void;
}

/** Transcribes and speaks. All promises may reject with a `ProviderError`. */
export interface SpeechEngine extends Transcriber {
  /** The names of the voices, starting with the default. */
  readonly voices: readonly string[];
  /** Loads the models. Resolves once the engine is ready. Called before all other methods, possibly more than once. */
  start(): Promise<void>;
  /** Creates a detector for one audio stream at this rate. */
  createDetector(sampleRateHz: number): SpeechDetector;
  /**
   * Returns a text's audio; empty if the text contains nothing to say. The signal is aborted when the audio is no
   * longer needed.
   */
  synthesize(request: SpokenRequest, signal?: AbortSignal): Promise<AudioFrame>;
  /** Frees threads and memory. Pending calls reject. */
  close(): Promise<void>;
}
