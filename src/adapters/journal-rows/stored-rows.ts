// Converts a journal entry to a table row and back, and packs long events. Also converts wake times.
//
//   STORED-ENTRY-1. A row that was altered or is not an entry causes an error that names the row.
//   STORED-ENTRY-2. An entry has the same checksum whether it is packed or not.

import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib';
import { checkEntry, journalEntryOf } from '../../actors/ports/journal-entry.ts';
import { JournalError, journalCorrupt } from '../../actors/ports/journal-error.ts';
import type { JournalEntry } from '../../actors/ports/journal.ts';
import type { WakeTime } from '../../actors/ports/wake-times.ts';
import { messageOf } from '../../values/errors.ts';
import { isStorable } from '../../values/storable.ts';
import { DICTIONARIES } from './dictionaries.ts';

/** The columns of `entries`, in write order. */
export type Row = readonly [
  scope: string,
  unit: string,
  seq: number,
  at: number,
  actor: string,
  definitionVersion: number,
  /** JSON; empty if the event is packed. */
  event: string,
  checksum: number,
  packed: Uint8Array | null,
];

/** @throws {JournalError} `INVALID_ENTRY` for names or events that cannot be stored. */
export function rowOf(entry: JournalEntry): Row {
  const text = textOfEntry(entry);
  const { scope, unit, seq, at, actor, definitionVersion } = entry;
  const checksum = checksumOf([scope, unit, seq, at, actor, definitionVersion, text]);
  const bytes = packed(text);
  return [scope, unit, seq, at, actor, definitionVersion, bytes ? '' : text, checksum, bytes];
}

/**
 * Returns the event of an entry as JSON.
 * @throws {JournalError} `INVALID_ENTRY` for names or events that cannot be stored.
 */
export function textOfEntry(entry: JournalEntry): string {
  checkEntry(entry);
  const { scope, unit, event } = entry;
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
  // A character takes at most three bytes, so most texts do not need an exact count.
  if (text.length * 3 > MAX_EVENT_BYTES && Buffer.byteLength(text) > MAX_EVENT_BYTES)
    throw new JournalError(
      'INVALID_ENTRY',
      `Expected the event \`${event.type}\` of ${unit} in ${scope} to have at most ${MAX_EVENT_BYTES} bytes as JSON`,
      { retryable: false },
    );
  return text;
}

/** An unchecked row from the database. */
interface StoredRow {
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
    // The text next to packed bytes is empty unless the row was altered.
    return `${String(event)}${unpacked(bytes as Uint8Array)}`;
  } catch (error) {
    throw journalCorrupt(source, `${name} cannot be unpacked`, error);
  }
}

export function checksumOf(values: readonly unknown[]): number {
  return crc32(values.join('\n'));
}

/** The position before all wake times. */
export const BEFORE_ALL: WakeTime = { at: -Infinity, scope: '' };

/** @throws {JournalError} `INVALID_ENTRY` for a scope or a time that cannot be stored. */
export function checkWakeTime(scope: string, at: number | null): void {
  if (typeof scope !== 'string' || !isStorable(scope))
    throw new JournalError(
      'INVALID_ENTRY',
      `Expected scope, unit and actor to be texts, got ${JSON.stringify(scope)}`,
      { retryable: false },
    );
  if (at !== null && Number.isNaN(at))
    throw new JournalError('INVALID_ENTRY', `Expected a time for ${scope}, got NaN`, {
      retryable: false,
    });
}

/** Roughly the number of characters that fit into an SQLite page. */
const PACKED_FROM = 4000;
/** Longer texts are repetitive. Searching for the best match would take three times as long and save only 10 %. */
const FAST_FROM = 64_000;

/**
 * The maximum size of an event as JSON, in bytes. Without a limit, a small packed event could fill the memory when it
 * is unpacked.
 */
const MAX_EVENT_BYTES = 256 * 1024 * 1024;

/**
 * Packs a long event. The result is the dictionary's number and the output of `deflate` with that dictionary. Returns
 * null for a short event. Sessions write short events constantly, and packing them takes longer than storing them.
 */
export function packed(text: string): Uint8Array | null {
  if (text.length < PACKED_FROM) return null;
  const level = text.length < FAST_FROM ? 6 : 3;
  const bytes = deflateRawSync(text, { level, dictionary: DICTIONARIES.at(-1) });
  return Buffer.concat([Buffer.of(DICTIONARIES.length), bytes]);
}

/** @throws if the bytes are not a packed event */
export function unpacked(bytes: Uint8Array): string {
  const [number = 0] = bytes;
  const dictionary = DICTIONARIES[number - 1];
  if (!dictionary)
    throw new Error(`Expected a dictionary from 1 to ${DICTIONARIES.length}, got ${number}`);
  return inflateRawSync(bytes.subarray(1), {
    dictionary,
    maxOutputLength: MAX_EVENT_BYTES,
  }).toString();
}
