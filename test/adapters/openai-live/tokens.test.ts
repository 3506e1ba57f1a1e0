import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { estimateTokens, headOf, splitText } from '../../../src/adapters/openai-live/appends.ts';

const anyText = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 400 }),
  fc
    .array(
      fc.constantFrom('Rome', 'train.', 'at noon!', '出发。', '\n', '{"a":1}', '🚕', 'Zürich?'),
      {
        maxLength: 200,
      },
    )
    .map((words) => words.join(' ')),
);
const squeezed = (text: string): string => text.replaceAll(/\s+/g, '');

describe('splitText', () => {
  test('TOKENS-1: creates no piece above the limit, and changes only white space', () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 8, max: 60 }), (text, limit) => {
        const pieces = splitText(text, limit);
        for (const piece of pieces) {
          expect(estimateTokens(piece)).toBeLessThanOrEqual(limit);
          expect(piece.trim()).not.toBe('');
        }
        expect(squeezed(pieces.join(''))).toBe(squeezed(text));
      }),
    );
  });

  test('TOKENS-2: cuts after a sentence, as late as possible', () => {
    const text = 'The train leaves at noon. It is late. Take the bus! Or walk?';
    expect(splitText(text, 16)).toEqual([
      'The train leaves at noon. It is late.',
      'Take the bus! Or walk?',
    ]);
    expect(splitText(text, 12)).toEqual([
      'The train leaves at noon.',
      'It is late. Take the bus!',
      'Or walk?',
    ]);
  });

  test('TOKENS-2: cuts a long sentence between words, and a long word anywhere', () => {
    expect(splitText('one two three four five six', 6)).toEqual(['one two three', 'four five six']);
    expect(splitText('one two three four five six', 7)).toEqual(['one two three four', 'five six']);
    expect(splitText('a'.repeat(40), 7)).toEqual(['a'.repeat(20), 'a'.repeat(20)]);
    expect(splitText('🚕🚕🚕', 8)).toEqual(['🚕🚕', '🚕']);
  });

  test('leaves a short text whole, and returns an empty list for an empty text', () => {
    expect(splitText('  Hello.\n')).toEqual(['Hello.']);
    expect(splitText(' \n ')).toEqual([]);
  });
});

describe('estimateTokens', () => {
  test.each([
    // The counts from the o200k_base tokenizer.
    ['Your appointment is confirmed for Thursday at 2:00 PM.', 13],
    ['{"status":"confirmed","order_id":"order_123"}', 12],
    ['Ihr Termin am Donnerstag um vierzehn Uhr ist bestätigt.', 12],
    ['您的预约已确认,时间为星期四下午两点。', 13],
    ['Мы подтвердили вашу запись на четверг в два часа дня.', 13],
    ['aGVsbG8gd29ybGQgdGhpcyBpcyBiYXNlNjQgZW5jb2RlZCB0ZXh0IG9mIHNvbWUgbGVuZ3Ro', 45],
    ['f81d4fae-7dec-11d0-a765-00a0c91e6bf6', 25],
    ['ሰላም', 6],
  ])('never estimates fewer tokens than there are: %s', (text, tokens) => {
    expect(estimateTokens(text)).toBeGreaterThanOrEqual(tokens);
  });

  test('estimates at most twice the actual number of tokens for English prose', () => {
    const text = 'The train to Rome leaves at noon from the third platform. '.repeat(10);
    // Each sentence has 13 tokens.
    expect(estimateTokens(text)).toBeLessThan(260);
  });

  test('estimates no more tokens than the text has bytes', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(estimateTokens(text)).toBeLessThanOrEqual(Math.max(1, Buffer.byteLength(text)));
      }),
    );
  });
});

test('headOf returns the longest prefix that fits without cutting a character', () => {
  expect(headOf('🚕🚕', 7)).toBe('🚕');
  expect(headOf('Hello', 100)).toBe('Hello');
});
