// The sound of telephones: G.711 μ-law, 8 bits for a sample, 8000 samples a second. Source:
// ITU-T Recommendation G.711 (11/88), table 2.
//
//   s eee mmmm, all bits inverted:   s sign (1: negative), e segment, m step in the segment
//   magnitude = ((m·2 + 33) · 2^e − 33) · 4      16 bits of scale where the standard has 14
//
// MU-LAW-1. A sample becomes the code between whose decision values it lies; the value of the code is
//     the middle of them.
// MU-LAW-2. Decoded and encoded again a code is the same; only −0 becomes +0, which sounds the same.

import { assertBytes, assertSamples } from './audio-frame.ts';

/** What the first segment begins at, so that each segment is twice as long as the one before. */
const BIAS = 33 * 4;
/** The largest magnitude; what is louder sounds the same. */
const CLIP = 32_635;

const decoded = Int16Array.from({ length: 256 }, (_, code) => {
  const bits = ~code & 0xff;
  const magnitude = ((((bits & 0x0f) << 3) + BIAS) << ((bits >> 4) & 7)) - BIAS;
  return bits & 0x80 ? -magnitude : magnitude;
});

/** The samples as μ-law, a byte for each. Their rate stays what it was: telephones want 8000 Hz. */
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

/** The samples of these μ-law bytes, one for each. */
export function decodeMuLaw(codes: Uint8Array): Int16Array {
  assertBytes('decodeMuLaw', codes);
  const samples = new Int16Array(codes.length);
  for (let index = 0; index < codes.length; index += 1)
    samples[index] = decoded[codes[index] as number] as number;
  return samples;
}
