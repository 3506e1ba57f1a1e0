// Measures how much of a microphone's audio is voice, based only on the level. A hum or cough ends long before a
// transport reports its end.
//
// Owns:     the level of the loudest recent audio.
// Does not: detect speech (transports do) or distinguish a voice from other audio of the same loudness.

import { frameDurationMs, type AudioFrame } from './audio-frame.ts';

/** The level below which audio counts as quiet: -40 dB of full scale. */
const QUIET = 0.01;
/** Audio counts as voice if it is at most 14 dB below the loudest recent audio. */
const FRACTION = 0.2;
/** The remembered level of the loudest audio is halved after this time. */
const HALF_LIFE_MS = 1000;
/** The level is computed from every fourth sample of the frame. */
const STRIDE = 4;

export class VoicedSound {
  #loudest = 0;
  /** The amount of voice since this counter was reset, without pauses, in milliseconds. */
  voicedMs = 0;
  /** The time since the last voice ended, in milliseconds of audio; infinite before the first voice. */
  quietMs = Number.POSITIVE_INFINITY;

  /** Returns how many milliseconds of the frame are voice. */
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

/** The effective level, from 0 to 1. */
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
