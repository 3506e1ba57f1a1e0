// Compares Node.js's Base64 conversion with the one for all other hosts.

import fc from 'fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import * as inNode from '../../src/values/base64.ts';

let elsewhere: typeof inNode;

beforeAll(async () => {
  vi.resetModules();
  vi.stubGlobal('process', undefined);
  elsewhere = await import('../../src/values/base64.ts');
  vi.unstubAllGlobals();
});
afterAll(() => vi.resetModules());

test('BASE64-1, BASE64-3: restores any bytes, and encodes them identically on every host', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const text = Buffer.from(bytes).toString('base64');
      for (const host of [inNode, elsewhere]) {
        expect(host.toBase64(bytes)).toBe(text);
        expect(host.fromBase64(text)).toEqual(bytes);
        expect(host.base64ByteLength(text)).toBe(bytes.length);
      }
    }),
  );
});

test('BASE64-2: reads the URL alphabet without padding', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 50 }), (bytes) => {
      const text = Buffer.from(bytes).toString('base64url');
      for (const host of [inNode, elsewhere]) expect(host.fromBase64(text)).toEqual(bytes);
    }),
  );
});

test('encodes a slice of a larger array rather than the whole array', () => {
  const bytes = Uint8Array.of(9, 1, 2, 9).subarray(1, 3);
  for (const host of [inNode, elsewhere]) expect(host.toBase64(bytes)).toBe('AQI=');
});

test('BASE64-3: accepts or refuses any text identically on every host', () => {
  const characters = fc.constantFrom(...'AQz09+/-_==!\u0000 \né€'.split(''), '😀', '\uD83D');
  fc.assert(
    fc.property(fc.array(characters, { maxLength: 14 }), (list) => {
      const text = list.join('');
      const bytes = elsewhere.fromBase64(text);
      expect(inNode.fromBase64(text)).toEqual(bytes);
      expect(inNode.base64ByteLength(text)).toBe(Buffer.byteLength(text, 'base64'));
    }),
    { numRuns: 2000 },
  );
});

test.each(['A', 'AAAAA', '!!!!', 'AA=A', 'AAAA AAAA', 'ÄAAA'])('refuses %j', (text) => {
  for (const host of [inNode, elsewhere]) expect(host.fromBase64(text)).toBeNull();
});
