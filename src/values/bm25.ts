// Ranks texts by the words of a query: Okapi BM25 for a few hundred texts. Each query scans all of them. Adapters index
// larger collections.

/** The words of one text, with their counts. */
export interface WordCounts {
  readonly counts: ReadonlyMap<string, number>;
  /** The number of words. */
  readonly length: number;
}

const SATURATION = 1.2;
const LENGTH_WEIGHT = 0.75;

/** Splits a text in any script into words, in lower case, without accents, and without a plural s. */
export function wordsOf(text: string): string[] {
  const plain = text
    .normalize('NFKD')
    .replace(/[\u0300-\u036F]/g, '')
    .toLowerCase();
  const words = plain.match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  return words.map((word) => word.replace(/(?<=..[^s])s$/u, ''));
}

export function countWords(text: string): WordCounts {
  const words = wordsOf(text);
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { counts, length: words.length };
}

/** Scores how well each text matches the query, in the order of the texts; 0 if a text contains none of the words. */
export function relevance(texts: readonly WordCounts[], query: string): number[] {
  const meanLength = texts.reduce((sum, { length }) => sum + length, 0) / texts.length || 1;
  const terms = [...new Set(wordsOf(query))].map((word) => {
    const holders = texts.filter(({ counts }) => counts.has(word)).length;
    const rarity = Math.log(1 + (texts.length - holders + 0.5) / (holders + 0.5));
    return { word, rarity };
  });
  return texts.map(({ counts, length }) => {
    const dampening = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * (length / meanLength));
    let score = 0;
    for (const { word, rarity } of terms) {
      const count = counts.get(word) ?? 0;
      score += (rarity * count * (SATURATION + 1)) / (count + dampening);
    }
    return score;
  });
}
