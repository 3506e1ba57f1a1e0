// Operators on frame streams: `reframe` cuts frames to one length, `resampleFrames` converts them to one rate. Each
// operator stores state for the current item, and emits the samples that it is holding back when the item ends.
//
// An item is a run of frames with the same `itemId`, `responseId` and rate (user audio has no ids and is one long
// item). An item ends when a frame of another item arrives, when the source completes, or when `endOfItem` emits. The
// frames alone do not show that the last word has been spoken.

import {
  checkOptions,
  objectWith,
  optional,
  type OptionChecks,
  shown,
} from '../../values/plain-checks.ts';
import { Observable, type OperatorFunction } from 'rxjs';
import type { AudioFrame } from './audio-frame.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { assertSampleRateHz, createResampler } from './resampler.ts';

export interface ItemOperatorOptions {
  /**
   * Emits when the current item is complete (for model audio: `response.ended`), so that the last milliseconds of the
   * item are not held back until the next item starts. If `endOfItem` fails, the error is passed downstream. If it
   * completes, this has no effect.
   * @defaultValue none: the last milliseconds are emitted with the next item or when the source ends
   */
  readonly endOfItem?: Observable<unknown>;
}

const optionChecks: OptionChecks<ItemOperatorOptions> = {
  endOfItem: optional(objectWith('an Observable', 'subscribe')),
};

/**
 * Returns an operator that cuts each item into frames of `frameMs` (rounded to whole samples); the last frame of an
 * item may be shorter. Frames keep their `itemId` and `responseId`. A model sends 100 ms or more at a time; a speaker,
 * a speech detector and a bounded buffer work better with 20 ms.
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

/**
 * Returns an operator that resamples frames to `toHz` and keeps their `itemId` and `responseId`. Single frames become
 * slightly shorter or longer, but the total length of an item is exact. A frame with an unsupported rate ends the
 * stream with a `ConfigurationError`; check the rate with `isSampleRateHz` first.
 * @throws {ConfigurationError} `INVALID_SAMPLE_RATE` unless `toHz` is between 8000 and 48000
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

/** Processes one item's audio. */
interface ItemProcessor {
  /** Adds samples. Returns the output that is complete so far; empty arrays are skipped. */
  push(samples: Int16Array): readonly Int16Array[];
  /** Returns the samples that have been held back. Called once, after the last call of `push`. */
  end(): readonly Int16Array[];
  /** The output rate. */
  readonly sampleRateHz: number;
}

/** Returns an operator that creates a processor for each item and adds the item's ids to the output. */
function processItems(
  open: (first: AudioFrame) => ItemProcessor,
  options: ItemOperatorOptions = {},
): OperatorFunction<AudioFrame, AudioFrame> {
  checkOptions('options', optionChecks, options);
  return (source) =>
    new Observable((subscriber) => {
      let current: { readonly head: AudioFrame; readonly processor: ItemProcessor } | undefined;

      const emit = (
        head: AudioFrame,
        processor: ItemProcessor,
        out: readonly Int16Array[],
      ): void => {
        for (const samples of out) {
          if (samples.length === 0) continue;
          subscriber.next({ ...head, samples, sampleRateHz: processor.sampleRateHz });
        }
      };
      const endItem = (): void => {
        if (current === undefined) return;
        const { head, processor } = current;
        current = undefined;
        emit(head, processor, processor.end());
      };

      subscriber.add(
        options.endOfItem?.subscribe({
          next: endItem,
          error: (error: unknown) => subscriber.error(error),
        }),
      );
      subscriber.add(
        source.subscribe({
          next: (frame) => {
            if (current !== undefined && !isSameItem(current.head, frame)) endItem();
            try {
              current ??= { head: frame, processor: open(frame) };
            } catch (error) {
              subscriber.error(error);
              return;
            }
            emit(current.head, current.processor, current.processor.push(frame.samples));
          },
          error: (error: unknown) => subscriber.error(error),
          complete: () => {
            endItem();
            subscriber.complete();
          },
        }),
      );
    });
}

function isSameItem(a: AudioFrame, b: AudioFrame): boolean {
  return (
    a.itemId === b.itemId && a.responseId === b.responseId && a.sampleRateHz === b.sampleRateHz
  );
}
