import type { JournalEntry } from '../../src/entries/journal.ts';
import type { RunRecord } from '../../src/testing/index.ts';

/** What a simulated session has in its journal. A program beside it has a scope of its own. */
export function sessionEntries({ log }: RunRecord): readonly JournalEntry[] {
  const entries = log.flatMap((happened) => (happened.kind === 'kept' ? [happened.entry] : []));
  const opened = entries.find(({ event }) => event.type === 'session.opened');
  return entries.filter(({ scope }) => scope === opened?.scope);
}
