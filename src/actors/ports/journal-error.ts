// The errors of a journal. A commit unit only checks whether a retry can help.

import { CapacityError, isError, RetryableError } from '../../values/errors.ts';
import type { JournalEntry, JournalPosition } from './journal.ts';

/**
 * The error of a journal. With `retryable: false`, a retry cannot help, and the unit whose append failed stops. Codes
 * of the journals that come with Offstage: `FENCED` (this process is not, or no longer, the scope's writer),
 * `JOURNAL_CONFLICT` (another entry has this number), `JOURNAL_CORRUPT`, `JOURNAL_CUT`, `JOURNAL_CLOSED` and
 * `INVALID_ENTRY`, all permanent; `JOURNAL_IO` and `JOURNAL_UNREACHABLE` may be temporary.
 */
export class JournalError extends RetryableError {}

/** The process that writes a scope, as far as the journal knows. */
export interface ScopeHolder {
  /** A name that people recognise. */
  readonly name: string;
  /** The URL that the process gave its journal; null if it gave none. */
  readonly address: string | null;
}

/**
 * The `SCOPE_IN_USE` error of `claim`: a live process has the scope. A request for the scope can be forwarded to that
 * process.
 */
export interface ScopeInUse extends CapacityError {
  /** The error code. */
  readonly code: 'SCOPE_IN_USE';
  /** The process that has the scope. */
  readonly holder: ScopeHolder;
}

/**
 * Creates the error for a claim on a scope that belongs to another process. `until`: when the scope can be claimed.
 */
export function scopeInUse(scope: string, holder: ScopeHolder, until: string): ScopeInUse {
  const at = holder.address === null ? '' : ` at ${holder.address}`;
  const error = new CapacityError(
    'SCOPE_IN_USE',
    `${scope} is in use by ${holder.name}${at}: ${until}`,
  );
  return Object.assign(error, { code: 'SCOPE_IN_USE' as const, holder });
}

/** Returns whether an error of a journal is permanent. */
export function isForGood(error: unknown): boolean {
  return isError(error) && 'retryable' in error && error.retryable === false;
}

/** Creates the error for a snapshot that cannot be read. */
interface UnreadableSnapshot extends JournalError {
  readonly entry: { readonly seq: number; readonly event: string; readonly reason: string };
}

/**
 * Creates the error for a scope or unit whose first entries are missing from the journal, so that its state cannot be
 * derived. `snapshot`: the error of the snapshot that should have replaced these entries; it becomes the cause.
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

/** Creates the error for damaged entries; an operator must decide what happens to them. */
export function journalCorrupt(source: string, what: string, cause?: unknown): JournalError {
  return new JournalError(
    'JOURNAL_CORRUPT',
    `${source} is damaged (${what}): restore it from a copy, or move it away to begin anew`,
    { retryable: false, cause },
  );
}

/** Creates the error for two writers of the same unit, one of which has not seen the other's entries. */
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
