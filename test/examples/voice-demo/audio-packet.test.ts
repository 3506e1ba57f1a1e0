import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  decodeAudioPacket,
  encodeAudioPacket,
} from '../../../examples/voice-demo/shared/audio-packet.ts';

test('a packed frame is unpacked unchanged', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 0xffffffff }),
      fc.int16Array({ maxLength: 64 }),
      (ref, samples) => {
        const packet = encodeAudioPacket({ ref, samples });
        expect(packet.byteLength).toBe(4 + samples.length * 2);
        expect(decodeAudioPacket(packet.buffer as ArrayBuffer)).toEqual({ ref, samples });
      },
    ),
  );
});

test('is little-endian on the wire', () => {
  expect([...encodeAudioPacket({ ref: 0x01020304, samples: Int16Array.of(-2) })]).toEqual([
    4, 3, 2, 1, 0xfe, 0xff,
  ]);
});
