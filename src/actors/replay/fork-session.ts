// The beginning of a session under another id: from there it goes on live, another way.
//
// FORK-SESSION-1. The one that it is forked from is not touched.
// FORK-SESSION-2. A beginning of the entries of a scope is what a crash at that instant would have left: what
//      goes on from it goes on as after a crash.

import { ConfigurationError } from '../../values/errors.ts';
import { z } from 'zod';
import { check, type ChecksOf } from '../../values/checks.ts';
import type { Journal, JournalEntry } from '../ports/journal.ts';

export interface ForkOptions {
  /** The id of the session that is forked. */
  readonly from: string;
  /** So many of its entries are taken: its last one is the number of a `ReplayStep`. */
  readonly after: number;
  /** The id of the session that goes on from there: start one with this `sessionId`. */
  readonly to: string;
  /** Where it is written. @defaultValue the journal that is read */
  readonly into?: Journal;
}

const optionsSchema = z.strictObject({
  from: z.string(),
  after: z.custom<number>(),
  to: z.string().min(1),
  into: z.custom<Journal>().optional(),
} satisfies ChecksOf<ForkOptions>);

/**
 * Copies the beginning of a session under another id. Subagents keep their ids, and their calls the
 * keys that they were made with: a tool that is `idempotent` does nothing twice for the two.
 * Working memory is not in a journal, and is not copied.
 *
 * @throws {ConfigurationError} `UNKNOWN_SESSION`, `SESSION_EXISTS`, or `INVALID_OPTION` for an
 * `after` that is no entry of it.
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
 * Writes the entries of a scope that is not there yet.
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

/** The session and its services are named after it. */
function renamed(entry: JournalEntry, to: string): JournalEntry {
  const { scope: from, unit } = entry;
  const isNamedAfterIt = unit === from || unit.startsWith(`${from}/`);
  return { ...entry, scope: to, unit: isNamedAfterIt ? `${to}${unit.slice(from.length)}` : unit };
}
