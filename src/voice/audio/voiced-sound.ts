// Measures how much of a microphone's sound is voice, by its level alone: a hum or a cough is over long before
// a transport reports its end.
//
// Owns:     the level of the loudest sound of late.
// Does not: detect speech (transports do), or tell a voice from another sound that is as loud.

import { frameDurationMs, type AudioFrame } from './audio-frame.ts';

/** Sound below this is quiet: -40 dB of full scale. */
const QUIET = 0.01;
/** Sound is part of the voice if it is at most 14 dB below the loudest sound of late. */
const FRACTION = 0.2;
/** The loudest sound counts for half as much after this long. */
const HALF_LIFE_MS = 1000;
/** The level of a frame is that of every fourth sample. */
const STRIDE = 4;

export class VoicedSound {
  #loudest = 0;
  /** How long the voice has lasted since it was set to 0, pauses not counted, in milliseconds. */
  voicedMs = 0;
  /** The length of the sound since the last voice, in milliseconds; infinite if there was none. */
  quietMs = Number.POSITIVE_INFINITY;

  /** Returns how much of the frame is voice, in milliseconds. */
  take(frame: AudioFrame): number {
    const durationMs = frameDurationMs(frame);
    const level = levelOf(frame.samples);
    this.#loudest = Math.max(level, this.#loudest * 0.5 ** (durationMs / HALF_LIFE_MS));
    if (level < Math.max(QUIET, this.#loudest * FRACTION)) {
      this.quietMs += durationMs;
      return 0;
    }
    this.quietMs = 0;
    this.voicedMs += durationMs;
    return durationMs;
  }
}

/** The effective level, 0 to 1. */
function levelOf(samples: Int16Array): number {
  let sum = 0;
  let count = 0;
  for (let index = 0; index < samples.length; index += STRIDE) {
    const sample = samples[index] ?? 0;
    sum += sample * sample;
    count += 1;
  }
  return count === 0 ? 0 : Math.sqrt(sum / count) / 32_768;
}
