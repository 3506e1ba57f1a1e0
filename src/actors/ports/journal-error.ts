// The errors of a journal. A commit unit only asks whether a retry can help.

import { CapacityError, isError, OffstageError } from '../../values/errors.ts';
import type { JournalEntry, JournalPosition } from './journal.ts';

/**
 * A journal could not do what was requested. With `retryable: false` a retry cannot help: the unit that
 * appended ends. Codes of the journals that come with Offstage: `FENCED` (this process does not write the
 * scope, or no longer), `JOURNAL_CONFLICT` (another entry has this number), `JOURNAL_CORRUPT`, `JOURNAL_CUT`,
 * `JOURNAL_CLOSED` and `INVALID_ENTRY`, all permanent; `JOURNAL_IO` and `JOURNAL_UNREACHABLE`, which may be
 * temporary.
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

/** The process that writes a scope, as far as the journal knows. */
export interface ScopeHolder {
  /** For people. */
  readonly name: string;
  /** The address that the process has given its journal; null: none. */
  readonly address: string | null;
}

/** The error of `claim`, `SCOPE_IN_USE`: a live process has the scope. A request for it can be sent there. */
export interface ScopeInUse extends CapacityError {
  readonly code: 'SCOPE_IN_USE';
  readonly holder: ScopeHolder;
}

/** Returns the error for a claim of a scope that another process writes. `until`: when it can be claimed. */
export function scopeInUse(scope: string, holder: ScopeHolder, until: string): ScopeInUse {
  const at = holder.address === null ? '' : ` at ${holder.address}`;
  const error = new CapacityError(
    'SCOPE_IN_USE',
    `${scope} is in use by ${holder.name}${at}: ${until}`,
  );
  return Object.assign(error, { code: 'SCOPE_IN_USE' as const, holder });
}

/** Returns whether the error of a journal says that a retry cannot help. */
export function isForGood(error: unknown): boolean {
  return isError(error) && 'retryable' in error && error.retryable === false;
}

/** The error of an unreadable snapshot. */
interface UnreadableSnapshot extends JournalError {
  readonly entry: { readonly seq: number; readonly event: string; readonly reason: string };
}

/**
 * Returns the error for a scope or unit whose beginning is not in the journal, so that its state cannot be
 * derived. `snapshot`: the error of the snapshot that would have replaced the beginning; becomes the cause.
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

/** Returns the error for damaged entries; the operator must decide how to proceed. */
export function journalCorrupt(source: string, what: string, cause?: unknown): JournalError {
  return new JournalError(
    'JOURNAL_CORRUPT',
    `${source} is damaged (${what}): restore it from a copy, or move it away to begin anew`,
    { retryable: false, cause },
  );
}

/** Returns the error for two writers of the same unit: one of them lacks the other's entries. */
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
