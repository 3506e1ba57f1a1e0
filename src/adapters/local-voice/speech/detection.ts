// Detection of speech in many streams, with Silero. Runs inside a thread.

import type { AudioFrame } from '../../../voice/audio/audio-frame.ts';
import { createResampler, type Resampler, toFloat } from '../../../voice/audio/resampler.ts';
import type { Onnx } from './onnx.ts';
import { SILERO_SAMPLE_RATE_HZ, Silero, type SileroStream } from './silero.ts';

interface Stream {
  readonly resampler: Resampler;
  readonly silero: SileroStream;
  last: Promise<unknown>;
}

export class Detection {
  readonly #silero: Silero;
  readonly #streams = new Map<number, Stream>();

  private constructor(silero: Silero) {
    this.#silero = silero;
  }

  /** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
  static async load(onnx: Onnx): Promise<Detection> {
    return new Detection(await Silero.load(onnx));
  }

  detect(streamId: number, sound: AudioFrame): Promise<readonly number[]> {
    const stream = this.#streams.get(streamId) ?? this.#begin(streamId, sound.sampleRateHz);
    const samples = toFloat(stream.resampler.process(sound.samples));
    const windows = stream.last.then(() => stream.silero.push(samples));
    stream.last = windows.catch(() => undefined);
    return windows;
  }

  forget(streamId: number): void {
    this.#streams.delete(streamId);
  }

  #begin(streamId: number, fromHz: number): Stream {
    const stream: Stream = {
      resampler: createResampler({ fromHz, toHz: SILERO_SAMPLE_RATE_HZ }),
      silero: this.#silero.createStream(),
      last: Promise.resolve(),
    };
    this.#streams.set(streamId, stream);
    return stream;
  }
}
