// The file of a journal: opening, locking, checking and upgrading it.
//
// Owns:     the connection, its settings, and the interpretation of SQLite errors.
// Does not: interpret entries.
//
// Invariants
//   SQLITE-JOURNAL-DATABASE-1. Only one process at a time can open the file. For a second process, opening fails with
//                              `JOURNAL_IN_USE` and changes nothing.
//   SQLITE-JOURNAL-DATABASE-2. A file of another program or of a newer version is never written to.
//   SQLITE-JOURNAL-DATABASE-3. If a process dies while it is writing, its partial writes are invisible to the next
//       process: SQLite ends its write-ahead log at the first incomplete frame. Entries in that frame were never
//       acknowledged.
//   SQLITE-JOURNAL-DATABASE-4. The journal's file, log and index have mode 0600 if the journal creates them, whatever
//       the umask: only the process's user can read them. A folder that is created for the file has mode 0700. If the
//       mode of an older journal is wider, it is restricted. A file that the journal did not create keeps its mode. A
//       path that is not a regular file (a device, a pipe, a folder) is refused before it is opened. The same applies
//       if there is a link in place of the log.
//   SQLITE-JOURNAL-DATABASE-5. A file that is shorter than its header states is damaged: SQLite would read zeros for the
//       missing part of the last page, and entries would be lost silently.
//   SQLITE-JOURNAL-DATABASE-6. Deleted entries leave no bytes behind: SQLite overwrites them. When a scope is
//       forgotten, the log is emptied.
//   SQLITE-JOURNAL-DATABASE-7. Damaged pages are refused rather than skipped: SQLite checks the cells of each page that
//       it reads.
//   LAYOUT-1. The entries of an older file are verified by their checksums before they are rewritten. A damaged file
//       remains unchanged, with its old version.

import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { propertiesOf } from '../../values/json.ts';
import { JournalError, journalCorrupt } from '../../actors/ports/journal-error.ts';
import {
  CapacityError,
  ConfigurationError,
  messageOf,
  OffstageError,
} from '../../values/errors.ts';
import { checksumOf } from '../journal-rows/stored-rows.ts';

/** "OFFS", which distinguishes journals from other files. Source: sqlite.org, `pragma application_id`. */
const APPLICATION_ID = 0x4f_46_46_53;

/** `pragma auto_vacuum`. Source: sqlite.org. */
const INCREMENTAL = 2;

export type Synchronous = 'full' | 'normal';

/** SQLite's primary result codes. Source: sqlite.org/rescode.html. */
const OK = 0;
const ERROR = 1;
const PERMISSION = 3;
const BUSY = 5;
const LOCKED = 6;
const READ_ONLY = 8;
const IO = 10;
const CORRUPT = 11;
const FULL = 13;
const CANNOT_OPEN = 14;
const CONSTRAINT = 19;
const AUTHORIZATION = 23;
const NOT_A_DATABASE = 26;

/**
 * Opens or creates the file.
 * @throws {ConfigurationError} `JOURNAL_IN_USE`, `JOURNAL_TOO_NEW`, `NOT_A_JOURNAL`, `CANNOT_OPEN` or `CANNOT_WRITE`
 * @throws {JournalError} `JOURNAL_CORRUPT`, `JOURNAL_IO`
 */
export function openDatabase(path: string, synchronous: Synchronous): DatabaseSync {
  let database: DatabaseSync | undefined;
  const isKept = path !== ':memory:';
  try {
    if (isKept) checkRegular(path);
    if (isKept) makePrivately(path);
    const log = isKept ? sizeOf(`${path}-wal`) : 0;
    const before = isKept ? sizeOf(path) : 0;
    database = new DatabaseSync(path);
    // SQLITE-JOURNAL-DATABASE-1: the lock is held until the connection is closed or the process dies.
    database.exec('pragma locking_mode = exclusive');
    const isOurs = checkIdentity(database, path) > 0;
    if (isKept && isOurs) narrow(path);
    // SQLITE-JOURNAL-DATABASE-7
    database.exec('pragma cell_size_check = on');
    // Pages that are in the log may be missing from the file.
    if (isKept && log === 0) checkWhole(database, path);
    // Allows the file to shrink after a scope has been forgotten. Takes effect only in a new, empty file.
    database.exec('pragma auto_vacuum = incremental');
    database.exec('pragma journal_mode = wal');
    database.exec(`pragma synchronous = ${synchronous}`);
    // SQLITE-JOURNAL-DATABASE-6
    database.exec('pragma secure_delete = on');
    // Only macOS supports this setting. It is needed because disks may delay a write that they have confirmed.
    if (synchronous === 'full') database.exec('pragma fullfsync = on');
    database.exec('begin immediate');
    const version = numberOf(database, 'user_version');
    if (version === 0) database.exec(`pragma application_id = ${APPLICATION_ID}`);
    bringUpToDate(database, version, path);
    database.exec('commit');
    // If a file does not have this setting, it is rewritten once.
    if (numberOf(database, 'auto_vacuum') !== INCREMENTAL) database.exec('vacuum');
    if (log > 0) {
      // Extends the file to the length that its header states. Missing pages that are not in the log now contain zeros:
      // SQLite refuses a page that consists only of zeros, but accepts zeros at the end of a page.
      database.exec('pragma wal_checkpoint(truncate)');
      if (before % numberOf(database, 'page_size') !== 0) checkStructure(database, path);
    }
    return database;
  } catch (error) {
    database?.close();
    throw (isKept && withoutRight(path, error)) || explained(error, path);
  }
}

