// Transcription, one at a time, with Moonshine. Runs inside a thread.

import type { AudioFrame } from '../../../voice/audio/audio-frame.ts';
import { MOONSHINE_SAMPLE_RATE_HZ, Moonshine } from './moonshine.ts';
import type { Onnx } from './onnx.ts';
import { resampleSound, toFloat } from '../../../voice/audio/resampler.ts';

export class Transcription {
  readonly #moonshine: Moonshine;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(moonshine: Moonshine) {
    this.#moonshine = moonshine;
  }

  /** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
  static async load(onnx: Onnx): Promise<Transcription> {
    const moonshine = await Moonshine.load(onnx);
    // The first run of a model is slow, so it happens while loading.
    await moonshine.transcribe(new Float32Array(MOONSHINE_SAMPLE_RATE_HZ));
    return new Transcription(moonshine);
  }

  transcribe(speech: AudioFrame): Promise<string> {
    const samples = toFloat(resampleSound(speech, MOONSHINE_SAMPLE_RATE_HZ));
    const text = this.#last.then(() => this.#moonshine.transcribe(samples));
    this.#last = text.catch(() => undefined);
    return text;
  }
}
