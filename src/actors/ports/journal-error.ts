// What a journal throws. Whether trying again can help is what a commit unit asks.

import { isError, OffstageError } from '../../values/errors.ts';
import type { JournalEntry, JournalPosition } from './journal.ts';

/**
 * A journal could not do what it was asked. With `retryable: false` trying the same again cannot
 * help: the unit whose append it was ends. Codes of the journals that come with Offstage:
 * `FENCED` (this process does not write the scope, or no longer), `JOURNAL_CONFLICT` (another entry has this
 * number), `JOURNAL_CORRUPT`, `JOURNAL_CUT`, `JOURNAL_CLOSED` and `INVALID_ENTRY`, all for good; `JOURNAL_IO` and
 * `JOURNAL_UNREACHABLE`, which may pass.
 */
export class JournalError extends OffstageError {
  readonly retryable: boolean;
  constructor(
    code: string,
    message: string,
    options: { readonly retryable: boolean; readonly cause?: unknown },
  ) {
    super(code, message, options);
    this.retryable = options?.retryable ?? false;
  }
}

/** A journal says so of what trying again would not mend. */
export function isForGood(error: unknown): boolean {
  return isError(error) && 'retryable' in error && error.retryable === false;
}

/** The error of a snapshot that cannot be read. */
interface UnreadableSnapshot extends JournalError {
  readonly entry: { readonly seq: number; readonly event: string; readonly reason: string };
}

/**
 * The beginning of something is not in the journal, so its state cannot be derived. `snapshot`: the error of the
 * snapshot that would have stood for the beginning, which becomes the cause.
 */
export function journalCut(
  { scope, unit, seq, event }: JournalEntry,
  snapshot?: UnreadableSnapshot,
): JournalError {
  const instead = snapshot
    ? `, and entry ${snapshot.entry.seq} (\`${snapshot.entry.event}\`), which stands for it, cannot be read: ${snapshot.entry.reason}`
    : '';
  return new JournalError(
    'JOURNAL_CUT',
    `The first entry of ${unit} in ${scope} is entry ${seq} (\`${event.type}\`): the journal lacks the entries before it${instead}. Restore the journal from a copy, or delete the scope with \`forget\` of the journal and begin anew`,
    { retryable: false, cause: snapshot },
  );
}

/** What is kept is damaged; whoever runs this must decide what to do. */
export function journalCorrupt(source: string, what: string, cause?: unknown): JournalError {
  return new JournalError(
    'JOURNAL_CORRUPT',
    `${source} is damaged (${what}): restore it from a copy, or move it away to begin anew`,
    { retryable: false, cause },
  );
}

/** Two writers have the same unit: one of them does not know what the other one did. */
export function journalConflict(
  source: string,
  { scope, unit, seq }: JournalPosition,
): JournalError {
  return new JournalError(
    'JOURNAL_CONFLICT',
    `${source} has another entry ${seq} of ${unit} in ${scope} already: two writers have the same unit`,
    { retryable: false },
  );
}
