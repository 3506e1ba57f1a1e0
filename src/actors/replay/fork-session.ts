// Copies the beginning of a session under another id. The copy can then continue live, independently of the original.
//
// FORK-SESSION-1. The original session is not changed.
//   FORK-SESSION-2. The first entries of a scope describe the state that a crash after them would have left, so the
//       copy continues as it would after that crash.

import { ConfigurationError } from '../../values/errors.ts';
import { z } from 'zod';
import { check, type ChecksOf } from '../../values/checks.ts';
import type { Journal, JournalEntry } from '../ports/journal.ts';

/** The options of `forkSession`. */
export interface ForkOptions {
  /** The id of the original session. */
  readonly from: string;
  /** The number of entries to copy, which is the `number` of the last copied entry's `ReplayStep`. */
  readonly after: number;
  /** The id of the copy; start a session with this `sessionId`. */
  readonly to: string;
  /** The journal of the copy. @defaultValue the journal of the original */
  readonly into?: Journal;
}

const optionsSchema = z.strictObject({
  from: z.string(),
  after: z.custom<number>(),
  to: z.string().min(1),
  into: z.custom<Journal>().optional(),
} satisfies ChecksOf<ForkOptions>);

/**
 * Copies the beginning of a session under another id. Subagents keep their ids, and calls keep their idempotency keys,
 * so an `idempotent` tool acts once for both sessions. Working memory is not in a journal and is therefore not copied.
 *
 * @throws {ConfigurationError} `UNKNOWN_SESSION`, `SESSION_EXISTS`, or `INVALID_OPTION` if `after` is not the number of
 *   an entry.
 */
export async function forkSession(journal: Journal, options: ForkOptions): Promise<void> {
  const { from, after, to, into = journal } = check('forkSession', optionsSchema, options);
  const entries = await journal.read({ scope: from });
  if (entries.length === 0)
    throw new ConfigurationError('UNKNOWN_SESSION', `The journal has no session "${from}"`);
  if (!Number.isInteger(after) || after < 1 || after > entries.length)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `Expected \`after\` to be a whole number from 1 to ${entries.length}, got ${String(after)}`,
    );
  await writeScope(
    into,
    to,
    entries.slice(0, after).map((entry) => renamed(entry, to)),
  );
}

/**
 * Writes the entries of a scope that does not exist yet.
 * @throws {ConfigurationError} `SESSION_EXISTS`.
 */
export async function writeScope(
  journal: Journal,
  scope: string,
  entries: readonly JournalEntry[],
): Promise<void> {
  await journal.claim?.(scope);
  try {
    if ((await journal.read({ scope })).length > 0)
      throw new ConfigurationError(
        'SESSION_EXISTS',
        `Expected an id that is not in the journal, got "${scope}"`,
      );
    for (const entry of entries) await journal.append(entry);
  } finally {
    await journal.release?.(scope);
  }
}

/** Renames the scope in an entry, and the unit if it is named after the scope (the session, its services). */
function renamed(entry: JournalEntry, to: string): JournalEntry {
  const { scope: from, unit } = entry;
  const isNamedAfterIt = unit === from || unit.startsWith(`${from}/`);
  return { ...entry, scope: to, unit: isNamedAfterIt ? `${to}${unit.slice(from.length)}` : unit };
}
