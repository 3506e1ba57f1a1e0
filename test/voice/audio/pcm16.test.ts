import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ProtocolError } from '../../../src/values/errors.ts';
import {
  decodePcm16,
  decodePcm16Base64,
  encodePcm16,
  encodePcm16Base64,
} from '../../../src/voice/audio/pcm16.ts';

describe('bytes', () => {
  test('encodes signed 16-bit samples, least significant byte first', () => {
    expect([...encodePcm16(Int16Array.of(1, -2, 0x1234, -32_768))]).toEqual([
      0x01, 0x00, 0xfe, 0xff, 0x34, 0x12, 0x00, 0x80,
    ]);
    expect(decodePcm16(Uint8Array.of(0x01, 0x00, 0xfe, 0xff))).toEqual(Int16Array.of(1, -2));
  });

  test('copies samples in both directions, even at an odd offset', () => {
    const samples = Int16Array.of(7, 8);
    const bytes = encodePcm16(samples);
    bytes[0] = 99;
    expect(samples[0]).toBe(7);

    const misaligned = Uint8Array.of(0, 1, 0, 2, 0).subarray(1);
    const decoded = decodePcm16(misaligned);
    misaligned[0] = 99;
    expect(decoded).toEqual(Int16Array.of(1, 2));
  });

  test('refuses an odd length as malformed', () => {
    expect(() => decodePcm16(new Uint8Array(3))).toThrow(ProtocolError);
    expect(() => decodePcm16(new Uint8Array(3))).toThrow(/got 3 bytes/);
  });
});

describe('base64', () => {
  test('encodes the little-endian bytes', () => {
    expect(encodePcm16Base64(Int16Array.of(1, -2))).toBe('AQD+/w==');
    expect(decodePcm16Base64('AQD+/w==')).toEqual(Int16Array.of(1, -2));
    expect(decodePcm16Base64('')).toEqual(new Int16Array(0));
  });

  test('encodes a slice of a larger array rather than the whole array', () => {
    expect(encodePcm16Base64(Int16Array.of(9, 1, -2, 9).subarray(1, 3))).toBe('AQD+/w==');
  });

  test('decodes any encoded samples unchanged', () => {
    fc.assert(
      fc.property(fc.int16Array({ maxLength: 100 }), (samples) => {
        expect(decodePcm16Base64(encodePcm16Base64(samples))).toEqual(samples);
        expect(decodePcm16(encodePcm16(samples))).toEqual(samples);
      }),
    );
  });

  test.each(['AQ==', '!!!!????', 'AQD+/w==AQD+/w=='])('refuses %j as malformed', (text) => {
    expect(() => decodePcm16Base64(text)).toThrow(ProtocolError);
  });

  test('decodes or refuses any string without reading outside its memory', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), (text) => {
        try {
          decodePcm16Base64(text);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
    );
  });
});
