// Resamples a stream of frames of any rates to one rate. Owns a resampler per item; an item that already has
// the rate passes unchanged.

import type { OperatorFunction } from 'rxjs';
import type { AudioFrame } from './audio-frame.ts';
import { processItems, type ItemOperatorOptions } from './item-operator.ts';
import { assertSampleRateHz, createResampler } from './resampler.ts';

/**
 * Returns an operator that resamples frames to `toHz` and keeps their `itemId` and `responseId`. Single
 * frames become slightly shorter or longer; the length of an item is exact. A frame with an unsupported rate
 * ends the stream with a `ConfigurationError`: check at the edge with `isSampleRateHz`.
 * @throws {ConfigurationError} `INVALID_SAMPLE_RATE` if `toHz` is not from 8000 to 48000.
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
