// The beginning of something is not in the journal: nothing can be said of what followed.

import { JournalError } from '../ports/journal-error.ts';
import type { JournalEntry } from '../ports/journal.ts';

export function journalCut({ scope, unit, seq, event }: JournalEntry): JournalError {
  return new JournalError(
    'JOURNAL_CUT',
    `The first entry of ${unit} in ${scope} is entry ${seq} (\`${event.type}\`): its beginning is not there`,
    { retryable: false },
  );
}
