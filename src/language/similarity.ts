// Measures the similarity of two names by their letters and by their sound.

import type { AnswerLanguage } from './language.ts';

/** A similarity is between 0 (nothing in common) and 1 (equal). */
export interface Similarity {
  readonly letters: number;
  readonly sound: number;
  /** Letters and sound are combined, because speech recognition preserves the sound but changes the letters. */
  readonly overall: number;
}

/** Compares two names that are written without spaces. */
export function similarity(a: string, b: string, language: AnswerLanguage): Similarity {
  const letters = 1 - editDistance(a, b) / Math.max(a.length, b.length, 1);
  const [keyA, keyB] = [soundKey(a, language), soundKey(b, language)];
  const isShort = Math.min(keyA.length, keyB.length) < 3;
  const similar = (x: string, y: string): boolean =>
    language.similarSounds.some((codes) => codes.includes(x) && codes.includes(y));
  // Many words sound almost like a short word ("bye", "blue"), so a short name must have exactly the same sound.
  const sound = isShort
    ? Number(keyA !== '' && keyA === keyB && letters >= 0.6)
    : 1 -
      editDistance(keyA, keyB, (x, y) => (similar(x, y) ? 0.5 : 1)) /
        Math.max(keyA.length, keyB.length);
  return { letters, sound, overall: Math.max(letters, 0.45 * letters + 0.55 * sound) };
}

/** Returns a phonetic code: consonants by class, and vowels only at the beginning. */
export function soundKey(word: string, language: AnswerLanguage): string {
  let key = word;
  for (const [pattern, code] of language.sounds) key = key.replace(pattern, code);
  return key;
}

/**
 * Returns the Damerau–Levenshtein distance (optimal string alignment): the minimum cost of turning one name into the
 * other. Insertions, deletions and swaps of neighbours cost 1 each, and a replacement costs `replaceCost`.
 */
export function editDistance(
  a: string,
  b: string,
  replaceCost: (x: string, y: string) => number = () => 1,
): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const [x, y] = [a.charAt(row - 1), b.charAt(column - 1)];
      let cost = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (x === y ? 0 : replaceCost(x, y)),
      );
      if (row > 1 && column > 1 && x === b.charAt(column - 2) && y === a.charAt(row - 2)) {
        cost = Math.min(cost, at(beforeLast, column - 2) + 1);
      }
      current.push(cost);
    }
    [beforeLast, last] = [last, current];
  }
  return at(last, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}

/**
 * Returns how similar a text is to the most similar part of the other text, from 0 to 1; 0 if either is empty. Both
 * texts are words separated by single spaces, and a part consists of whole words. The time is proportional to the
 * product of both lengths (Sellers' algorithm).
 */
export function closestPart(text: string, of: string): number {
  if (text === '' || of === '') return 0;
  const isBreak = (place: number): boolean =>
    place === 0 || place === of.length || of[place] === ' ' || of[place - 1] === ' ';
  // For each position in `of`: the minimum cost of matching the text so far to a part that ends there, and where that
  // part starts.
  let costs = Array.from({ length: of.length + 1 }, (_, place) => (isBreak(place) ? 0 : Infinity));
  let begins = costs.map((_, place) => place);
  for (let row = 1; row <= text.length; row += 1) {
    const [above, from] = [costs, begins];
    costs = [at(above, 0) + 1];
    begins = [0];
    for (let place = 1; place <= of.length; place += 1) {
      const replaced = at(above, place - 1) + Number(text[row - 1] !== of[place - 1]);
      const inserted = at(above, place) + 1;
      const deleted = at(costs, place - 1) + 1;
      const cost = Math.min(replaced, inserted, deleted);
      costs.push(cost);
      const begin =
        cost === replaced ? from[place - 1] : cost === inserted ? from[place] : begins[place - 1];
      begins.push(begin ?? 0);
    }
  }
  const likeness = costs.map((cost, place) =>
    isBreak(place) ? 1 - cost / Math.max(text.length, place - (begins[place] ?? 0)) : 0,
  );
  return likeness.reduce((closest, one) => Math.max(closest, one), 0);
}
