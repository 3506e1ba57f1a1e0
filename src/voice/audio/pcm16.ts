// Converts samples to bytes and back. All supported protocols use signed 16-bit samples, least significant byte first;
// JSON protocols encode these bytes as base64.

import { base64ByteLength, fromBase64, toBase64 } from '../../values/base64.ts';
import { ConfigurationError, ProtocolError } from '../../values/errors.ts';
import { shown } from '../../values/plain-checks.ts';
import { assertBytes, assertSamples } from './audio-frame.ts';

const BYTES_PER_SAMPLE = 2;
const hostIsBigEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 0;

/**
 * Returns a copy of the samples as bytes.
 * @throws {ConfigurationError} `INVALID_AUDIO` unless the value is an `Int16Array`
 */
export function encodePcm16(samples: Int16Array): Uint8Array {
  assertSamples('encodePcm16', samples);
  return littleEndianBytes(samples.slice());
}

/**
 * Returns a copy of the bytes as samples, whatever the alignment of `bytes`.
 * @throws {ProtocolError} `MALFORMED_AUDIO` if the number of bytes is odd
 * @throws {ConfigurationError} `INVALID_AUDIO` unless the value is a `Uint8Array`
 */
export function decodePcm16(bytes: Uint8Array): Int16Array {
  assertBytes('decodePcm16', bytes);
  assertWholeSamples(bytes.byteLength);
  const samples = new Int16Array(bytes.byteLength / BYTES_PER_SAMPLE);
  new Uint8Array(samples.buffer).set(bytes);
  littleEndianBytes(samples);
  return samples;
}

/**
 * Returns the bytes of the samples as base64.
 * @throws {ConfigurationError} `INVALID_AUDIO` unless the value is an `Int16Array`
 */
export function encodePcm16Base64(samples: Int16Array): string {
  assertSamples('encodePcm16Base64', samples);
  return toBase64(hostIsBigEndian ? encodePcm16(samples) : bytesOf(samples));
}

/**
 * Decodes samples from base64 text.
 * @throws {ProtocolError} `MALFORMED_AUDIO` if the text is not base64 of whole samples
 * @throws {ConfigurationError} `INVALID_AUDIO` unless the value is a string
 */
export function decodePcm16Base64(base64: string): Int16Array {
  if (typeof base64 !== 'string')
    throw new ConfigurationError(
      'INVALID_AUDIO',
      `decodePcm16Base64: expected base64 text, got ${shown(base64)}`,
    );
  const byteLength = base64ByteLength(base64);
  assertWholeSamples(byteLength);
  const bytes = fromBase64(base64);
  if (bytes === null)
    throw new ProtocolError(
      'MALFORMED_AUDIO',
      `Expected base64 of ${byteLength} bytes of audio, got text that is not base64`,
    );
  // `bytes` fills its whole buffer from offset 0, so the samples can share this memory.
  const samples = new Int16Array(bytes.buffer);
  littleEndianBytes(samples);
  return samples;
}

/** Returns the memory of `samples` as little-endian bytes. On a big-endian host, the bytes are swapped in place. */
function littleEndianBytes(samples: Int16Array): Uint8Array {
  const bytes = bytesOf(samples);
  if (hostIsBigEndian)
    for (let low = 0; low < bytes.length; low += BYTES_PER_SAMPLE)
      bytes.subarray(low, low + BYTES_PER_SAMPLE).reverse();
  return bytes;
}

function bytesOf(samples: Int16Array): Uint8Array {
  return new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
}

function assertWholeSamples(byteLength: number): void {
  if (byteLength % BYTES_PER_SAMPLE === 0) return;
  throw new ProtocolError(
    'MALFORMED_AUDIO',
    `Expected whole 16-bit samples (an even number of bytes), got ${byteLength} bytes`,
  );
}