/**
 * Returns an error that names the missing write permission, because SQLite reports `disk I/O error` or a read-only
 * database. Returns null for any other error.
 */
function withoutRight(path: string, cause: unknown): ConfigurationError | null {
  if (![READ_ONLY, IO, CANNOT_OPEN].includes(resultCode(cause))) return null;
  const folder = dirname(path);
  for (const [one, what] of [
    [path, 'the file'],
    [folder, `its folder ${folder}, in which SQLite writes a log`],
  ] as const)
    try {
      accessSync(one, constants.W_OK);
    } catch (error) {
      const { code } = propertiesOf(error);
      return new ConfigurationError(
        'CANNOT_WRITE',
        `${path} cannot be written (${String(code)}): expected the right to write ${what}`,
        { cause },
      );
    }
  return null;
}

/** SQLITE-JOURNAL-DATABASE-4. Creates the file and its folder if they do not exist. */
function makePrivately(path: string): void {
  const made = mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  if (made !== undefined) chmodSync(dirname(path), 0o700);
  if (existsSync(path)) return;
  const file = openSync(path, 'wx', 0o600);
  // The umask may have removed permissions of the user.
  fchmodSync(file, 0o600);
  closeSync(file);
}

/** SQLITE-JOURNAL-DATABASE-4. SQLite creates its other files with the mode of the main file. */
function narrow(path: string): void {
  for (const one of [path, `${path}-wal`, `${path}-shm`]) {
    const state = statSync(one, { throwIfNoEntry: false });
    if (!state || (state.mode & 0o077) === 0) continue;
    try {
      // A file that its owner has made read-only stays read-only.
      chmodSync(one, state.mode & 0o700);
    } catch (error) {
      // The file belongs to another user, who decides on its mode.
      if (propertiesOf(error)['code'] !== 'EPERM') throw error;
    }
  }
}

/**
 * SQLITE-JOURNAL-DATABASE-4. Refuses a path if it is not a regular file or one of SQLite's files next to it is not.
 * @throws {ConfigurationError} `CANNOT_OPEN`
 */
