// One stretch of sound, as it travels between the user's device, the session and
// the model. Frames are small (20 to 100 ms) and are never events of a machine.

import { readable, shown } from '../../values/checks.ts';
import { ConfigurationError, isA } from '../../values/errors.ts';

/** A stretch of mono sound: signed 16-bit samples at `sampleRateHz`. */
export interface AudioFrame {
  /** Int16 samples, one channel, full scale ±32767. Owned by the receiver; never reused by the sender. */
  readonly samples: Int16Array;
  /** 24000 on the OpenAI Realtime wire; 8000 to 48000 are accepted from a client. */
  readonly sampleRateHz: number;
  /**
   * Audio of the model names the conversation item that it belongs to; what goes on after a false
   * interruption has a name of its own (`<id>~2`). Audio of the user has none, nor has what is no
   * speech: it is played, and not reported.
   */
  readonly itemId?: string;
  /** The response that made it; a frame of a cancelled response is dropped. */
  readonly responseId?: string;
}

/**
 * How long a frame sounds, in milliseconds.
 * @throws {ConfigurationError} `INVALID_AUDIO` for what is no frame
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

/** @throws {ConfigurationError} `INVALID_AUDIO` for what is no `Int16Array`. */
export function assertSamples(where: string, samples: unknown): asserts samples is Int16Array {
  if (isA(samples, Int16Array) && !samples.buffer.detached) return;
  const message = `${where}: expected samples in an Int16Array, got ${shown(samples)}`;
  throw new ConfigurationError('INVALID_AUDIO', message);
}

/** @throws {ConfigurationError} `INVALID_AUDIO` for what is no `Uint8Array`. */
export function assertBytes(where: string, bytes: unknown): asserts bytes is Uint8Array {
  if (isA(bytes, Uint8Array) && !bytes.buffer.detached) return;
  const message = `${where}: expected bytes in a Uint8Array, got ${shown(bytes)}`;
  throw new ConfigurationError('INVALID_AUDIO', message);
}
