// The port to a speech engine. The built-in engine (`built-in-engine.ts`) runs small models in worker threads; tests
// use scripted engines. Transcription and synthesis may be external (`Transcriber`, `Voice`).

import type { AudioFrame } from '../../../voice/audio/audio-frame.ts';
import type { Transcriber } from '../../../voice/speech/voice.ts';

/** A request for speech. */
export interface SpokenRequest {
  /** The words to speak. */
  readonly text: string;
  /** One of `voices`. */
  readonly voice: string;
  /** The relative speed, 0.25 to 1.5; 1 is the normal pace of the voice. */
  readonly speed: number;
}

/** Detects speech in one stream of audio. */
export interface SpeechDetector {
  /** The length of audio that one probability covers. */
  readonly windowMs: number;
  /**
   * Adds the next samples of the stream, at the detector's rate. Resolves, in the order of the calls, with the
   * probability of speech (0 to 1) in each window that these samples completed; windows follow each other without a gap
   * from the first sample. Rejects if the engine failed; the stream can continue after that, with new windows.
   */
  push(samples: Int16Array): Promise<readonly number[]>;
  /** Ends the stream. Later calls of `push` resolve with no windows. */
  close(): void;
}

/** Transcribes and speaks. All promises may reject with a `ProviderError`. */
export interface SpeechEngine extends Transcriber {
  /** Names of the voices, the default first. */
  readonly voices: readonly string[];
  /** Loads the models; resolves once the engine is ready. Called first, possibly more than once. */
  start(): Promise<void>;
  /** Creates a detector for one stream of audio at this rate. */
  createDetector(sampleRateHz: number): SpeechDetector;
  /**
   * Returns the audio of a text; empty if the text has nothing to pronounce. The signal aborts when the audio is no
   * longer wanted.
   */
  synthesize(request: SpokenRequest, signal?: AbortSignal): Promise<AudioFrame>;
  /** Frees threads and memory. Pending calls reject. */
  close(): Promise<void>;
}
