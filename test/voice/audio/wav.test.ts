import { describe, expect, test } from 'vitest';
import { ProtocolError } from '../../../src/values/errors.ts';
import { encodeMuLaw } from '../../../src/voice/audio/mu-law.ts';
import { decodeWav, encodeWav, isWav } from '../../../src/voice/audio/wav.ts';

const samples = Int16Array.from([0, 1, -1, 1000, -1000, 32_767, -32_768]);

interface Made {
  readonly tag?: number;
  readonly channels?: number;
  readonly sampleRateHz?: number;
  readonly bits: number;
  readonly data: Uint8Array;
  readonly extension?: number;
  readonly before?: Uint8Array;
  readonly saidLength?: number;
}

/** Returns a WAV file with these headers. */
function wav(made: Made): Uint8Array {
  const { tag = 1, channels = 1, sampleRateHz = 24_000, bits, data, extension } = made;
  const { before = new Uint8Array(0), saidLength = data.length } = made;
  const format = Buffer.alloc(extension === undefined ? 16 : 40);
  format.writeUInt16LE(extension === undefined ? tag : 0xff_fe, 0);
  format.writeUInt16LE(channels, 2);
  format.writeUInt32LE(sampleRateHz, 4);
  format.writeUInt16LE(bits, 14);
  if (extension !== undefined) format.writeUInt16LE(extension, 24);
  const chunk = (id: string, body: Uint8Array, length = body.length): Buffer => {
    const head = Buffer.alloc(8);
    head.write(id, 'latin1');
    head.writeUInt32LE(length, 4);
    return Buffer.concat([head, body, Buffer.alloc(body.length % 2)]);
  };
  const rest = [chunk('fmt ', format), before, chunk('data', data, saidLength)];
  return Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE', 'latin1'), ...rest]);
}

function bytesOf(values: readonly number[], bytes: number): Uint8Array {
  const buffer = Buffer.alloc(values.length * bytes);
  values.forEach((value, index) => buffer.writeIntLE(value, index * bytes, bytes));
  return buffer;
}

test('decodes encoded audio unchanged', () => {
  const bytes = encodeWav({ samples, sampleRateHz: 22_050 });
  expect(isWav(bytes)).toBe(true);
  expect(decodeWav(bytes)).toEqual({ samples, sampleRateHz: 22_050 });
});

describe('decodeWav', () => {
  test.each([
    ['8 bits', { bits: 8, data: Uint8Array.from([128, 255, 0]) }, [0, 32_512, -32_768]],
    ['24 bits', { bits: 24, data: bytesOf([0, 256_000, -256_000], 3) }, [0, 1000, -1000]],
    ['32 bits', { bits: 32, data: bytesOf([0, 65_536_000], 4) }, [0, 1000]],
    [
      'float',
      { tag: 3, bits: 32, data: Buffer.from(Float32Array.from([0, 0.5, -1, 2]).buffer) },
      [0, 16_384, -32_767, 32_767],
    ],
    ['stereo', { channels: 2, bits: 16, data: bytesOf([100, 300, -5, -7], 2) }, [200, -6]],
    ['extensible', { extension: 1, bits: 16, data: bytesOf([1, 2], 2) }, [1, 2]],
    [
      'after other chunks, of odd length',
      { bits: 16, data: bytesOf([7], 2), before: Buffer.from('LIST\x03\0\0\0abc\0', 'latin1') },
      [7],
    ],
    [
      'streamed: its length is not known',
      { bits: 16, data: bytesOf([7, 8], 2), saidLength: 0xff_ff_ff_ff },
      [7, 8],
    ],
    ['cut off in the middle of a sample', { bits: 16, data: Uint8Array.from([7, 0, 8]) }, [7]],
    ['nothing', { bits: 16, data: new Uint8Array(0) }, []],
  ])('reads %s', (_name, made, expected) => {
    expect([...decodeWav(wav(made)).samples]).toEqual(expected);
  });

  test('reads μ-law', () => {
    const sound = Int16Array.from([0, 4000, -4000]);
    const data = encodeMuLaw(sound);
    const { samples: read } = decodeWav(wav({ tag: 7, bits: 8, sampleRateHz: 8000, data }));
    read.forEach((sample, index) => {
      expect(Math.abs(sample - (sound[index] as number))).toBeLessThan(200);
    });
  });

  test('reads a file from a subarray of a buffer', () => {
    const file = encodeWav({ samples, sampleRateHz: 16_000 });
    const around = new Uint8Array(file.length + 3);
    around.set(file, 3);
    expect(decodeWav(around.subarray(3)).samples).toEqual(samples);
  });
});

test.each([
  ['an MP3', Buffer.from('ID3\x04\0\0\0\0\0\0\0\0\0'), /RIFF/],
  ['ADPCM', wav({ tag: 2, bits: 4, data: new Uint8Array(8) }), /format is 2 with 4 bits/],
  ['a rate', wav({ bits: 16, sampleRateHz: 96_000, data: new Uint8Array(8) }), /96000 Hz/],
  ['no channel', wav({ bits: 16, channels: 0, data: new Uint8Array(8) }), /0 channels/],
  ['no data', encodeWav({ samples, sampleRateHz: 8000 }).subarray(0, 36), /no data/],
])('refuses %s by name', (_name, bytes, message) => {
  expect(() => decodeWav(bytes)).toThrow(ProtocolError);
  expect(() => decodeWav(bytes)).toThrow(message);
});
