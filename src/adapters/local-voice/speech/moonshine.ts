// The second stage of speech to text: Moonshine tiny transcribes a span of speech (weights from
// @moonshine-ai/moonshine-js, 28 MB; Llama's tokens). It takes about 0.03 seconds of CPU time per second of speech.

import { fileURLToPath } from 'node:url';
import type { AudioFrame } from '../../../voice/audio/audio-frame.ts';
import { resampleSound, toFloat } from '../../../voice/audio/resampler.ts';
import {
  type Onnx,
  SESSION_OPTIONS,
  type Tokenizer,
  loadTokenizer,
  voiceFile,
  type InferenceSession,
  type Tensor,
} from './voice-packages.ts';

/** Transcribes with Moonshine, one utterance at a time. Runs inside a worker thread. */
export class Transcription {
  readonly #moonshine: Moonshine;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(moonshine: Moonshine) {
    this.#moonshine = moonshine;
  }

  /** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
  static async load(onnx: Onnx): Promise<Transcription> {
    const moonshine = await Moonshine.load(onnx);
    // The first run of a model is slow, so it takes place during loading.
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

const MOONSHINE_SAMPLE_RATE_HZ = 16_000;

const PACKAGE = '@moonshine-ai/moonshine-js';
const WEIGHTS = 'dist/model/tiny/quantized';
/** 100 ms is the minimum that the encoder needs. No word is shorter than this. */
const MIN_SAMPLES = 1_600;
const LAYERS = 6;
const HEADS = 8;
const HEAD_SIZE = 36;
const START_TOKEN = 1;
const END_TOKEN = 2;
/** The maximum speech rate. It limits the output, because the model may repeat itself indefinitely. */
const TOKENS_PER_SECOND = 6.5;
const SPARE_TOKENS = 4;
/** The maximum number of tokens that the decoder was trained on. */
const MAX_TOKENS = 192;

type Tensors = Record<string, Tensor>;

/** Transcribes speech. Calls to `transcribe` must not overlap. */
class Moonshine {
  readonly #onnx: Onnx;
  readonly #encoder: InferenceSession;
  readonly #decoder: InferenceSession;
  readonly #tokenizer: Tokenizer;

  private constructor(
    onnx: Onnx,
    encoder: InferenceSession,
    decoder: InferenceSession,
    tokenizer: Tokenizer,
  ) {
    this.#onnx = onnx;
    this.#encoder = encoder;
    this.#decoder = decoder;
    this.#tokenizer = tokenizer;
  }

  /** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
  static async load(onnx: Onnx): Promise<Moonshine> {
    const create = (file: string): Promise<InferenceSession> => {
      const weights = fileURLToPath(voiceFile(PACKAGE, `${WEIGHTS}/${file}`));
      return onnx.InferenceSession.create(weights, SESSION_OPTIONS);
    };
    const encoder = await create('encoder_model.onnx');
    const decoder = await create('decoder_model_merged.onnx');
    return new Moonshine(onnx, encoder, decoder, await loadTokenizer());
  }

  /**
   * Returns the recognised words with capitals and punctuation, or an empty text if there are none.
   * @param samples Speech at 16000 Hz, ±1, with little silence around it (long silence makes the result empty).
   */
  async transcribe(samples: Float32Array): Promise<string> {
    if (samples.length < MIN_SAMPLES) return '';
    const { Tensor } = this.#onnx;
    const sound = new Tensor('float32', samples, [1, samples.length]);
    const encoded = await this.#encoder.run({ input_values: sound });
    const states = encoded['last_hidden_state'] as Tensor;

    const seconds = samples.length / MOONSHINE_SAMPLE_RATE_HZ;
    const limit = Math.min(MAX_TOKENS, Math.ceil(seconds * TOKENS_PER_SECOND) + SPARE_TOKENS);
    let past = this.#emptyPast();
    const tokens = [START_TOKEN];
    while (tokens.length < limit) {
      const first = tokens.length === 1;
      const result = await this.#decoder.run({
        input_ids: new Tensor('int64', BigInt64Array.of(BigInt(tokens.at(-1) as number)), [1, 1]),
        encoder_hidden_states: states,
        use_cache_branch: new Tensor('bool', Uint8Array.of(first ? 0 : 1), [1]),
        ...past,
      });
      const token = mostLikely((result['logits'] as Tensor).data as Float32Array);
      if (token === END_TOKEN) break;
      tokens.push(token);
      past = nextPast(past, result, first);
    }
    return this.#tokenizer.decode(tokens).trim();
  }

  #emptyPast(): Tensors {
    const past: Tensors = {};
    for (let layer = 0; layer < LAYERS; layer += 1) {
      for (const side of ['decoder', 'encoder']) {
        for (const kind of ['key', 'value']) {
          past[`past_key_values.${layer}.${side}.${kind}`] = new this.#onnx.Tensor(
            'float32',
            new Float32Array(0),
            [0, HEADS, 1, HEAD_SIZE],
          );
        }
      }
    }
    return past;
  }
}

/**
 * Returns the cache for the next step. The encoder's part does not change after the first step. The decoder's part
 * grows.
 */
function nextPast(past: Tensors, result: Readonly<Tensors>, first: boolean): Tensors {
  const next: Tensors = {};
  for (const [name, tensor] of Object.entries(past)) {
    const renewed = first || name.includes('decoder');
    next[name] = renewed ? (result[name.replace('past_key_values', 'present')] as Tensor) : tensor;
  }
  return next;
}

function mostLikely(scores: Float32Array): number {
  let best = 0;
  for (let token = 1; token < scores.length; token += 1) {
    if ((scores[token] as number) > (scores[best] as number)) best = token;
  }
  return best;
}
