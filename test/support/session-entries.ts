import type { JournalEntry } from '../../src/entries/journal.ts';
import type { RunRecord } from '../../src/testing/index.ts';

/** Returns the journal entries of a simulated session. A program beside the session has a different scope. */
export function sessionEntries({ log }: RunRecord): readonly JournalEntry[] {
  const entries = log.flatMap((happened) => (happened.kind === 'kept' ? [happened.entry] : []));
  const opened = entries.find(({ event }) => event.type === 'session.opened');
  return entries.filter(({ scope }) => scope === opened?.scope);
}
