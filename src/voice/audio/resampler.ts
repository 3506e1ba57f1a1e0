// Changes the sample rate of an audio stream with a polyphase, windowed-sinc FIR filter, for any ratio of whole rates
// from 8000 to 48000 Hz. It uses neither a clock nor I/O.
//
// Output sample n is at the input time n·M/L (L/M = toHz/fromHz in lowest terms) and is a weighted sum of the input
// around that time. The weights depend only on the phase (n·M mod L), so there is one row of weights per phase. Rows
// are computed when they are first needed, and are shared by all resamplers with the same ratio.
//
//   input    · · · ·[· · · · · · · ·]· · ·      2 × halfWidth samples
//                          ↑ output sample n, between two input samples
//
// Owns:     the history and phase of one stream. It does not know about frames or items (`frame-operators.ts`).
//
// RESAMPLER-1. Chunk boundaries make no difference: process(a) + process(b) + flush() equals process(a ++ b) + flush()
//     bit for bit.
// RESAMPLER-2. n input samples produce ceil(n·L/M) output samples after flush(): no sample is lost, and the output does
//     not drift (phases are integers).
// RESAMPLER-3. Linear phase without delay: output sample n is the audio at input time n·M/L. Output is held back until
//     the look-ahead for this has arrived (taps/2 samples of the lower rate, 1.3 ms at 24 kHz).
// RESAMPLER-4. Frequencies that the lower rate cannot represent are attenuated by at least 80 dB. Up to 0.41 times the
//     lower rate (with the default taps), audio passes unchanged, 85 dB above the filter's noise.

import {
  anyValue,
  checkOptions,
  optional,
  shown,
  type OptionChecks,
} from '../../values/plain-checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import type { AudioFrame } from './audio-frame.ts';

export const MIN_SAMPLE_RATE_HZ = 8_000;
export const MAX_SAMPLE_RATE_HZ = 48_000;

/** Returns whether audio with this sample rate can be resampled: the rate must be a whole number from 8000 to 48000. */
export function isSampleRateHz(value: number): boolean {
  return Number.isInteger(value) && value >= MIN_SAMPLE_RATE_HZ && value <= MAX_SAMPLE_RATE_HZ;
}

export interface ResamplerOptions {
  /** The input rate, 8000 to 48000. */
  readonly fromHz: number;
  /** The output rate, 8000 to 48000. */
  readonly toHz: number;
  /**
   * The filter length in samples of the lower rate: even, 16 to 512. More taps preserve more of the highest frequencies
   * (the filter falls from full to −90 dB within 5.7/taps of the lower rate), but increase cost and look-ahead
   * proportionally.
   * @defaultValue 64
   */
  readonly taps?: number;
}

/** Resamples one stream of mono Int16 samples. */
export interface Resampler {
  /**
   * Returns the output that is complete so far, which may be empty. If the two rates are equal, returns its argument.
   */
  process(samples: Int16Array): Int16Array;
  /** Returns the rest of the output, as if silence followed, and resets the resampler to its initial state. */
  flush(): Int16Array;
}

const DEFAULT_TAPS = 64;
const MIN_TAPS = 16;
const MAX_TAPS = 512;

const optionChecks: OptionChecks<ResamplerOptions> = {
  fromHz: anyValue,
  toHz: anyValue,
  taps: optional((value) =>
    Number.isInteger(value) &&
    Number(value) % 2 === 0 &&
    Number(value) >= MIN_TAPS &&
    Number(value) <= MAX_TAPS
      ? null
      : `expected an even number from ${MIN_TAPS} to ${MAX_TAPS}`,
  ),
};

/**
 * Creates a resampler for one stream.
 * @throws {ConfigurationError} `INVALID_SAMPLE_RATE` or `INVALID_OPTION` (taps).
 */
export function createResampler(options: ResamplerOptions): Resampler {
  const {
    fromHz,
    toHz,
    taps = DEFAULT_TAPS,
  } = checkOptions('createResampler', optionChecks, options);
  assertSampleRateHz('fromHz', fromHz);
  assertSampleRateHz('toHz', toHz);
  if (fromHz === toHz) return passThrough;
  return new PolyphaseResampler(filterBankFor(fromHz, toHz, taps));
}

/** @throws {ConfigurationError} `INVALID_SAMPLE_RATE` whose message names the option */
export function assertSampleRateHz(option: string, value: number): void {
  if (isSampleRateHz(value)) return;
  throw new ConfigurationError(
    'INVALID_SAMPLE_RATE',
    `Expected \`${option}\` to be a whole number from ${MIN_SAMPLE_RATE_HZ} to ` +
      `${MAX_SAMPLE_RATE_HZ}, got \`${shown(value)}\``,
  );
}

const passThrough: Resampler = {
  process: (samples) => samples,
  flush: () => new Int16Array(0),
};

/** Resamples complete audio to `toHz`, which is 8000 to 48000, for example for models that need 16 kHz. */
export function resampleSound(sound: AudioFrame, toHz: number): Int16Array {
  if (sound.sampleRateHz === toHz) return sound.samples;
  const resampler = createResampler({ fromHz: sound.sampleRateHz, toHz });
  const body = resampler.process(sound.samples);
  const rest = resampler.flush();
  const all = new Int16Array(body.length + rest.length);
  all.set(body);
  all.set(rest, body.length);
  return all;
}

/** Converts samples to floats in ±1. */
export function toFloat(samples: Int16Array): Float32Array {
  return Float32Array.from(samples, (sample) => sample / 32_768);
}

class PolyphaseResampler implements Resampler {
  readonly #bank: FilterBank;
  /**
   * The input samples, starting with the first that the next output needs. Initially, the silence before time 0.
   */
  #history: Float64Array;
  /** The position of the next output between two input samples, in 1/L of a sample: 0 to L−1. */
  #phase = 0;

