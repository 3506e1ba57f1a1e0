// The first stage of speech to text: Silero VAD v6 (weights from @ricky0123/vad-web) computes the speech probability of
// each 32 ms of audio in 0.2 ms of CPU time.

import { fileURLToPath } from 'node:url';
import {
  SESSION_OPTIONS,
  type Onnx,
  voiceFile,
  type InferenceSession,
  type Tensor,
} from './voice-packages.ts';

export const SILERO_SAMPLE_RATE_HZ = 16_000;
const WINDOW_SAMPLES = 512;
/** The number of samples from the previous window that precede each window in the model's input. */
const CONTEXT_SAMPLES = 64;
const STATE_SHAPE = [2, 1, 128] as const;

export const SILERO_WINDOW_MS = (WINDOW_SAMPLES * 1000) / SILERO_SAMPLE_RATE_HZ;

/** The weights, shared by all streams. */
export class Silero {
  readonly #onnx: Onnx;
  readonly #session: InferenceSession;

  private constructor(onnx: Onnx, session: InferenceSession) {
    this.#onnx = onnx;
    this.#session = session;
  }

  /** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
  static async load(onnx: Onnx): Promise<Silero> {
    const weights = voiceFile('@ricky0123/vad-web', 'dist/silero_vad_v6.onnx');
    return new Silero(
      onnx,
      await onnx.InferenceSession.create(fileURLToPath(weights), SESSION_OPTIONS),
    );
  }

  createStream(): SileroStream {
    return new SileroStream(this.#onnx, this.#session);
  }
}

/** The model's state for one audio stream. Calls to `push` must not overlap. */
export class SileroStream {
  readonly #onnx: Onnx;
  readonly #session: InferenceSession;
  readonly #sampleRate: Tensor;
  #state: Tensor;
  /** The end of the last window and the later samples, which do not fill another window yet. */
  #pending = new Float32Array(CONTEXT_SAMPLES);

  constructor(onnx: Onnx, session: InferenceSession) {
    this.#onnx = onnx;
    this.#session = session;
    this.#sampleRate = new onnx.Tensor('int64', BigInt64Array.of(BigInt(SILERO_SAMPLE_RATE_HZ)));
    const silence = new Float32Array(STATE_SHAPE[0] * STATE_SHAPE[1] * STATE_SHAPE[2]);
    this.#state = new onnx.Tensor('float32', silence, STATE_SHAPE);
  }

  /** @param samples Audio at 16000 Hz, ±1. */
  async push(samples: Float32Array): Promise<number[]> {
    const sound = new Float32Array(this.#pending.length + samples.length);
    sound.set(this.#pending);
    sound.set(samples, this.#pending.length);
    const probabilities: number[] = [];
    let start = 0;
    const length = CONTEXT_SAMPLES + WINDOW_SAMPLES;
    for (; start + length <= sound.length; start += WINDOW_SAMPLES) {
      const window = sound.slice(start, start + length);
      const result = await this.#session.run({
        input: new this.#onnx.Tensor('float32', window, [1, length]),
        state: this.#state,
        sr: this.#sampleRate,
      });
      this.#state = result['stateN'] as Tensor;
      probabilities.push(((result['output'] as Tensor).data as Float32Array)[0] as number);
    }
    this.#pending = sound.slice(start);
    return probabilities;
  }
}
