// The speaker's end in the audio thread.
// In: `{ itemId, samples }` to play, `{ clear: true }`. Out: playout reports.

/* oxlint-disable unicorn/require-post-message-target-origin -- a port of the audio thread has no origin */

import { PlaybackQueue } from './playback-queue.ts';

export type PlaybackMessage =
  | { readonly itemId: string; readonly samples: Int16Array }
  | { readonly clear: true };

class Playback extends AudioWorkletProcessor {
  readonly #queue = new PlaybackQueue(sampleRate);

  constructor() {
    super();
    this.port.addEventListener('message', ({ data }: MessageEvent<PlaybackMessage>) => {
      if ('clear' in data) {
        const report = this.#queue.clear();
        if (report) this.port.postMessage(report);
      } else {
        this.#queue.push(data.itemId, data.samples);
      }
    });
    this.port.start();
  }

  process(_inputs: Float32Array[][], outputs: Float32Array[][]): boolean {
    const output = outputs[0]?.[0];
    if (output) for (const report of this.#queue.pull(output)) this.port.postMessage(report);
    return true;
  }
}

registerProcessor('playback', Playback);
