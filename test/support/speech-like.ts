// Audio that is as loud as speech, for tests of how a session hears.

/** Returns a generator of noise in [-1, 1] that is the same for every run. */
export function noise(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  };
}

/** Returns syllables of 80 to 250 ms, with pauses between syllables and between words. */
export function speechLike(seed: number, ms: number, rateHz: number): Float32Array {
  const random = noise(seed);
  const samples = new Float32Array((rateHz * ms) / 1000);
  for (let at = 0; at < samples.length;) {
    const length = Math.round((rateHz * (165 + 85 * random())) / 1000);
    const peak = 0.15 + 0.3 * (random() + 1);
    for (let index = 0; index < length && at + index < samples.length; index += 1)
      samples[at + index] = peak * Math.sin((Math.PI * index) / length) * random();
    at += length + Math.round((rateHz * (random() > 0.5 ? 180 : 30)) / 1000);
  }
  return samples;
}

export function toPcm(samples: Float32Array): Int16Array {
  return Int16Array.from(samples, (value) => Math.max(-1, Math.min(1, value)) * 32_767);
}
