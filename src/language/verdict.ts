// Reads words that consist only of listed phrases: a yes, a no, politeness, asides, and the name of the action.

import { standsAt, type Phrases, type Tables, type Words } from './tables.ts';

type Verdict = 'action' | 'yes' | 'no';
type Said = Verdict | 'nothing';

/** In ascending strength: of two verdicts in one utterance, the later one in this list wins. */
const WEIGHT: readonly Said[] = ['nothing', 'action', 'yes', 'no'];

/**
 * Returns the verdict of words that are a sequence of listed phrases; null if a word is left over, or there are no
 * words. `action`: the words only name the action.
 */
export function verdictOf(words: Words, phrases: Tables['phrases'], names: Names): Verdict | null {
  return verdictsOf(words, phrases, names)[0] ?? null;
}

/** Returns the verdict of the words from each index to the end, like `verdictOf`, in one pass. */
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
  // For each index: the possible verdicts of the words from there to the end ("please do not" has two readings, only
  // one of which reaches the end).
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

/** The ways to name an action next to a yes. */
export interface Names {
  readonly byFirst: ReadonlyMap<string, Phrases>;
  /** The words of each name, joined by spaces. */
  readonly all: ReadonlySet<string>;
}

export const noNames: Names = { byFirst: new Map(), all: new Set() };
