// Tests how texts that are too long are clipped.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { clip, head, indented } from '../../src/values/clip.ts';

test('leaves a text unchanged if it fits', () => {
  expect(clip('four', 4)).toBe('four');
});

test('states how many characters it has cut off, and never splits a character', () => {
  expect(clip('1234567', 4)).toBe('1234 [… 3 more characters]');
  expect(clip('123😀567', 4)).toBe('123 [… 5 more characters]');
  expect(clip('123\u{10FFFF}567', 4)).toBe('123 [… 5 more characters]');
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.nat(20), (text, most) => {
      const kept = head(text, most);
      expect(kept.length).toBeLessThanOrEqual(most);
      expect(text.startsWith(kept)).toBe(true);
      expect(() => encodeURIComponent(kept)).not.toThrow();
    }),
  );
});

test('indents every line of a quotation except the first', () => {
  expect(indented(' a\r\n# b\u2028c\rd ')).toBe('a\n  # b\n  c\n  d');
});
