// Measures the similarity of two names, by their letters and by their sound.

import type { AnswerLanguage } from './language.ts';

/** 0 (nothing in common) to 1 (the same). */
export interface Similarity {
  readonly letters: number;
  readonly sound: number;
  /** Both together: speech recognition keeps the sound and changes the letters. */
  readonly overall: number;
}

/** Compares two names, written without spaces. */
export function similarity(a: string, b: string, language: AnswerLanguage): Similarity {
  const letters = 1 - editDistance(a, b) / Math.max(a.length, b.length, 1);
  const [keyA, keyB] = [soundKey(a, language), soundKey(b, language)];
  const isShort = Math.min(keyA.length, keyB.length) < 3;
  const similar = (x: string, y: string): boolean =>
    language.similarSounds.some((codes) => codes.includes(x) && codes.includes(y));
  // Too many words sound nearly like a short one ("bye", "blue"): a short name must sound the same.
  const sound = isShort
    ? Number(keyA !== '' && keyA === keyB && letters >= 0.6)
    : 1 -
      editDistance(keyA, keyB, (x, y) => (similar(x, y) ? 0.5 : 1)) /
        Math.max(keyA.length, keyB.length);
  return { letters, sound, overall: Math.max(letters, 0.45 * letters + 0.55 * sound) };
}

/** Encodes the sound of a word: consonants by their kind, vowels only at the beginning. */
export function soundKey(word: string, language: AnswerLanguage): string {
  let key = word;
  for (const [pattern, code] of language.sounds) key = key.replace(pattern, code);
  return key;
}

/**
 * Returns the Damerau–Levenshtein distance (optimal string alignment): the least cost of edits from one name
 * to the other by inserting, deleting, swapping two neighbours (1 each) and replacing.
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
 * Returns how much a text is like a part of another, 0 to 1; 0 if one of them is empty. Both are words with one blank
 * between them. `sizes`: how many words the part may have.
 */
export function closestPart(text: string, of: string, sizes: readonly number[]): number {
  if (text === '' || of === '') return 0;
  const words = of.split(' ');
  let closest = 0;
  for (const size of sizes)
    for (let start = 0; size > 0 && start < words.length; start += 1) {
      const part = words.slice(start, start + size).join(' ');
      const longer = Math.max(part.length, text.length);
      closest = Math.max(closest, 1 - editDistance(part, text) / longer);
    }
  return closest;
}
