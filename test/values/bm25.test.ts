import { describe, expect, test } from 'vitest';
import { countWords, relevance, wordsOf } from '../../src/values/bm25.ts';

const scores = (query: string, ...texts: string[]): number[] =>
  relevance(texts.map(countWords), query);

describe('ranking by words (BM25)', { tags: ['R36'] }, () => {
  test('words have no case, accents or plural s, in any script', () => {
    expect(wordsOf('Café FLIGHTS, größe; 東京へ 2026!')).toEqual([
      'cafe',
      'flight',
      'große',
      '東京へ',
      '2026',
    ]);
    expect(wordsOf('glass is his')).toEqual(['glass', 'is', 'his']);
  });

  test('a text without a word of the query scores 0', () => {
    expect(scores('train', 'a flight to Lisbon', '')).toEqual([0, 0]);
    expect(scores('', 'anything')).toEqual([0]);
  });

  test('a rare word counts more than a common one', () => {
    const [rare = 0, common = 0] = scores('visa flight', 'the visa', 'the flight', 'one flight');
    expect(rare).toBeGreaterThan(common);
  });

  test('the same word counts less the longer the text, and more the more often', () => {
    const [short = 0, long = 0] = scores('visa', 'the visa', `the visa ${'word '.repeat(50)}`);
    expect(short).toBeGreaterThan(long);
    const [once = 0, twice = 0] = scores('visa', 'visa here there', 'visa visa there');
    expect(twice).toBeGreaterThan(once);
  });

  test('a word that is asked for twice counts once', () => {
    expect(scores('visa visa', 'visa', 'x')).toEqual(scores('visa', 'visa', 'x'));
  });

  test('gives no scores without texts', () => {
    expect(scores('visa')).toEqual([]);
  });
});
