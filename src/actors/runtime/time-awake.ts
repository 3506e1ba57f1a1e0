// The time for which a scope was loaded in a process, according to its journal.

import type { JournalEntry } from '../ports/journal.ts';

/**
 * Returns the milliseconds from the first of these entries to the last, without the gaps before entries with
 * which a process resumed. The time after the last entry of a process is unknown and not counted.
 */
export function timeAwake(
  entries: readonly JournalEntry[],
  goesOn: (entry: JournalEntry) => boolean,
): number {
  let awakeMs = 0;
  let before = entries[0]?.at ?? 0;
  for (const entry of entries) {
    // The previous process may have had another clock.
    if (!goesOn(entry)) awakeMs += Math.max(0, entry.at - before);
    before = entry.at;
  }
  return awakeMs;
}
