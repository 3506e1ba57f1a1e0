// Speech for tests: Flite speaks a text, and the result is samples or a WAV file. The same text and voice always
// produce the same samples.

import { Flite } from '../../../src/adapters/local-voice/speech/flite.ts';
import { resampleSound } from '../../../src/voice/audio/resampler.ts';

export interface SpeakOptions {
  /** `slt` and `rms` are the clearest. `awb`, `kal16` and `kal` are also available. @defaultValue 'slt' */
  readonly voice?: string;
  /** 8000 to 48000. @defaultValue 24000 */
  readonly sampleRateHz?: number;
  /** The silence before and after the speech. @defaultValue 0 */
  readonly silenceMs?: number;
}

/** The amplitude below which audio counts as silence. */
const VOICE_LEVEL = 0.01 * 32_767;

let flite: Promise<Flite> | undefined;

/** Returns the audio of a text: Int16 mono. */
export async function speak(text: string, options: SpeakOptions = {}): Promise<Int16Array> {
  const { voice = 'slt', sampleRateHz = 24_000, silenceMs = 0 } = options;
  flite ??= Flite.load();
  const sound = await (await flite).speak({ text, voice, speed: 1 });
  const speech = resampleSound(sound, sampleRateHz);
  const silence = Math.round((silenceMs * sampleRateHz) / 1000);
  const samples = new Int16Array(speech.length + 2 * silence);
  samples.set(speech, silence);
  return samples;
}

/**
 * Returns where the voice starts and ends in the audio, in milliseconds, because a synthesiser adds silence around it.
 */
export function voiceIn(
  samples: Int16Array,
  sampleRateHz = 24_000,
): { readonly fromMs: number; readonly toMs: number } {
  const isVoice = (sample: number): boolean => Math.abs(sample) >= VOICE_LEVEL;
  const msAt = (index: number): number => (index * 1000) / sampleRateHz;
  return {
    fromMs: msAt(samples.findIndex(isVoice)),
    toMs: msAt(samples.findLastIndex(isVoice) + 1),
  };
}

/** Returns a mono WAV file of 16-bit samples. */
export function toWav(samples: Int16Array, sampleRateHz = 24_000): Buffer {
  const header = Buffer.alloc(44);
  const data = Buffer.alloc(2 * samples.length);
  for (const [index, sample] of samples.entries()) data.writeInt16LE(sample, 2 * index);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + data.length, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(sampleRateHz, 24);
  header.writeUInt32LE(2 * sampleRateHz, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(data.length, 40);
  return Buffer.concat([header, data]);
}
