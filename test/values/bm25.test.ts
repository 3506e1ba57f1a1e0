import { describe, expect, test } from 'vitest';
import { countWords, relevance, wordsOf } from '../../src/values/bm25.ts';

const scores = (query: string, ...texts: string[]): number[] =>
  relevance(texts.map(countWords), query);

describe('ranking by words (BM25)', { tags: ['R36'] }, () => {
  test('ignores case, accents and plural s, in any script', () => {
    expect(wordsOf('Café FLIGHTS, größe; 東京へ 2026!')).toEqual([
      'cafe',
      'flight',
      'große',
      '東京へ',
      '2026',
    ]);
    expect(wordsOf('glass is his')).toEqual(['glass', 'is', 'his']);
  });

  test("gives a score of 0 to a text without any of the query's words", () => {
    expect(scores('train', 'a flight to Lisbon', '')).toEqual([0, 0]);
    expect(scores('', 'anything')).toEqual([0]);
  });

  test('gives more weight to a rare word than to a common one', () => {
    const [rare = 0, common = 0] = scores('visa flight', 'the visa', 'the flight', 'one flight');
    expect(rare).toBeGreaterThan(common);
  });

  test('gives a word less weight in a longer text, but more weight if it occurs more often', () => {
    const [short = 0, long = 0] = scores('visa', 'the visa', `the visa ${'word '.repeat(50)}`);
    expect(short).toBeGreaterThan(long);
    const [once = 0, twice = 0] = scores('visa', 'visa here there', 'visa visa there');
    expect(twice).toBeGreaterThan(once);
  });

  test('counts a word once even if the query repeats it', () => {
    expect(scores('visa visa', 'visa', 'x')).toEqual(scores('visa', 'visa', 'x'));
  });

  test('returns no scores if there are no texts', () => {
    expect(scores('visa')).toEqual([]);
  });
});
