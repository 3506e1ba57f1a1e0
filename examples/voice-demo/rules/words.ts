// Reads the output of a speech recogniser and tolerates its errors, which are frequent in short and rare words.

/** Frequent recognition errors. */
const slips: readonly (readonly [RegExp, string])[] = [
  [/\b(?:air|ear|are) ?ports?\b/g, 'airport'],
  [/\b(?:two|too) (?=the\b|my\b)/g, 'to '],
  [
    /\b(?:book|get|order|need|find|call|want)((?: \w+)??) (?:a|an|the|me a) (?:right|write|rite|wright|rise|rights|reide|ryde)\b/g,
    'book$1 a ride',
  ],
  [/\ba (?:cap|calf|cub)\b/g, 'a cab'],
  [/\b(?:re ?ports?|rapport|repot)\b/g, 'report'],
  [/\b(?:tabel|tables)\b|\bcable(?= for\b)/g, 'table'],
  [/\bsails\b/g, 'sales'],
  [/\b(?:weak|weeks?)\b/g, 'week'],
  [
    /\bcan ?t? (?:sell|solve|sail)\b|\bcansell\b|\bken saw(?:e?d)?\b|\bcancelled\b|\bcancels\b/g,
    'cancel',
  ],
];

/** The text in lower case, without punctuation, with frequent recognition errors corrected. */
export function normalise(text: string): string {
  let plain = text
    .toLowerCase()
    .replace(/['’]/g, '')
    .replace(/[^a-z0-9]+/g, ' ')
    .trim();
  for (const [slip, meant] of slips) plain = plain.replace(slip, meant);
  return plain.replace(/\s+/g, ' ').trim();
}

/** Whether one of the words is one of the keywords, allowing for a recognition error. */
export function mentions(plain: string, ...keywords: readonly string[]): boolean {
  const words = plain.split(' ');
  return keywords.some((keyword) =>
    keyword.includes(' ')
      ? ` ${plain} `.includes(` ${keyword} `)
      : words.some((word) => sounds(word, keyword)),
  );
}

/** Whether a word may be the keyword. Longer words may differ in more letters; short words must be equal. */
export function sounds(word: string, keyword: string): boolean {
  if (word === keyword || word === `${keyword}s`) return true;
  if (keyword.length < 5 || word.charAt(0) !== keyword.charAt(0)) return false;
  return distance(word, keyword) <= (keyword.length >= 8 ? 2 : 1);
}

/** The choice whose label matches the text best; null if none or several match. */
export function choose<T>(words: string, choices: readonly T[], label: (choice: T) => string) {
  const plain = normalise(words);
  const fitting = choices.filter((choice) => {
    const name = normalise(label(choice));
    return (
      ` ${plain} `.includes(` ${name} `) || name.split(' ').every((part) => mentions(plain, part))
    );
  });
  return fitting.length === 1 ? (fitting[0] ?? null) : null;
}

const smallNumbers = [
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
];

/** The first whole number in the text, or null. */
export function numberIn(plain: string): number | null {
  for (const word of plain.split(' ')) {
    if (/^\d{1,3}$/.test(word)) return Number(word);
    const index = smallNumbers.indexOf(word);
    if (index >= 0) return index + 1;
  }
  return null;
}

/** The number of insertions, deletions, replacements and swaps of adjacent letters between two words. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let best = Math.min(
        (previous[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (previous[j - 1] ?? 0) + (same ? 0 : 1),
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, (before[j - 2] ?? 0) + 1);
      row.push(best);
    }
    before = previous;
    previous = row;
  }
  return previous[b.length] ?? 0;
}
