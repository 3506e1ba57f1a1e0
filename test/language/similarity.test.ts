import fc from 'fast-check';
import { expect, test } from 'vitest';
import { english } from '../../src/language/english.ts';
import { editDistance, similarity, soundKey } from '../../src/language/similarity.ts';

test.each([
  ['', '', 0],
  ['abc', '', 3],
  ['kitten', 'sitting', 3],
  ['ab', 'ba', 1],
  ['economy', 'ecnoomy', 1],
  ['economy', 'economics', 3],
])('measures the distance from %s to %s', (a, b, distance) => {
  expect(editDistance(a, b)).toBe(distance);
});

test('measures symmetric distances, which are 0 only for equal words and never exceed the longer length', () => {
  const word = fc.string({ unit: fc.constantFrom(...'abc'.split('')), maxLength: 6 });
  fc.assert(
    fc.property(word, word, (a, b) => {
      const distance = editDistance(a, b);
      expect(editDistance(b, a)).toBe(distance);
      expect(distance === 0).toBe(a === b);
      expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
      expect(distance).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
    }),
  );
});

test.each([
  ['economy', 'aconme'],
  ['laughed', 'left'],
  ['right', 'write'],
  ['knight', 'night'],
  ['phone', 'fone'],
  ['action', 'akshun'],
  ['queue', 'cue'],
  ['physics', 'fizziks'],
  ['thumb', 'thum'],
])('finds that %s sounds like %s', (a, b) => {
  expect(soundKey(a, english)).toBe(soundKey(b, english));
});

test('compares names in an unsupported script letter by letter', () => {
  expect(similarity('москва', 'масква', english)).toEqual({
    letters: 1 - 1 / 6,
    sound: 0,
    overall: 1 - 1 / 6,
  });
});
