// For how long a scope was in some process, as far as its journal says.

import type { JournalEntry } from '../ports/journal.ts';

/**
 * In milliseconds: from the first of these entries to the last one, without the times before those
 * with which a process went on. What a process did after its last entry nobody knows.
 */
export function timeAwake(
  entries: readonly JournalEntry[],
  goesOn: (entry: JournalEntry) => boolean,
): number {
  let awakeMs = 0;
  let before = entries[0]?.at ?? 0;
  for (const entry of entries) {
    // Whoever had it before may have had another clock.
    if (!goesOn(entry)) awakeMs += Math.max(0, entry.at - before);
    before = entry.at;
  }
  return awakeMs;
}
