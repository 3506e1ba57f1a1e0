// Finds positions in a list of options: "the second one", "option two", "number 2", "the last", "the former",
// and a bare "two".

import type { Tables } from './tables.ts';
import { isNumber, ordinalOf, type Utterance } from './utterance.ts';

export interface Positions {
  /** Indexes of options, from 0; none beyond the number of options. */
  readonly named: ReadonlySet<number>;
  /** The utterance contains nothing but these positions. */
  readonly isAll: boolean;
  /** The position is only a number, without an ordinal or a word such as "option". */
  readonly isBare: boolean;
}

export function positionsIn(
  { words, proforms }: Utterance,
  { language, frame, noise }: Tables,
  count: number,
  isFree: (index: number) => boolean = () => true,
): Positions {
  const named = new Set<number>();
  const used = new Set<number>();
  words.forEach((word, index) => {
    if (!isFree(index)) return;
    const position = ordinal(word) ?? afterLead(index);
    if (position === null) return;
    named.add(position - 1);
    used.add(index);
  });
  const rest = words.flatMap((word, index) =>
    used.has(index) || proforms.has(index) || noise.has(word) || frame.has(word) ? [] : [word],
  );
  const isBare = named.size === 0 && rest.length === 1 && isNumber(rest[0]);
  if (isBare) named.add(Number(rest[0]) - 1);
  for (const position of named) {
    if (!Number.isInteger(position) || position < 0 || position >= count) named.delete(position);
  }
  return { named, isAll: isBare || rest.length === 0, isBare };

  function ordinal(word: string): number | null {
    const { lastWords, ofTwo } = language;
    if (lastWords.includes(word)) return count;
    if (count === 2 && ofTwo.first.includes(word)) return 1;
    if (count === 2 && ofTwo.second.includes(word)) return 2;
    return ordinalOf(word);
  }

  function afterLead(index: number): number | null {
    if (!language.numberLeads.includes(words[index - 1] ?? '')) return null;
    const word = words[index] as string;
    if (isNumber(word)) return Number(word);
    const isEnd = words.slice(index + 1).every((next) => noise.has(next));
    const heard = Object.hasOwn(language.numberHomophones, word);
    return isEnd && heard ? (language.numberHomophones[word] as number) : null;
  }
}
