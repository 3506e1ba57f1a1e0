// One piece of audio on its way between the user's device, the session and the model. Frames are short (20 to 100 ms)
// and are never machine events.

import { readable, shown } from '../../values/plain-checks.ts';
import { ConfigurationError, isA } from '../../values/errors.ts';

/** A piece of mono audio: signed 16-bit samples at `sampleRateHz`. */
export interface AudioFrame {
  /** Int16 samples, one channel, full scale ±32767. The receiver owns the samples; the sender never reuses them. */
  readonly samples: Int16Array;
  /** 24000 with OpenAI Realtime. A client may send audio at 8000 to 48000. */
  readonly sampleRateHz: number;
  /**
   * The item of the model's conversation that the audio belongs to. Audio that continues after a false interruption has
   * an alias of this id (`<id>~2`). Absent for user audio, and for background audio, whose playback the client does not
   * report.
   */
  readonly itemId?: string;
  /** The response that generated the audio; frames of a cancelled response are dropped. */
  readonly responseId?: string;
}

/**
 * Returns a frame's duration in milliseconds.
 * @throws {ConfigurationError} `INVALID_AUDIO` if the frame is invalid
 */
export function frameDurationMs(frame: Pick<AudioFrame, 'samples' | 'sampleRateHz'>): number {
  const { samples, sampleRateHz } = readable('frameDurationMs', frame);
  assertSamples('frameDurationMs', samples);
  if (typeof sampleRateHz !== 'number' || !(sampleRateHz > 0))
    throw new ConfigurationError(
      'INVALID_AUDIO',
      `frameDurationMs: expected \`sampleRateHz\` to be a number above 0, got ${shown(sampleRateHz)}`,
    );
  return (samples.length * 1000) / sampleRateHz;
}

/** @throws {ConfigurationError} `INVALID_AUDIO` unless the value is an `Int16Array` */
export function assertSamples(where: string, samples: unknown): asserts samples is Int16Array {
  if (isA(samples, Int16Array) && !samples.buffer.detached) return;
  const message = `${where}: expected samples in an Int16Array, got ${shown(samples)}`;
  throw new ConfigurationError('INVALID_AUDIO', message);
}

/** @throws {ConfigurationError} `INVALID_AUDIO` unless the value is a `Uint8Array` */
export function assertBytes(where: string, bytes: unknown): asserts bytes is Uint8Array {
  if (isA(bytes, Uint8Array) && !bytes.buffer.detached) return;
  const message = `${where}: expected bytes in a Uint8Array, got ${shown(bytes)}`;
  throw new ConfigurationError('INVALID_AUDIO', message);
}
