// Tests how texts that are too long are clipped.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clip, head, indented } from '../../src/values/clip.ts';

test('leaves a text unchanged if it fits', () => {
  expect(clip('four', 4)).toBe('four');
});

test('states how many characters it has cut off, and never splits a character', () => {
  const rest = '5'.repeat(40);
  expect(clip(`1234${rest}`, 4)).toBe('1234 [… 40 more characters]');
  expect(clip(`123😀${rest}`, 4)).toBe('123 [… 42 more characters]');
  expect(clip(`123\u{10FFFF}${rest}`, 4)).toBe('123 [… 42 more characters]');
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.nat(20), (text, most) => {
      const kept = head(text, most);
      expect(kept.length).toBeLessThanOrEqual(most);
      expect(text.startsWith(kept)).toBe(true);
      expect(() => encodeURIComponent(kept)).not.toThrow();
    }),
  );
});

test('leaves a text unchanged that would not become shorter', () => {
  expect(clip('1234567', 4)).toBe('1234567');
  fc.assert(
    fc.property(fc.string(), fc.nat(20), (text, most) => {
      expect(clip(text, most).length).toBeLessThanOrEqual(text.length);
    }),
  );
});

test('indents every line of a quotation except the first', () => {
  expect(indented(' a\r\n# b\u2028c\rd ')).toBe('a\n  # b\n  c\n  d');
});
