// Reads words as nothing but phrases of closed lists: a yes, a no, politeness, asides, and the name of the action.

import { standsAt, type Phrases, type Tables, type Words } from './tables.ts';

type Verdict = 'action' | 'yes' | 'no';
type Said = Verdict | 'nothing';

/** The later of two of them is the meaning of both together. */
const WEIGHT: readonly Said[] = ['nothing', 'action', 'yes', 'no'];

/**
 * Reads the words as a sequence of listed phrases; null if a word is left over, or there is none. `action`:
 * the action was only named.
 */
export function verdictOf(words: Words, phrases: Tables['phrases'], names: Names): Verdict | null {
  return verdictsOf(words, phrases, names)[0] ?? null;
}

/** Reads the words from each index to the end like `verdictOf`, in one pass. */
export function verdictsOf(
  words: Words,
  phrases: Tables['phrases'],
  names: Names,
): readonly (Verdict | null)[] {
  const lists: readonly { readonly entries: Phrases; readonly says: Said }[] = [
    { entries: phrases.no, says: 'no' },
    { entries: phrases.yes, says: 'yes' },
    { entries: phrases.polite, says: 'nothing' },
    { entries: phrases.asides, says: 'nothing' },
  ];
  // For each index: the possible meanings of the words from there to the end ("please do not" has two readings; only
  // one of them reaches the end).
  const readings: Set<Said>[] = [...words, ''].map(() => new Set());
  readings[words.length]?.add('nothing');
  for (let start = words.length - 1; start >= 0; start -= 1) {
    const named = names.byFirst.get(words[start] as string) ?? [];
    for (const { entries, says } of [...lists, { entries: named, says: 'action' as const }])
      for (const entry of entries) {
        if (!standsAt(words, start, entry)) continue;
        for (const said of readings[start + entry.length] ?? [])
          readings[start]?.add(WEIGHT.indexOf(says) > WEIGHT.indexOf(said) ? says : said);
      }
  }
  return readings.map((whole) => {
    if (whole.has('no')) return 'no';
    if (whole.has('yes')) return 'yes';
    return whole.has('action') ? 'action' : null;
  });
}

/** How an action may be named beside a yes. */
export interface Names {
  readonly byFirst: ReadonlyMap<string, Phrases>;
  /** The words of each, with a space between them. */
  readonly all: ReadonlySet<string>;
}

export const noNames: Names = { byFirst: new Map(), all: new Set() };
