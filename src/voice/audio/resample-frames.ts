// Brings a stream of frames, of whatever rates, to one rate. Owns a resampler for
// each item; an item that already has the rate passes untouched.

import type { OperatorFunction } from 'rxjs';
import type { AudioFrame } from './audio-frame.ts';
import { processItems, type ItemOperatorOptions } from './item-operator.ts';
import { assertSampleRateHz, createResampler } from './resampler.ts';

/**
 * An operator that resamples frames to `toHz` and keeps their `itemId` and `responseId`. Frames
 * become a little shorter or longer than they were; the sum of an item is exact. A frame of a rate
 * that cannot be resampled ends the stream with a `ConfigurationError`: check at the edge with
 * `isSampleRateHz`.
 * @throws {ConfigurationError} `INVALID_SAMPLE_RATE` when `toHz` is not from 8000 to 48000.
 */
export function resampleFrames(
  toHz: number,
  options?: ItemOperatorOptions,
): OperatorFunction<AudioFrame, AudioFrame> {
  assertSampleRateHz('toHz', toHz);
  return processItems((first) => {
    const resampler = createResampler({ fromHz: first.sampleRateHz, toHz });
    return {
      sampleRateHz: toHz,
      push: (samples) => [resampler.process(samples)],
      end: () => [resampler.flush()],
    };
  }, options);
}