  constructor(bank: FilterBank) {
    this.#bank = bank;
    this.#history = new Float64Array(bank.halfWidth - 1);
  }

  process(samples: Int16Array): Int16Array {
    const { upBy, downBy, halfWidth } = this.#bank;
    const input = new Float64Array(this.#history.length + samples.length);
    input.set(this.#history);
    input.set(samples, this.#history.length);

    const width = 2 * halfWidth;
    // Output k starts at input floor((phase + k·M) / L) and needs `width` samples from there.
    const last = Math.floor(((input.length - width + 1) * upBy - 1 - this.#phase) / downBy);
    const output = new Int16Array(Math.max(0, last + 1));
    let start = 0;
    let phase = this.#phase;
    // A muted microphone sends zeros, so the result is 0.
    let sound = 0;
    for (let n = 0; n < output.length; n += 1) {
      for (sound = Math.max(sound, start); input[sound] === 0;) sound += 1;
      if (sound < start + width)
        output[n] = toInt16(weightedSum(this.#bank.weightsOf(phase), input, start));
      phase += downBy;
      start += Math.floor(phase / upBy);
      phase %= upBy;
    }
    this.#history = input.slice(start);
    this.#phase = phase;
    return output;
  }

  flush(): Int16Array {
    const rest = this.process(new Int16Array(this.#bank.halfWidth));
    this.#history = new Float64Array(this.#bank.halfWidth - 1);
    this.#phase = 0;
    return rest;
  }
}

/** The inner loop. Four independent sums are twice as fast as a single one. */
function weightedSum(weights: Float64Array, input: Float64Array, start: number): number {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  for (let k = 0, i = start; k < weights.length; k += 4, i += 4) {
    a += (weights[k] as number) * (input[i] as number);
    b += (weights[k + 1] as number) * (input[i + 1] as number);
    c += (weights[k + 2] as number) * (input[i + 2] as number);
    d += (weights[k + 3] as number) * (input[i + 3] as number);
  }
  return a + b + (c + d);
}

function toInt16(value: number): number {
  const rounded = Math.round(value);
  return rounded > 32_767 ? 32_767 : rounded < -32_768 ? -32_768 : rounded;
}

interface FilterBank {
  /** L: the number of output samples per M input samples. */
  readonly upBy: number;
  /** M: the number of input samples per L output samples. */
  readonly downBy: number;
  /** The number of input samples on each side of an output sample; even. */
  readonly halfWidth: number;
  /** Returns the weights of the 2 × halfWidth input samples around an output with this phase. */
  weightsOf(phase: number): Float64Array;
}

// A process uses only a handful of ratios (48000 or 44100 to 24000, 24000 to 16000 …). The limit exists because clients
// may have unusual rates.
const MAX_CACHED_BANKS = 16;
const banks = new Map<string, FilterBank>();

function filterBankFor(fromHz: number, toHz: number, taps: number): FilterBank {
  const divisor = greatestCommonDivisor(fromHz, toHz);
  const upBy = toHz / divisor;
  const downBy = fromHz / divisor;
  const key = `${upBy}/${downBy}/${taps}`;
  const cached = banks.get(key);
  if (cached !== undefined) return cached;
  const bank = designFilterBank(upBy, downBy, taps);
  const oldest = banks.keys().next();
  if (banks.size >= MAX_CACHED_BANKS && !oldest.done) banks.delete(oldest.value);
  banks.set(key, bank);
  return bank;
}

/** The stopband attenuation for which the window is designed; RESAMPLER-4 promises 10 dB less. */
const STOPBAND_DB = 90;
/** Kaiser's rule for the shape of a window with that attenuation. */
const KAISER_BETA = 0.1102 * (STOPBAND_DB - 8.7);
const BESSEL_AT_BETA = besselI0(KAISER_BETA);
/** Kaiser's rule for the width of the transition band, multiplied by taps, in cycles per sample of the lower rate. */
const TRANSITION_TAPS = (STOPBAND_DB - 8) / (2.285 * 2 * Math.PI);

function designFilterBank(upBy: number, downBy: number, taps: number): FilterBank {
  // The filter is defined at the lower rate. When downsampling, it is longer by M/L in input samples.
  const stretch = Math.max(1, downBy / upBy);
  const halfWidth = 2 * Math.ceil((taps * stretch) / 4);
  // The transition band ends at the Nyquist frequency of the lower rate, so that no frequency is aliased.
  const cutoff = (0.5 - TRANSITION_TAPS / taps / 2) / stretch;
  const rows: (Float64Array | undefined)[] = [];

  const designRow = (phase: number): Float64Array => {
    const row = new Float64Array(2 * halfWidth);
    let sum = 0;
    for (let k = 0; k < row.length; k += 1) {
      const distance = phase / upBy + halfWidth - 1 - k;
      const weight = sinc(2 * cutoff * distance) * kaiser(distance / halfWidth);
      row[k] = weight;
      sum += weight;
    }
    // Each phase has a gain of 1 for a constant input, which avoids ripple at the phase rate.
    return row.map((weight) => weight / sum);
  };

  return { upBy, downBy, halfWidth, weightsOf: (phase) => (rows[phase] ??= designRow(phase)) };
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** The Kaiser window over −1 … 1, which is zero at its edges so that rows are symmetric. */
function kaiser(x: number): number {
  return Math.abs(x) >= 1 ? 0 : besselI0(KAISER_BETA * Math.sqrt(1 - x * x)) / BESSEL_AT_BETA;
}

/** The modified Bessel function of the first kind, order 0, from its power series. */
function besselI0(x: number): number {
  let term = 1;
  let sum = 1;
  for (let k = 1; term > sum * 1e-16; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
