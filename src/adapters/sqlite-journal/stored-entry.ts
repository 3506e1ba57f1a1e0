// An entry of the journal as a row, and back.
//
// E1. A row that is not what was written, or not what an entry is, is an error that names it.

import { crc32 } from 'node:zlib';
import { z } from 'zod';
import type { JournalEntry } from '../../actors/ports/journal.ts';
import { ProtocolError, messageOf } from '../../errors.ts';
import { corrupt } from './database.ts';

/** The columns of `entries`, in the order in which they are written. */
export type Row = readonly [
  unit: string,
  seq: number,
  at: number,
  actor: string,
  definitionVersion: number,
  event: string,
  checksum: number,
];

/** @throws {ProtocolError} `NOT_JSON` for an event that cannot be written down. */
export function rowOf({ unit, seq, at, actor, definitionVersion, event }: JournalEntry): Row {
  let text: string;
  try {
    text = JSON.stringify(event);
  } catch (error) {
    throw new ProtocolError(
      'NOT_JSON',
      `Expected the event \`${event.type}\` of ${unit} to be plain JSON: ${messageOf(error)}`,
      { raw: event, cause: error },
    );
  }
  const values = [unit, seq, at, actor, definitionVersion, text] as const;
  return [...values, checksumOf(values)];
}

const storedSchema = z.object({
  unit: z.string(),
  seq: z.int().positive(),
  at: z.number(),
  actor: z.string(),
  definition_version: z.int(),
  event: z.string(),
  checksum: z.int(),
});

const eventSchema = z.looseObject({ type: z.string() });

/** @throws {OffstageError} `JOURNAL_CORRUPT` (E1) */
export function entryOf(stored: unknown, path: string): JournalEntry {
  const row = storedSchema.safeParse(stored);
  if (!row.success) throw corrupt(path, `a row is not an entry: ${z.prettifyError(row.error)}`);
  const { unit, seq, at, actor, definition_version: definitionVersion, event, checksum } = row.data;
  if (checksumOf([unit, seq, at, actor, definitionVersion, event]) !== checksum)
    throw corrupt(path, `entry ${seq} of ${unit} is not what was written`);
  const parsed = eventSchema.safeParse(JSON.parse(event));
  if (!parsed.success) throw corrupt(path, `entry ${seq} of ${unit} has no event`);
  return { unit, seq, at, actor, definitionVersion, event: parsed.data };
}

function checksumOf(values: readonly (string | number)[]): number {
  return crc32(values.join('\n'));
}