export function checkRegular(path: string): void {
  // For a link, SQLite writes its files next to the target of the link.
  const file = existsSync(path) ? realpathSync(path) : path;
  for (const one of [file, ...['-wal', '-shm', '-journal'].map((end) => `${file}${end}`)]) {
    const state = lstatSync(one, { throwIfNoEntry: false });
    if (!state || state.isFile()) continue;
    const kind = state.isDirectory()
      ? 'a folder'
      : state.isSymbolicLink()
        ? 'a symbolic link'
        : 'a device, a pipe or a socket';
    throw new ConfigurationError(
      'CANNOT_OPEN',
      `${one} cannot be opened: expected a regular file, it is ${kind}`,
    );
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * SQLITE-JOURNAL-DATABASE-5. Compares sizes without a file descriptor, because closing the descriptor would release
 *     SQLite's locks.
 */
export function checkWhole(database: DatabaseSync, path: string): void {
  const expected = numberOf(database, 'page_count') * numberOf(database, 'page_size');
  const size = sizeOf(path);
  if (size < expected)
    throw journalCorrupt(path, `it has ${size} bytes, and ${expected} by its own count`);
}

function checkStructure(database: DatabaseSync, path: string): void {
  const found = String(database.prepare('pragma quick_check(1)').get()?.['quick_check']);
  if (found !== 'ok') throw journalCorrupt(path, found);
}

/** SQLITE-JOURNAL-DATABASE-2. Returns the version of the file's layout; 0 for an empty file. */
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

/** Returns whether SQLite needs to write a file next to the database but cannot. */
export function isNotWritable(error: unknown): boolean {
  return [READ_ONLY, CANNOT_OPEN].includes(resultCode(error));
}

/** Converts an SQLite error to an Offstage error whose class shows who has to act. Returns other errors unchanged. */
export function explained(error: unknown, path: string): unknown {
  if (error instanceof OffstageError) return error;
  const said = messageOf(error);
  const { code } = propertiesOf(error);
  const ofSystem = typeof code === 'string' ? explainedCode(code, path, error) : null;
  if (ofSystem) return ofSystem;
  switch (resultCode(error)) {
    case BUSY:
    case LOCKED:
      return new ConfigurationError(
        'JOURNAL_IN_USE',
        `${path} is in use, by another process or by another journal of this one (after a hot reload, for example): only one at a time can open a SQLite journal`,
        { cause: error },
      );
    case FULL:
      return new CapacityError('DISK_FULL', `${path}: the disk is full`, { cause: error });
    case PERMISSION:
    case AUTHORIZATION:
    case CANNOT_OPEN:
      return new ConfigurationError('CANNOT_OPEN', `${path} cannot be opened: ${said}`, {
        cause: error,
      });
    case CORRUPT:
      return journalCorrupt(path, said, error);
    case NOT_A_DATABASE:
      return new ConfigurationError(
        'NOT_A_JOURNAL',
        `Expected \`path\` to be a journal of Offstage, ${path} is no SQLite database`,
        { cause: error },
      );
    case ERROR:
      return new ConfigurationError(
        'NOT_A_JOURNAL',
        `Expected \`path\` to be a journal of Offstage, ${path} has other tables: ${said}`,
        { cause: error },
      );
    case OK:
      return error;
    default:
      return new JournalError('JOURNAL_IO', `${path}: ${said}`, { retryable: true, cause: error });
  }
}

/** Returns the error for a file system error or for an argument that Node.js refuses; null for any other code. */
function explainedCode(code: string, path: string, cause: unknown): OffstageError | null {
  const said = messageOf(cause);
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new CapacityError('DISK_FULL', `${path}: the disk is full`, { cause });
  if (['EIO', 'EMFILE', 'ENFILE', 'EAGAIN'].includes(code))
    return new JournalError('JOURNAL_IO', `${path}: ${said}`, { retryable: true, cause });
  if (/^E[A-Z]+$/.test(code))
    return new ConfigurationError('CANNOT_OPEN', `${path} cannot be opened: ${said}`, { cause });
  if (code.startsWith('ERR_INVALID_ARG') || code === 'ERR_OUT_OF_RANGE')
    return new ConfigurationError('INVALID_OPTION', `${path}: ${said}`, { cause });
  return null;
}

/** Returns the primary code, which is the lowest byte of an extended code. `OK`: not an SQLite error. */
function resultCode(error: unknown): number {
  const code = propertiesOf(error)['errcode'];
  return typeof code === 'number' ? code & 0xff : OK;
}

/**
 * Stored in `pragma user_version`. Version 1: without scopes. Version 2: without packed events and wake
 * times. Version 3: without events that are packed with the second dictionary. Version 4: without a desk.
 */
export const LAYOUT_VERSION = 5;
/** The oldest layout with the current tables, which can be read without an upgrade. */
export const OLDEST_READABLE_LAYOUT = 3;

// `at` is usually a whole number, which SQLite stores as an integer. One index serves all queries, because every index
// contains the row id. A second index would make each append 25 % more expensive.
const LAYOUT = `
  create table entries (
    id integer primary key,
    scope text not null,
    unit text not null,
    seq integer not null,
    at real not null,
    actor text not null,
    definition_version integer not null,
    event text not null,
    checksum integer not null,
    packed blob,
    unique (scope, unit, seq)
  ) strict;
`;

// The index covers all queries.
const WAKE_TIMES = `
  create table wake_times (scope text primary key, at real not null) strict, without rowid;
  create index wake_times_in_order on wake_times (at, scope);
`;

const DESK = `
  create table desk (
    scope text not null,
    id text not null,
    who text not null,
    kind text not null,
    since real not null,
    body text,
    primary key (scope, id, who)
  ) strict, without rowid;
  create index desk_in_order on desk (kind, who, since, scope, id);
`;

export const INSERT = `insert into entries
  (scope, unit, seq, at, actor, definition_version, event, checksum, packed) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Upgrades the file to the current layout, within a transaction. `version` 0: an empty file. */
function bringUpToDate(database: DatabaseSync, version: number, path: string): void {
  if (version === LAYOUT_VERSION) return;
  if (version === 2) database.exec('alter table entries add column packed blob');
  if (version < 2) {
    if (version === 1) database.exec('alter table entries rename to entries_1');
    database.exec(LAYOUT);
    if (version === 1) takeOverFrom1(database, path);
  }
  if (version < 3) database.exec(WAKE_TIMES);
  if (version < 5) database.exec(DESK);
  database.exec(`pragma user_version = ${LAYOUT_VERSION}`);
}

/** Version 1 has no scopes, so each unit becomes a scope. */
function takeOverFrom1(database: DatabaseSync, path: string): void {
  const insert = database.prepare(INSERT);
  const rows = database.prepare('select * from entries_1 order by id');
  for (const row of rows.iterate()) {
    const { unit, seq, at, actor, definition_version: version, event, checksum } = row;
    const values = [unit, seq, at, actor, version, event] as (string | number)[];
    if (checksumOf(values) !== checksum)
      throw journalCorrupt(path, `entry ${String(seq)} of ${String(unit)} is not what was written`);
    const [scope = ''] = values;
    insert.run(scope, ...values, checksumOf([scope, ...values]), null);
  }
  database.exec('drop table entries_1');
}
