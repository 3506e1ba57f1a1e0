// The common shape of operators that keep state while they process the sound of one item, and release the
// samples that they hold back when it ends.
//
// An item is a run of frames with the same `itemId`, `responseId` and rate (the user's sound has no ids: it
// is one long item). It ends when a frame of another item arrives, when the source completes, or when
// `endOfItem` emits: a stream of frames does not show by itself that the last word was spoken.

import {
  checkOptions,
  objectWith,
  optional,
  type OptionChecks,
} from '../../values/plain-checks.ts';
import { Observable, type OperatorFunction } from 'rxjs';
import type { AudioFrame } from './audio-frame.ts';

export interface ItemOperatorOptions {
  /**
   * Emits when the current item is complete (for a model's sound: `response.ended`), so that its last
   * milliseconds are not held back until the next item begins. Its errors go downstream; its completion has
   * no effect.
   * @defaultValue none: the last milliseconds come with the next item or the end of the source
   */
  readonly endOfItem?: Observable<unknown>;
}

const optionChecks: OptionChecks<ItemOperatorOptions> = {
  endOfItem: optional(objectWith('an Observable', 'subscribe')),
};

/** Processes the sound of one item. */
export interface ItemProcessor {
  /** Adds samples. Returns the output that is complete; empty arrays are skipped. */
  push(samples: Int16Array): readonly Int16Array[];
  /** Returns the samples that were held back. Called once, last. */
  end(): readonly Int16Array[];
  /** The rate of the output. */
  readonly sampleRateHz: number;
}

/** Returns an operator that opens a processor for each item and stamps the output with the item's ids. */
export function processItems(
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
