// Encodes and decodes WAV files, as text-to-speech services return them and speech-to-text services accept them: RIFF
// with PCM inside. Other RIFF formats are rejected with an error that names the format.

import { isA, ProtocolError } from '../../values/errors.ts';
import { readable } from '../../values/plain-checks.ts';
import { assertSamples, type AudioFrame } from './audio-frame.ts';
import { decodeMuLaw } from './mu-law.ts';
import { assertSampleRateHz, isSampleRateHz } from './resampler.ts';

const HEADER_BYTES = 44;
const PCM = 1;
const FLOAT = 3;
const MU_LAW = 7;
/** The tag of a WAV file whose actual format code is in the extension. */
const EXTENSIBLE = 0xff_fe;
const FULL_SCALE = 32_767;

interface Format {
  readonly tag: number;
  readonly channels: number;
  readonly sampleRateHz: number;
  readonly bits: number;
}

/**
 * Encodes audio as a WAV file: PCM, 16 bits, mono.
 * @throws {ConfigurationError} `INVALID_AUDIO`, `INVALID_SAMPLE_RATE`
 */
export function encodeWav(frame: AudioFrame): Uint8Array {
  const { samples, sampleRateHz } = readable('encodeWav', frame);
  assertSamples('encodeWav', samples);
  assertSampleRateHz('sampleRateHz', sampleRateHz);
  const dataBytes = 2 * samples.length;
  const bytes = new Uint8Array(HEADER_BYTES + dataBytes);
  const view = new DataView(bytes.buffer);
  const text = (at: number, value: string): void => bytes.set(new TextEncoder().encode(value), at);
  text(0, 'RIFF');
  view.setUint32(4, HEADER_BYTES - 8 + dataBytes, true);
  text(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, PCM, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, sampleRateHz, true);
  view.setUint32(28, 2 * sampleRateHz, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, 'data');
  view.setUint32(40, dataBytes, true);
  samples.forEach((sample, index) => view.setInt16(HEADER_BYTES + 2 * index, sample, true));
  return bytes;
}

/** Returns whether the bytes start like a WAV file; false unless the value is a `Uint8Array`. */
export function isWav(bytes: Uint8Array): boolean {
  if (!isA(bytes, Uint8Array) || bytes.buffer.detached) return false;
  return bytes.length >= 12 && nameAt(bytes, 0) === 'RIFF' && nameAt(bytes, 8) === 'WAVE';
}

/**
 * Decodes a WAV file and mixes it to mono: PCM of 8, 16, 24 or 32 bits, float of 32 bits, or μ-law, 8000 to 48000 Hz.
 * The header of a streamed file may state more bytes than the file contains.
 * @throws {ProtocolError} `UNSUPPORTED_AUDIO`, whose message names the format
 */
export function decodeWav(bytes: Uint8Array): AudioFrame {
  if (!isWav(bytes)) throw unsupported('it does not begin with RIFF … WAVE');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let format: Format | null = null;
  for (let at = 12; at + 8 <= bytes.length;) {
    const id = nameAt(bytes, at);
    const length = view.getUint32(at + 4, true);
    const from = at + 8;
    if (id === 'fmt ' && from + 16 <= bytes.length) format = readFormat(view, from, length);
    if (id === 'data') {
      if (format === null) throw unsupported('its format is not said before its data');
      return decodeData(format, bytes.subarray(from, Math.min(bytes.length, from + length)));
    }
    // Chunks start at even offsets.
    at = from + length + (length % 2);
  }
  throw unsupported('it has no data');
}

/** The name of a chunk: four characters. */
function nameAt(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}

function readFormat(view: DataView, at: number, length: number): Format {
  const tag = view.getUint16(at, true);
  const isExtended = tag === EXTENSIBLE && length >= 26 && at + 26 <= view.byteLength;
  return {
    tag: isExtended ? view.getUint16(at + 24, true) : tag,
    channels: view.getUint16(at + 2, true),
    sampleRateHz: view.getUint32(at + 4, true),
    bits: view.getUint16(at + 14, true),
  };
}

function decodeData({ tag, channels, sampleRateHz, bits }: Format, data: Uint8Array): AudioFrame {
  if (!isSampleRateHz(sampleRateHz)) throw unsupported(`its rate is ${sampleRateHz} Hz`);
  if (channels < 1) throw unsupported(`it has ${channels} channels`);
  const read = readerOf(tag, bits, data);
  if (read === null) throw unsupported(`its format is ${tag} with ${bits} bits`);
  const count = Math.floor(data.length / ((bits / 8) * channels));
  const samples = new Int16Array(count);
  for (let index = 0; index < count; index += 1) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel += 1) sum += read(index * channels + channel);
    const mean = Math.round(sum / channels);
    samples[index] = Math.max(-FULL_SCALE - 1, Math.min(FULL_SCALE, mean));
  }
  return { samples, sampleRateHz };
}

/** Returns a function that reads one sample as a 16-bit number; null if the format is unknown. */
function readerOf(tag: number, bits: number, data: Uint8Array): ((n: number) => number) | null {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (tag === FLOAT && bits === 32) return (n) => view.getFloat32(4 * n, true) * FULL_SCALE;
  if (tag === MU_LAW && bits === 8) {
    const decoded = decodeMuLaw(data);
    return (n) => decoded[n] as number;
  }
  if (tag !== PCM) return null;
  if (bits === 8) return (n) => (view.getUint8(n) - 128) * 256;
  if (bits === 16) return (n) => view.getInt16(2 * n, true);
  if (bits === 24) return (n) => view.getInt16(3 * n + 1, true);
  return bits === 32 ? (n) => view.getInt16(4 * n + 2, true) : null;
}

function unsupported(why: string): ProtocolError {
  return new ProtocolError(
    'UNSUPPORTED_AUDIO',
    `Expected a WAV file of PCM (8, 16, 24 or 32 bits), float or μ-law, 8000 to 48000 Hz; ${why}`,
  );
}
