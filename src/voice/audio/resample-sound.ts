// Resamples a whole sound, for models that need 16 kHz.

import type { AudioFrame } from './audio-frame.ts';
import { createResampler } from './resampler.ts';

/** Returns the samples of a whole sound at `toHz`, 8000 to 48000. */
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

/** Returns the samples as floats in ±1. */
export function toFloat(samples: Int16Array): Float32Array {
  return Float32Array.from(samples, (sample) => sample / 32_768);
}
