// Decodes the output of a speech model of the AI SDK: bytes in some format. A format other than WAV or raw
// PCM is named in an error, not guessed: there is no decoder for it here.

import { ConfigurationError, messageOf, ProviderError } from '../../values/errors.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import { decodePcm16 } from '../../voice/audio/pcm16.ts';
import { isSampleRateHz } from '../../voice/audio/resampler.ts';
import { decodeWav, isWav } from '../../voice/audio/wav.ts';

/** The providers' names for 16-bit samples without a header, some with a rate: `pcm_16000`. */
const RAW = /^(?:pcm|raw|linear16|l16|s16le|pcm_s16le)(?:[_-]?(\d{4,5}))?$/i;
const WAV = /^(?:wav|wave|riff)(?:[_-].*)?$/i;
const DEFAULT_RAW_RATE_HZ = 24_000;

/** The first bytes of files in other formats. */
const MAGIC: readonly (readonly [name: string, at: number, bytes: readonly number[]])[] = [
  ['MP3', 0, [0x49, 0x44, 0x33]],
  ['MP3', 0, [0xff, 0xfb]],
  ['MP3', 0, [0xff, 0xf3]],
  ['MP3', 0, [0xff, 0xf2]],
  ['AAC', 0, [0xff, 0xf1]],
  ['AAC', 0, [0xff, 0xf9]],
  ['Ogg (Opus or Vorbis)', 0, [0x4f, 0x67, 0x67, 0x53]],
  ['FLAC', 0, [0x66, 0x4c, 0x61, 0x43]],
  ['WebM', 0, [0x1a, 0x45, 0xdf, 0xa3]],
  ['MP4', 4, [0x66, 0x74, 0x79, 0x70]],
];

/** Returns the rate of raw samples in this format; null: its header states it. */
export function rawRateOf(outputFormat: string, sampleRateHz: number | undefined): number | null {
  const raw = RAW.exec(outputFormat);
  if (raw === null) return null;
  return sampleRateHz ?? (raw[1] === undefined ? DEFAULT_RAW_RATE_HZ : Number(raw[1]));
}

/** @throws {ConfigurationError} `INVALID_OPTION` for a format that cannot be decoded here */
export function checkFormat(outputFormat: string): void {
  const rawRateHz = RAW.exec(outputFormat)?.[1] ?? DEFAULT_RAW_RATE_HZ;
  const isKnown = RAW.test(outputFormat) || WAV.test(outputFormat);
  if (isKnown && isSampleRateHz(Number(rawRateHz))) return;
  throw new ConfigurationError(
    'INVALID_OPTION',
    `aiSdkVoice: expected \`outputFormat\` to be WAV or raw PCM, such as 'wav', 'pcm' or 'pcm_24000', 8000 to 48000 Hz, got '${outputFormat}'`,
  );
}

/**
 * Returns the sound of the bytes that `who` returned. `rawRateHz`: the requested rate of raw samples.
 * @throws {ProviderError} `UNSUPPORTED_AUDIO`, which names the format
 */
export function decodeAudio(bytes: Uint8Array, rawRateHz: number | null, who: string): AudioFrame {
  if (isWav(bytes)) return decodeWavOf(bytes, who);
  const other = nameOf(bytes);
  // Raw samples may begin with any bytes, but rarely with these.
  if (rawRateHz !== null && other === null) {
    return { samples: decodePcm16(wholeSamples(bytes)), sampleRateHz: rawRateHz };
  }
  const got =
    other ?? (rawRateHz === null ? 'something without a header of WAV' : 'something else');
  throw new ProviderError(
    'UNSUPPORTED_AUDIO',
    `aiSdkVoice: expected WAV or raw PCM from ${who}, got ${got}. Choose another \`outputFormat\`, as the provider names it`,
  );
}

function decodeWavOf(bytes: Uint8Array, who: string): AudioFrame {
  try {
    return decodeWav(bytes);
  } catch (cause) {
    throw new ProviderError('UNSUPPORTED_AUDIO', `${who}: ${messageOf(cause)}`, { cause });
  }
}

function nameOf(bytes: Uint8Array): string | null {
  const found = MAGIC.find(([, at, magic]) =>
    magic.every((byte, index) => bytes[at + index] === byte),
  );
  return found?.[0] ?? null;
}

/** A file that was cut off may end in the middle of a sample. */
function wholeSamples(bytes: Uint8Array): Uint8Array {
  return bytes.subarray(0, bytes.length - (bytes.length % 2));
}
