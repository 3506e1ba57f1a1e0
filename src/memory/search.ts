// Full-text search over entries: key, labels and the beginning of the text, one entry for each
// turn of the event loop, so that a search over megabytes makes no audio late.

import { head } from '../values/clip.ts';
import type { Scheduler } from '../actors/ports/environment.ts';
import { countWords, relevance, wordsOf, type WordCounts } from '../values/bm25.ts';
import type { KeptEntry } from './entry-table.ts';

/** The searched characters of one entry; later ones are not searched. */
const MAX_SEARCHED_CHARS = 32_768;
const EXCERPT_CHARS = 240;
const LEAD_CHARS = 60;

export interface FoundEntry {
  readonly entry: KeptEntry;
  readonly score: number;
  readonly excerpt: string;
}

/** Returns the entries that have a word of the query, the best first, among equals the newest. */
export async function searchEntries(
  entries: readonly KeptEntry[],
  query: string,
  scheduler: Pick<Scheduler, 'yieldThen'>,
): Promise<FoundEntry[]> {
  const counted: WordCounts[] = [];
  for (const { key, text, category, tags } of entries) {
    await new Promise<void>((go) => scheduler.yieldThen(go));
    const searched = head(text, MAX_SEARCHED_CHARS);
    counted.push(countWords([key, category ?? '', ...tags, searched].join(' ')));
  }
  const scores = relevance(counted, query);
  const words = wordsOf(query);
  return entries
    .map((entry, index) => ({ entry, score: scores[index] as number }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score || b.entry.savedAt - a.entry.savedAt)
    .map(({ entry, score }) => ({ entry, score, excerpt: excerptOf(entry.text, words) }));
}

/** Returns the text around the first of the words. */
function excerptOf(text: string, words: readonly string[]): string {
  const searched = head(text, MAX_SEARCHED_CHARS).toLowerCase();
  const places = words.map((word) => searched.indexOf(word)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, searched.length) - LEAD_CHARS);
  const from = places.length === 0 ? 0 : start;
  const shown = head(text.slice(from), EXCERPT_CHARS).replace(/^[\uDC00-\uDFFF]/, '');
  const before = from > 0 ? '…' : '';
  return `${before}${shown}${from + EXCERPT_CHARS < text.length ? '…' : ''}`;
}
