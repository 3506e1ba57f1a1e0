// An entry as it is read back from outside: the one place that says what it must look like.
//
// JE1. What is no entry is an error that names where it is from, and scope, unit and seq as far as
//      it has them. What is one is returned with the very event that was read: no key is
//      dropped, renamed or merged, whatever its name.

import { z } from 'zod';
import { journalCorrupt } from './journal-error.ts';
import type { JournalEntry } from './journal.ts';

/** What is in it is the affair of the machines; a copy would cost more than the check. */
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

/**
 * Checks what was read. `source` says where it was: a path, a database.
 * @throws {JournalError} `JOURNAL_CORRUPT` (JE1)
 */
export function journalEntryOf(value: unknown, source: string): JournalEntry {
  const parsed = entrySchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw journalCorrupt(source, `${nameOf(value)} is none: ${z.prettifyError(parsed.error)}`);
}

/** `entry 3 of sub_1 in ses_1`, with what there is of it. */
function nameOf(value: unknown): string {
  const { scope, unit, seq } = (value ?? {}) as Partial<Record<keyof JournalEntry, unknown>>;
  return `entry ${shown(seq)} of ${shown(unit)} in ${shown(scope)}`;
}

function shown(name: unknown): string {
  return typeof name === 'string' || typeof name === 'number' ? String(name) : '(unnamed)';
}
