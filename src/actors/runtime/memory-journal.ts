// The journal of a process that needs none after it ends: it keeps the order
// *accept, commit, release* and the last entries, for a look at what happened.

import type { Journal, JournalEntry } from '../ports/journal.ts';
import { ConfigurationError } from '../../errors.ts';

export interface MemoryJournalOptions {
  /** How many of the latest entries are kept. @defaultValue 1000 */
  readonly keep?: number;
}

/**
 * A journal in memory.
 * @throws {ConfigurationError} when `keep` is no number of 0 or more.
 */
export function memoryJournal({ keep = 1000 }: MemoryJournalOptions = {}): Journal {
  if (!(keep >= 0))
    throw new ConfigurationError(
      'INVALID_OPTION',
      `memoryJournal: expected \`keep\` to be a number of 0 or more, got ${String(keep)}`,
    );
  let entries: JournalEntry[] = [];
  return {
    append(entry) {
      entries.push(entry);
      // Cut in halves, so that an append costs the same on average however much is kept.
      if (entries.length > 2 * keep) entries = keep === 0 ? [] : entries.slice(-keep);
    },
    read(unit) {
      const kept = entries.length > keep ? entries.slice(entries.length - keep) : entries;
      return unit === undefined ? [...kept] : kept.filter((entry) => entry.unit === unit);
    },
  };
}
