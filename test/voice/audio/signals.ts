// Test signals and functions that measure them.

export interface ToneOptions {
  readonly hz: number;
  readonly sampleRateHz: number;
  readonly seconds: number;
  /** @defaultValue 0.9 of full scale */
  readonly amplitude?: number;
}

const DEFAULT_AMPLITUDE = 0.9;
const FULL_SCALE = 32_767;

export function tone({ hz, sampleRateHz, seconds, amplitude = DEFAULT_AMPLITUDE }: ToneOptions) {
  return Int16Array.from({ length: Math.round(sampleRateHz * seconds) }, (_, n) =>
    Math.round(amplitude * FULL_SCALE * Math.sin((2 * Math.PI * hz * n) / sampleRateHz)),
  );
}

/** Samples that are easy to tell apart: start, start + 1, … */
export function ramp(length: number, start = 0): Int16Array {
  return Int16Array.from({ length }, (_, n) => start + n);
}

export function concatSamples(chunks: readonly Int16Array[]): Int16Array {
  const whole = new Int16Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.length;
  }
  return whole;
}

/** The mean level in dB, where 0 is a full-scale square wave. Digital silence counts as −200 dB. */
export function levelDb(samples: Int16Array): number {
  let energy = 0;
  for (const sample of samples) energy += (sample / FULL_SCALE) ** 2;
  return Math.max(-200, 10 * Math.log10(energy / samples.length));
}

/**
 * Fits a tone of `hz` that has amplitude 0.9 and started at time 0, using least squares, and returns the residual.
 * Ignores the edges, where silence affects the filter.
 */
export function fitTone(samples: Int16Array, hz: number, sampleRateHz: number) {
  const edge = 400;
  const omega = (2 * Math.PI * hz) / sampleRateHz;
  // The normal equations of y = a·sin + b·cos are exact even if the tone does not have a whole number of periods.
  let ss = 0;
  let cc = 0;
  let sc = 0;
  let ys = 0;
  let yc = 0;
  for (let n = edge; n < samples.length - edge; n += 1) {
    const s = Math.sin(omega * n);
    const c = Math.cos(omega * n);
    const y = samples[n] as number;
    ss += s * s;
    cc += c * c;
    sc += s * c;
    ys += y * s;
    yc += y * c;
  }
  const determinant = ss * cc - sc * sc;
  const a = (ys * cc - yc * sc) / determinant;
  const b = (yc * ss - ys * sc) / determinant;
  let signal = 0;
  let error = 0;
  for (let n = edge; n < samples.length - edge; n += 1) {
    const fitted = a * Math.sin(omega * n) + b * Math.cos(omega * n);
    signal += fitted ** 2;
    error += ((samples[n] as number) - fitted) ** 2;
  }
  return {
    snrDb: 10 * Math.log10(signal / error),
    gainDb: 20 * Math.log10(Math.hypot(a, b) / (DEFAULT_AMPLITUDE * FULL_SCALE)),
    delayMs: (-Math.atan2(b, a) / (2 * Math.PI * hz)) * 1000,
  };
}
