// Telephone audio: G.711 μ-law, 8 bits per sample, 8000 samples per second. Source: ITU-T Recommendation
// G.711 (11/88), table 2.
//
//   s eee mmmm, all bits inverted:   s sign (1: negative), e segment, m step in the segment
//   magnitude = ((m·2 + 33) · 2^e − 33) · 4      16 bits of scale where the standard has 14
//
// MU-LAW-1. Each sample is encoded as the code whose decision values enclose the sample; the code decodes to their
//     midpoint.
// MU-LAW-2. Decoding a code and encoding the result returns the same code, except that −0 becomes +0, which sounds the
//     same.

import { assertBytes, assertSamples } from './audio-frame.ts';

/** The start of the first segment. With this value, each segment is twice as long as the previous one. */
const BIAS = 33 * 4;
/** The maximum magnitude; louder samples are clipped. */
const CLIP = 32_635;

const decoded = Int16Array.from({ length: 256 }, (_, code) => {
  const bits = ~code & 0xff;
  const magnitude = ((((bits & 0x0f) << 3) + BIAS) << ((bits >> 4) & 7)) - BIAS;
  return bits & 0x80 ? -magnitude : magnitude;
});

/** Encodes samples as μ-law, one byte per sample. The sample rate does not change. Telephones need 8000 Hz. */
export function encodeMuLaw(samples: Int16Array): Uint8Array {
  assertSamples('encodeMuLaw', samples);
  const codes = new Uint8Array(samples.length);
  for (let index = 0; index < codes.length; index += 1) {
    const sample = samples[index] as number;
    const biased = Math.min(Math.abs(sample), CLIP) + BIAS;
    const segment = 24 - Math.clz32(biased);
    const step = (biased >> (segment + 3)) & 0x0f;
    codes[index] = ~((sample < 0 ? 0x80 : 0) | (segment << 4) | step);
  }
  return codes;
}

/** Decodes μ-law bytes, one sample per byte. */
export function decodeMuLaw(codes: Uint8Array): Int16Array {
  assertBytes('decodeMuLaw', codes);
  const samples = new Int16Array(codes.length);
  for (let index = 0; index < codes.length; index += 1)
    samples[index] = decoded[codes[index] as number] as number;
  return samples;
}
