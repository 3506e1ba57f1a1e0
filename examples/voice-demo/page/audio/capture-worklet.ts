// The microphone's end in the audio thread.
// In: `{ open }`. Out: frames of 20 ms with their loudness.

import { CaptureFramer } from './capture-framer.ts';

class Capture extends AudioWorkletProcessor {
  readonly #framer = new CaptureFramer(sampleRate);

  constructor() {
    super();
    this.port.addEventListener('message', ({ data }: MessageEvent<{ readonly open: boolean }>) => {
      this.#framer.setOpen(data.open);
    });
    this.port.start();
  }

  process(inputs: Float32Array[][]): boolean {
    const input = inputs[0]?.[0];
    if (!input) return true;
    for (const frame of this.#framer.push(input))
      this.port.postMessage(frame, [frame.samples.buffer]);
    return true;
  }
}

registerProcessor('capture', Capture);
