// Cuts a stream of frames into frames of one length. A model sends 100 ms and more at once; a speaker, a
// speech detector and a bounded buffer prefer 20 ms.

import { shown } from '../../values/plain-checks.ts';
import type { OperatorFunction } from 'rxjs';
import { ConfigurationError } from '../../values/errors.ts';
import type { AudioFrame } from './audio-frame.ts';
import { processItems, type ItemOperatorOptions } from './item-operator.ts';

/**
 * Returns an operator that cuts each item into frames of `frameMs` (rounded to whole samples); the last frame
 * of an item has the remaining length. Frames keep their `itemId` and `responseId`.
 * @throws {ConfigurationError} `INVALID_OPTION` if `frameMs` is not a number from 1 to 1000.
 */
export function reframe(
  frameMs: number,
  options?: ItemOperatorOptions,
): OperatorFunction<AudioFrame, AudioFrame> {
  if (typeof frameMs !== 'number' || !(frameMs >= 1 && frameMs <= 1000)) {
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`frameMs\` to be a number from 1 to 1000, got ${shown(frameMs)}`,
    );
  }
  return processItems((first) => {
    const frameLength = Math.max(1, Math.round((first.sampleRateHz * frameMs) / 1000));
    let partial = new Int16Array(frameLength);
    let filled = 0;
    return {
      sampleRateHz: first.sampleRateHz,
      push: (samples) => {
        const frames: Int16Array[] = [];
        for (let read = 0; read < samples.length;) {
          const take = Math.min(frameLength - filled, samples.length - read);
          partial.set(samples.subarray(read, read + take), filled);
          read += take;
          filled += take;
          if (filled < frameLength) continue;
          frames.push(partial);
          partial = new Int16Array(frameLength);
          filled = 0;
        }
        return frames;
      },
      end: () => [partial.slice(0, filled)],
    };
  }, options);
}
