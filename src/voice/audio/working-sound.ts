// A sound that tells the user that work is in progress: two soft notes and a pause. The sound is computed, so it needs
// no file and no licence. It loops without clicking.

import type { AudioFrame } from './audio-frame.ts';
import {
  anyValue,
  checkOptions,
  numberAbove,
  optional,
  type OptionChecks,
} from '../../values/plain-checks.ts';
import { assertSampleRateHz } from './resampler.ts';

const LOOP_MS = 2000;
const NOTE_MS = 180;
/** E and A, rising like a question. */
const notes = [
  { hz: 329.63, atMs: 0 },
  { hz: 440, atMs: 240 },
];

/** The options of `workingSound`. */
export interface WorkingSoundOptions {
  /** The sample rate, 8000 to 48000. @defaultValue 24000 */
  readonly sampleRateHz?: number;
  /** The peak level as a fraction of full scale, above 0 and at most 1. @defaultValue 0.08 */
  readonly volume?: number;
}

const optionChecks: OptionChecks<WorkingSoundOptions> = {
  sampleRateHz: optional(anyValue),
  volume: optional(numberAbove(0, 1)),
};

/**
 * Returns a loop of two seconds for `VoiceSessionOptions.thinkingSound`.
 * @throws {ConfigurationError} `INVALID_SAMPLE_RATE`, `INVALID_OPTION`
 */
export function workingSound(options: WorkingSoundOptions = {}): AudioFrame {
  const { sampleRateHz = 24_000, volume = 0.08 } = checkOptions(
    'workingSound',
    optionChecks,
    options,
  );
  assertSampleRateHz('sampleRateHz', sampleRateHz);
  const lengthOf = (ms: number): number => Math.round((ms * sampleRateHz) / 1000);
  const samples = new Int16Array(lengthOf(LOOP_MS));
  for (const { hz, atMs } of notes) {
    const length = lengthOf(NOTE_MS);
    for (let n = 0; n < length; n += 1) {
      // The tone fades in and out, because an abrupt start would click.
      const swell = Math.sin((Math.PI * n) / length) ** 2;
      const wave = Math.sin((2 * Math.PI * hz * n) / sampleRateHz);
      samples[lengthOf(atMs) + n] = Math.round(32_767 * volume * swell * wave);
    }
  }
  return { samples, sampleRateHz };
}
