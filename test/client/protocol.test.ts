// What the protocol validates: no input throws, and only known fields pass.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeSound,
  encodeSound,
  readClientFrame,
  readPostedFrames,
  readServerFrame,
  valueOfJson,
} from '../../src/client/protocol.ts';

describe('frames', () => {
  test.each([
    [{ type: 'send', id: 1, text: 'hello' }],
    [{ type: 'hello', v: 1, client: 'c', after: { epoch: 'e', seq: 0 } }],
    [{ type: 'answer', id: 2, requestId: 'q', answer: { approved: false } }],
    [{ type: 'answer', id: 2, requestId: 'q', answer: { approved: true, input: { dollars: 20 } } }],
    [{ type: 'answer', id: 2, requestId: 'q', answer: { approved: true, lasts: 'session' } }],
    [{ type: 'answer', id: 2, requestId: 'q', answer: { optionId: 'economy' } }],
    [{ type: 'playout', itemId: 'i', playedMs: 12.5 }],
  ])('reads the frame %j', (frame) => {
    expect(readClientFrame(frame)).toEqual(frame);
  });

  test.each([
    [null, /expected an object/],
    [[], /expected an object/],
    [{ type: 'nothing' }, /expected an object with one of the types hello/],
    [{ type: 'toString' }, /one of the types/],
    [{ type: 'send', id: 0, text: 'hello' }, /`id`/],
    [{ type: 'send', id: 1, text: '  ' }, /`text`/],
    [{ type: 'send', id: 1, text: 'x'.repeat(8_001) }, /`text`/],
    [{ type: 'send', id: 1, text: 'hello', by: 'boss' }, /unknown field `by`/],
    [{ type: 'answer', id: 1, requestId: 'q', answer: { optionId: 'a', text: 'b' } }, /`answer`/],
    [{ type: 'microphone', sampleRateHz: 7_999 }, /`sampleRateHz`/],
    [{ type: 'playout', itemId: 'i', playedMs: -1 }, /`playedMs`/],
  ])('%j is none', (frame, why) => {
    expect(readClientFrame(frame)).toMatch(why);
  });

  test('never throws, whatever the value, and copies a frame without its prototype', () => {
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.jsonValue()), (value) => {
        for (const read of [readClientFrame, readServerFrame, readPostedFrames]) {
          const frame = read(value);
          if (typeof frame === 'object' && frame !== null) expect(frame).not.toBe(value);
        }
      }),
    );
    expect(readClientFrame(JSON.parse('{"type":"resync","__proto__":{"id":1}}'))).toMatch(
      /__proto__/,
    );
    expect(valueOfJson('{')).toBeUndefined();
  });

  test('ignores an unknown type of frame from a newer server, but reports a malformed frame', () => {
    expect(readServerFrame({ type: 'weather', sun: true })).toBeNull();
    expect(readServerFrame({ type: 'alive', seq: 1, now: 2, more: 3 })).toMatch(/unknown field/);
    expect(readServerFrame({ type: 'events', seq: 1, now: 2, events: [{}] })).toMatch(/events/);
  });
});

describe('sound', () => {
  test('decodes the samples that it has encoded', () => {
    const samples = fc.int16Array({ minLength: 1, maxLength: 500 });
    fc.assert(
      fc.property(samples, fc.nat(), (each, ref) => {
        expect(decodeSound(encodeSound({ ref, samples: each }))).toEqual({ ref, samples: each });
      }),
    );
  });

  test.each([[new Uint8Array(0)], [new Uint8Array(8)], [new Uint8Array(11)], [new Uint8Array(12)]])(
    'refuses %j',
    (bytes) => {
      expect(typeof decodeSound(bytes)).toBe('string');
    },
  );
});
