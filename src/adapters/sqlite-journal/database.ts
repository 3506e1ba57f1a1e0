// The file of a journal: opened, locked, checked and brought to the present layout.
//
// Owns:     the connection, its settings, what an error of SQLite means.
// Does not: know what entries mean.
//
// Invariants
//   D1. One process at a time: a second one gets `JOURNAL_IN_USE`, and touches nothing.
//   D2. A file that is not ours, or of a newer version, is never written to.
//   D3. What a process that died had written in part is not there for the next one: SQLite
//       ends its write-ahead log at the first frame that is not whole. Entries in it were not acknowledged.

import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { JournalError, journalCorrupt } from '../../actors/ports/journal-error.ts';
import { CapacityError, ConfigurationError, messageOf } from '../../errors.ts';
import { bringUpToDate, LAYOUT_VERSION } from './layout.ts';

/** "OFFS": tells our files from those of others. Source: sqlite.org, `pragma application_id`. */
const APPLICATION_ID = 0x4f_46_46_53;

/** `pragma auto_vacuum`. Source: sqlite.org. */
const INCREMENTAL = 2;

export type Synchronous = 'full' | 'normal';

/** Primary result codes of SQLite. Source: sqlite.org/rescode.html. */
const OK = 0;
const BUSY = 5;
const LOCKED = 6;
const READ_ONLY = 8;
const IO_ERROR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANNOT_OPEN = 14;
const CONSTRAINT = 19;
const NOT_A_DATABASE = 26;

/**
 * Opens or makes the file.
 * @throws {ConfigurationError} `JOURNAL_IN_USE`, `JOURNAL_TOO_NEW`, `NOT_A_JOURNAL` or `CANNOT_OPEN`
 * @throws {JournalError} `JOURNAL_CORRUPT`, `JOURNAL_IO`
 */
export function openDatabase(path: string, synchronous: Synchronous): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true });
    database = new DatabaseSync(path);
    // D1: kept until the connection closes, or the process dies.
    database.exec('pragma locking_mode = exclusive');
    checkIdentity(database, path);
    // What is forgotten makes the file smaller. Counts for a new file only, and before anything is in it.
    database.exec('pragma auto_vacuum = incremental');
    database.exec('pragma journal_mode = wal');
    database.exec(`pragma synchronous = ${synchronous}`);
    // Only macOS knows it: there a disk may keep what it was told to write for a while.
    if (synchronous === 'full') database.exec('pragma fullfsync = on');
    database.exec('begin immediate');
    const version = numberOf(database, 'user_version');
    if (version === 0) database.exec(`pragma application_id = ${APPLICATION_ID}`);
    bringUpToDate(database, version, path);
    database.exec('commit');
    // A file that was made without it is written anew once.
    if (numberOf(database, 'auto_vacuum') !== INCREMENTAL) database.exec('vacuum');
    return database;
  } catch (error) {
    database?.close();
    throw explained(error, path);
  }
}

/** D2. Returns the version of its layout; 0: nothing is in it. */
export function checkIdentity(database: DatabaseSync, path: string): number {
  const version = numberOf(database, 'user_version');
  const isNew = version === 0 && tablesOf(database) === 0;
  if (!isNew && numberOf(database, 'application_id') !== APPLICATION_ID)
    throw new ConfigurationError(
      'NOT_A_JOURNAL',
      `Expected \`path\` to be a journal of Offstage, ${path} is another SQLite database`,
    );
  if (version > LAYOUT_VERSION)
    throw new ConfigurationError(
      'JOURNAL_TOO_NEW',
      `${path} was written by a newer version of Offstage (layout ${version}; this one knows ${LAYOUT_VERSION})`,
    );
  return version;
}

function numberOf(database: DatabaseSync, pragma: string): number {
  return Number(database.prepare(`pragma ${pragma}`).get()?.[pragma] ?? 0);
}

function tablesOf(database: DatabaseSync): number {
  return Number(database.prepare('select count(*) as count from sqlite_schema').get()?.['count']);
}

export function isConstraint(error: unknown): boolean {
  return resultCode(error) === CONSTRAINT;
}

/** It would have to write something beside the file, and cannot. */
export function isNotWritable(error: unknown): boolean {
  return [READ_ONLY, CANNOT_OPEN].includes(resultCode(error));
}

/** An error of SQLite as one of ours, which says who must act; any other error as it is. */
export function explained(error: unknown, path: string): unknown {
  const said = messageOf(error);
  switch (resultCode(error)) {
    case BUSY:
    case LOCKED:
      return new ConfigurationError(
        'JOURNAL_IN_USE',
        `${path} is in use by another process: a SQLite journal serves one`,
        { cause: error },
      );
    case FULL:
      return new CapacityError('DISK_FULL', `${path}: the disk is full`, { cause: error });
    case IO_ERROR:
      return new JournalError('JOURNAL_IO', `${path}: ${said}`, { retryable: true, cause: error });
    case CORRUPT:
      return journalCorrupt(path, said, error);
    case NOT_A_DATABASE:
      return new ConfigurationError(
        'NOT_A_JOURNAL',
        `Expected \`path\` to be a journal of Offstage, ${path} is no SQLite database`,
        { cause: error },
      );
    case CANNOT_OPEN:
      return new ConfigurationError('CANNOT_OPEN', `${path} cannot be opened: ${said}`, {
        cause: error,
      });
    default:
      return error;
  }
}

/** The primary code: extended ones keep it in their lowest byte. `OK`: no error of SQLite. */
function resultCode(error: unknown): number {
  const code = (error as { readonly errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code & 0xff : OK;
}
