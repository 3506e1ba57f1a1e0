// Reads words as nothing but phrases of closed lists: a yes, a no, politeness, asides, and the name of the action.

import { standsAt, type Phrases, type Tables, type Words } from './tables.ts';

type Said = 'nothing' | 'action' | 'yes' | 'no';

/** The later of two of them is the meaning of both together. */
const WEIGHT: readonly Said[] = ['nothing', 'action', 'yes', 'no'];

/**
 * Reads the words as a sequence of listed phrases; null if a word is left over, or there is none. `action`:
 * the action was only named.
 */
export function verdictOf(
  words: Words,
  phrases: Tables['phrases'],
  names: Names,
): Exclude<Said, 'nothing'> | null {
  const lists: readonly { readonly entries: Phrases; readonly says: Said }[] = [
    { entries: phrases.no, says: 'no' },
    { entries: phrases.yes, says: 'yes' },
    { entries: phrases.polite, says: 'nothing' },
    { entries: phrases.asides, says: 'nothing' },
  ];
  // For each number of words read so far: the possible meanings ("please do not" has two readings; only one
  // of them reaches the end).
  const readings: Set<Said>[] = [...words, ''].map(() => new Set());
  readings[0]?.add('nothing');
  for (let start = 0; start < words.length; start += 1) {
    const named = names.byFirst.get(words[start] as string) ?? [];
    for (const said of readings[start] ?? []) {
      for (const { entries, says } of [...lists, { entries: named, says: 'action' as const }]) {
        for (const entry of entries) {
          if (!standsAt(words, start, entry)) continue;
          const together = WEIGHT.indexOf(says) > WEIGHT.indexOf(said) ? says : said;
          readings[start + entry.length]?.add(together);
        }
      }
    }
  }
  const whole = readings[words.length];
  if (whole?.has('no')) return 'no';
  if (whole?.has('yes')) return 'yes';
  return whole?.has('action') ? 'action' : null;
}

/** How an action may be named beside a yes. */
export interface Names {
  readonly byFirst: ReadonlyMap<string, Phrases>;
  /** The words of each, with a space between them. */
  readonly all: ReadonlySet<string>;
}

export const noNames: Names = { byFirst: new Map(), all: new Set() };
