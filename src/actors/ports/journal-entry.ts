// Validates journals that an app passes, and entries that are read from outside; their format is defined only here.
//
//   JOURNAL-ENTRY-1. The error for an invalid entry names the entry's origin, and its scope, unit and seq if present. A
//       valid entry is returned with its original event object: no key, whatever its name, is dropped, renamed or
//       merged.

import { aFunction, check } from '../../values/checks.ts';
import { z } from 'zod';
import { messageOf } from '../../values/errors.ts';
import { clip } from '../../values/clip.ts';
import { isStorable } from '../../values/storable.ts';
import { JournalError, journalCorrupt } from './journal-error.ts';
import type { JournalEntry } from './journal.ts';

/** Only machines interpret the content of an event; copying it would cost more than this check. */
const eventSchema = z.custom<JournalEntry['event']>(
  (event) =>
    typeof event === 'object' &&
    event !== null &&
    'type' in event &&
    typeof event.type === 'string',
  'expected an object with a `type`',
);

const entrySchema: z.ZodType<JournalEntry> = z.object({
  scope: z.string(),
  unit: z.string(),
  seq: z.int().positive(),
  at: z.number(),
  actor: z.string(),
  definitionVersion: z.int(),
  event: eventSchema,
});

/** Checks the journal that an app passes to a journal that wraps it. */
export const journalSchema = z.looseObject({
  append: aFunction,
  read: aFunction,
  readAfter: aFunction.optional(),
  claim: aFunction.optional(),
  trim: aFunction.optional(),
  release: aFunction.optional(),
  scopes: aFunction.optional(),
  forget: aFunction.optional(),
});

/**
 * Checks an entry that was read from storage. `source` names where the entry comes from, such as a path or a database.
 * @throws {JournalError} `JOURNAL_CORRUPT` (JOURNAL-ENTRY-1)
 */
export function journalEntryOf(value: unknown, source: string): JournalEntry {
  check('journalEntryOf(value, source)', z.string(), source);
  let why: string;
  try {
    const { success, data, error } = entrySchema.safeParse(value);
    if (success) return data;
    why = z.prettifyError(error);
  } catch (cause) {
    // The value is a Proxy that is revoked, or whose traps throw.
    why = messageOf(cause);
  }
  throw journalCorrupt(source, `${nameOf(value)} is none: ${why}`);
}

/** The maximum length of scope and unit together, in bytes, so that both fit into a PostgreSQL index entry. */
const MAX_NAME_BYTES = 2600;
/** The largest value of PostgreSQL's integer columns. */
const MAX_INTEGER = 2_147_483_647;

/**
 * Checks an entry before it is written, so that every journal refuses the same entries.
 * @throws {JournalError} `INVALID_ENTRY`, with the problem.
 */
export function checkEntry(entry: JournalEntry): void {
  if (typeof entry !== 'object' || (entry as unknown) === null) throw invalid(entry, 'an entry');
  const { scope, unit, actor, seq, at, definitionVersion, event } = entry;
  for (const name of [scope, unit, actor])
    if (typeof name !== 'string' || !isStorable(name))
      throw invalid(entry, `scope, unit and actor to be texts, got ${JSON.stringify(name)}`);
  const chars = scope.length + unit.length;
  if (chars * 3 > MAX_NAME_BYTES && new TextEncoder().encode(scope + unit).length > MAX_NAME_BYTES)
    throw invalid(
      entry,
      `scope and unit to have at most ${MAX_NAME_BYTES} bytes, got ${chars} characters`,
    );
  const isCount = (count: number): boolean =>
    Number.isInteger(count) && count >= 0 && count <= MAX_INTEGER;
  if (!isCount(seq) || seq === 0)
    throw invalid(entry, `\`seq\` to be a whole number above 0, got ${String(seq)}`);
  if (!isCount(definitionVersion))
    throw invalid(
      entry,
      `\`definitionVersion\` to be a whole number, got ${String(definitionVersion)}`,
    );
  if (!Number.isFinite(at)) throw invalid(entry, `\`at\` to be a time, got ${String(at)}`);
  if (!eventSchema.safeParse(event).success)
    throw invalid(entry, 'its event to be an object with a `type`');
}

function invalid(entry: JournalEntry, what: string): JournalError {
  return new JournalError('INVALID_ENTRY', `${nameOf(entry)}: expected ${what}`, {
    retryable: false,
  });
}

/** Returns a text such as `entry 3 of sub_1 in ses_1`, which contains the parts that are known. */
function nameOf(value: unknown): string {
  try {
    const { scope, unit, seq } = (value ?? {}) as Partial<Record<keyof JournalEntry, unknown>>;
    return `entry ${shown(seq)} of ${shown(unit)} in ${shown(scope)}`;
  } catch {
    return 'an entry that cannot be read';
  }
}

function shown(name: unknown): string {
  if (typeof name === 'number') return String(name);
  return typeof name === 'string' ? clip(name, 200) : '(unnamed)';
}
