// Listening: detection of speech for many streams, and transcription, one at a time
// each. Runs inside the thread `ears`.

import type { AudioFrame } from '../../../voice/audio-frame.ts';
import { createResampler, type Resampler } from '../../../voice/audio/resampler.ts';
import { MOONSHINE_SAMPLE_RATE_HZ, Moonshine } from './moonshine.ts';
import { loadOnnx } from './onnx.ts';
import { resampleSound, toFloat } from './resample-sound.ts';
import { SILERO_SAMPLE_RATE_HZ, Silero, type SileroStream } from './silero.ts';

interface Stream {
  readonly resampler: Resampler;
  readonly silero: SileroStream;
  last: Promise<unknown>;
}

export class Ears {
  readonly #silero: Silero;
  readonly #moonshine: Moonshine;
  readonly #streams = new Map<number, Stream>();
  #lastTranscription: Promise<unknown> = Promise.resolve();

  private constructor(silero: Silero, moonshine: Moonshine) {
    this.#silero = silero;
    this.#moonshine = moonshine;
  }

  /** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
  static async load(): Promise<Ears> {
    const onnx = await loadOnnx();
    const ears = new Ears(await Silero.load(onnx), await Moonshine.load(onnx));
    // The first run of a model is slow: let nobody wait for it.
    await ears.#moonshine.transcribe(new Float32Array(MOONSHINE_SAMPLE_RATE_HZ));
    return ears;
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

  transcribe(speech: AudioFrame): Promise<string> {
    const samples = toFloat(resampleSound(speech, MOONSHINE_SAMPLE_RATE_HZ));
    const text = this.#lastTranscription.then(() => this.#moonshine.transcribe(samples));
    this.#lastTranscription = text.catch(() => undefined);
    return text;
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
