// A read-only journal in a file.
//
// SQLite reads a file with a log (`…-wal`) only where it may write an index of the log beside it (`…-shm`). A
// file that was closed has no log: it is read as `immutable`, without a lock and without any file beside it,
// even in a folder that is not writable. Source: sqlite.org/wal.html#readonly.
//
// Invariants
//   READ-ONLY-1. No call changes the file or its log.
//   READ-ONLY-2. A read is complete or fails: if a process began to write the file meanwhile, no partial
//       result is returned.

import { existsSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { JournalError } from '../../actors/ports/journal-error.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { BEFORE_ALL } from '../journal-rows/stored-wake-time.ts';
import { checkIdentity, checkWhole, explained, isNotWritable } from './database.ts';
import { LAYOUT_VERSION } from './layout.ts';
import { JournalReader, type SqliteJournal } from './reading.ts';
import { EARLIEST, wakeTimeOf } from './wake-times.ts';

/**
 * @throws {ConfigurationError} `JOURNAL_TOO_OLD` for a layout that needs an upgrade; `JOURNAL_IN_USE`,
 *   `JOURNAL_TOO_NEW`, `NOT_A_JOURNAL` or `CANNOT_OPEN`.
 * @throws {JournalError} `JOURNAL_CORRUPT`, `JOURNAL_IO`.
 */
export function readOnlyJournal(path: string): SqliteJournal {
  const { database, checkUnchanged } = open(path);
  const reader = new JournalReader(database, path);
  const readOnly = (what: string): JournalError =>
    new JournalError(
      'READ_ONLY',
      `${path} was opened read-only: \`${what}\` needs a journal that was opened without \`readOnly\``,
      { retryable: false },
    );
  const reading = <T>(read: () => T): T => {
    if (!database.isOpen)
      throw new JournalError('JOURNAL_CLOSED', `The journal ${path} was closed`, {
        retryable: false,
      });
    let found: T;
    try {
      found = read();
    } catch (error) {
      // A partial change looks like damage.
      checkUnchanged();
      throw explained(error, path);
    }
    checkUnchanged();
    return found;
  };
  return {
    append: () => Promise.reject(readOnly('append')),
    read: (query) => reading(() => reader.entries(query)),
    // Refuses a session before it begins.
    claim() {
      throw readOnly('claim');
    },
    trim: () => Promise.reject(readOnly('trim')),
    scopes: () => reading(() => reader.scopes()),
    forget() {
      throw readOnly('forget');
    },
    wakeTimes: {
      set: () => Promise.reject(readOnly('wakeTimes.set')),
      earliest: ({ after = BEFORE_ALL, limit }) =>
        reading(() => database.prepare(EARLIEST).all(after.at, after.scope, limit).map(wakeTimeOf)),
    },
    close() {
      if (database.isOpen) database.close();
    },
  };
}

interface Opened {
  readonly database: DatabaseSync;
  /** READ-ONLY-2 @throws {ConfigurationError} `JOURNAL_IN_USE` */
  checkUnchanged(): void;
}

function open(path: string): Opened {
  const log = `${path}-wal`;
  const hasLog = existsSync(log);
  let before: string;
  try {
    before = stateOf(path);
  } catch (error) {
    throw explained(error, path);
  }
  let database: DatabaseSync | undefined;
  try {
    const immutable = hasLog ? null : openImmutable(path);
    database = immutable ?? new DatabaseSync(path, { readOnly: true });
    checkLayout(path, checkIdentity(database, path));
    if (!hasLog) checkWhole(database, path);
    return {
      database,
      checkUnchanged() {
        // Otherwise SQLite locks the file while it is open.
        if (!immutable || (!existsSync(log) && stateOf(path) === before)) return;
        throw new ConfigurationError(
          'JOURNAL_IN_USE',
          `${path} has been written since it was opened read-only: open it again when the process that writes it has closed it`,
        );
      },
    };
  } catch (error) {
    database?.close();
    if (hasLog && isNotWritable(error))
      throw new ConfigurationError(
        'CANNOT_OPEN',
        `${path} was not closed, and its log (${log}) can only be read where SQLite may write beside it: copy both into a folder that can be written, and open the copy`,
        { cause: error },
      );
    throw explained(error, path);
  }
}

function checkLayout(path: string, version: number): void {
  if (version === 0)
    throw new ConfigurationError(
      'NOT_A_JOURNAL',
      `Expected \`path\` to be a journal of Offstage, ${path} is an empty database`,
    );
  if (version < LAYOUT_VERSION)
    throw new ConfigurationError(
      'JOURNAL_TOO_OLD',
      `${path} was written by an older version of Offstage (layout ${version}; this one reads ${LAYOUT_VERSION}), and cannot be brought up to date read-only: open it, or a copy of it, once without \`readOnly\`, as an app does that starts on it`,
    );
}

/** Null: Node before 22.15 accepts no URL. There SQLite leaves an empty log and its index. */
function openImmutable(path: string): DatabaseSync | null {
  const url = pathToFileURL(path);
  url.searchParams.set('immutable', '1');
  try {
    return new DatabaseSync(url, { readOnly: true });
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

function stateOf(path: string): string {
  const state = statSync(path, { bigint: true, throwIfNoEntry: false });
  return state ? `${state.ino} ${state.size} ${state.mtimeNs}` : 'no file';
}
