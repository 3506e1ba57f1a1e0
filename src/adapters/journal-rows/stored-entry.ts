// An entry of the journal as a row of a table, and back.
//
// STORED-ENTRY-1. A row that differs from the written one, or is no entry, is an error that names it.
// STORED-ENTRY-2. The same entry has the same checksum, packed or not.

import { crc32 } from 'node:zlib';
import { checkEntry, journalEntryOf } from '../../actors/ports/journal-entry.ts';
import { JournalError, journalCorrupt } from '../../actors/ports/journal-error.ts';
import type { JournalEntry } from '../../actors/ports/journal.ts';
import { messageOf } from '../../values/errors.ts';
import { MAX_EVENT_BYTES, packed, unpacked } from './packing.ts';

/** The columns of `entries`, in the order in which they are written. */
export type Row = readonly [
  scope: string,
  unit: string,
  seq: number,
  at: number,
  actor: string,
  definitionVersion: number,
  /** JSON; empty if it is packed. */
  event: string,
  checksum: number,
  packed: Uint8Array | null,
];

/** Characters that a database would refuse or replace: the character 0, and lone surrogates. */
const NO_TEXT = /\0|\p{Surrogate}/u;

/** @throws {JournalError} `INVALID_ENTRY` for names, or an event, that cannot be stored. */
export function rowOf(entry: JournalEntry): Row {
  checkEntry(entry);
  const { scope, unit, seq, at, actor, definitionVersion, event } = entry;
  let text: string;
  try {
    text = JSON.stringify(event);
  } catch (error) {
    throw new JournalError(
      'INVALID_ENTRY',
      `Expected the event \`${event.type}\` of ${unit} in ${scope} to be plain JSON: ${messageOf(error)}`,
      { retryable: false, cause: error },
    );
  }
  // At most three bytes per character: most texts need not be counted.
  if (text.length * 3 > MAX_EVENT_BYTES && Buffer.byteLength(text) > MAX_EVENT_BYTES)
    throw new JournalError(
      'INVALID_ENTRY',
      `Expected the event \`${event.type}\` of ${unit} in ${scope} to have at most ${MAX_EVENT_BYTES} bytes as JSON`,
      { retryable: false },
    );
  const checksum = checksumOf([scope, unit, seq, at, actor, definitionVersion, text]);
  const bytes = packed(text);
  return [scope, unit, seq, at, actor, definitionVersion, bytes ? '' : text, checksum, bytes];
}

/** @throws {JournalError} `INVALID_ENTRY` */
export function checkName(name: string): void {
  if (typeof name !== 'string' || NO_TEXT.test(name))
    throw new JournalError(
      'INVALID_ENTRY',
      `Expected scope, unit and actor to be texts, got ${JSON.stringify(name)}`,
      { retryable: false },
    );
}

/** A row as the database returns it, not checked yet. */
export interface StoredRow {
  readonly [column: string]: unknown;
}

/** @throws {JournalError} `JOURNAL_CORRUPT` (STORED-ENTRY-1) */
export function entryOf(row: StoredRow, source: string): JournalEntry {
  const { scope, unit, seq, at, actor, definition_version: definitionVersion } = row;
  const name = `entry ${String(seq)} of ${String(unit)} in ${String(scope)}`;
  const text = textOf(row, source, name);
  if (checksumOf([scope, unit, seq, at, actor, definitionVersion, text]) !== row['checksum'])
    throw journalCorrupt(source, `${name} is not what was written`);
  let event: unknown;
  try {
    event = JSON.parse(text);
  } catch (error) {
    throw journalCorrupt(source, `${name} has an event that is no JSON`, error);
  }
  return journalEntryOf({ scope, unit, seq, at, actor, definitionVersion, event }, source);
}

function textOf({ event, packed: bytes }: StoredRow, source: string, name: string): string {
  if (bytes === null || bytes === undefined) return String(event);
  try {
    // There is no text beside packed bytes, unless the row was altered.
    return `${String(event)}${unpacked(bytes as Uint8Array)}`;
  } catch (error) {
    throw journalCorrupt(source, `${name} cannot be unpacked`, error);
  }
}

export function checksumOf(values: readonly unknown[]): number {
  return crc32(values.join('\n'));
}
