// A journal in a file, for one process: no accepted event is lost when the process dies.
//
// Owns:     the file, while it is open.
// Does not: share it with another process (see `offstage/postgres-journal`), so a scope needs no claim.

import { check } from '../../values/checks.ts';
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import { JournalError } from '../../actors/ports/journal-error.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { rowOf } from '../journal-rows/stored-entry.ts';
import { AppendBatch } from './append-batch.ts';
import { explained, openDatabase, type Synchronous } from './database.ts';
import { JournalReader, type SqliteJournal } from './reading.ts';
import { readOnlyJournal } from './read-only.ts';
import { REMOVE, wakeTimesIn } from './wake-times.ts';

export interface SqliteJournalOptions {
  /**
   * The file; its folder is created if it does not exist. Relative to the working directory. `:memory:` keeps
   * nothing.
   */
  readonly path: string;
  /** Time; `nodeEnvironment()` of `offstage/node`. */
  readonly environment: Environment;
  /**
   * `full`: an entry survives a loss of power. `normal`: it survives the death of the process, but a loss of
   * power may lose the latest ones. @defaultValue 'full'
   */
  readonly synchronous?: Synchronous;
  /**
   * Opens an existing file read-only: in its present layout, and closed by its writer. Its layout is not
   * upgraded either; `append`, `trim`, `forget`, `claim` and `wakeTimes.set` reject or throw with
   * `READ_ONLY`, so that no session starts on it. @defaultValue false
   */
  readonly readOnly?: boolean;
}

const optionsSchema = z.strictObject({
  path: z.string().min(1),
  environment: z.looseObject({ scheduler: z.looseObject({}) }),
  synchronous: z.enum(['full', 'normal']).optional(),
  readOnly: z.boolean().optional(),
});

// The index alone finds the entries. An unknown entry precedes none.
const TRIM = `
  delete from entries where id in (
    select id from entries where scope = ? and id <
      (select id from entries where scope = ? and unit = ? and seq = ?)
    order by id limit ?)`;
/** The number of entries deleted at a time: a few milliseconds. */
const TRIMMED_AT_A_TIME = 100;

const FORGET = 'delete from entries where scope = ?';

/** The number of 4 KB pages released with them. */
const TRIMMED_PAGES = 100;
/** The number of pages released when a scope is forgotten. */
const FORGOTTEN_PAGES = 2048;

/**
 * Opens a journal in a file. Needs `node:sqlite` (Node 22.13 or newer). A file of an older version is
 * upgraded; each of its units is then a scope of its own.
 *
 * @throws {ConfigurationError} `INVALID_OPTION`; `JOURNAL_IN_USE` by another process; `JOURNAL_TOO_NEW` for
 *   one of a newer version, and with `readOnly` `JOURNAL_TOO_OLD` for an older one; `NOT_A_JOURNAL` for
 *   another file; `CANNOT_OPEN`.
 * @throws {JournalError} `JOURNAL_CORRUPT`, `JOURNAL_IO`. @throws {CapacityError} `DISK_FULL`.
 */
export function sqliteJournal(options: SqliteJournalOptions): SqliteJournal {
  check('sqliteJournal', optionsSchema, options);
  const { synchronous = 'full' } = options;
  const isKept = options.path !== ':memory:';
  if (options.readOnly === true && !isKept)
    throw new ConfigurationError(
      'INVALID_OPTION',
      'sqliteJournal: expected `path` to be a file with `readOnly`, got `:memory:`',
    );
  const path = isKept ? resolve(options.path) : options.path;
  if (options.readOnly === true) return readOnlyJournal(path);
  const database = openDatabase(path, synchronous);
  const { batch, reader, trim, forget } = preparing(database, path, () => ({
    batch: new AppendBatch(database, path, options.environment.scheduler),
    reader: new JournalReader(database, path),
    trim: database.prepare(TRIM),
    forget: [FORGET, REMOVE].map((statement) => database.prepare(statement)),
  }));
  const checkOpen = (): void => {
    if (!database.isOpen)
      throw new JournalError('JOURNAL_CLOSED', `The journal ${path} was closed`, {
        retryable: false,
      });
  };
  /** Runs `work` after all earlier appends. */
  const after = <T>(work: () => T): T => {
    checkOpen();
    batch.flush();
    try {
      return work();
    } catch (error) {
      throw explained(error, path);
    }
  };
  /** One transaction, so that there is one wait for the disk. */
  const deleting = <T>(pages: number, work: () => T): T => {
    database.exec('begin immediate');
    try {
      const done = work();
      database.exec(`pragma incremental_vacuum(${pages})`);
      database.exec('commit');
      return done;
    } catch (error) {
      if (database.isTransaction) database.exec('rollback');
      throw error;
    }
  };
  return {
    async append(entry) {
      checkOpen();
      await batch.append(rowOf(entry));
    },
    read: (query) => after(() => reader.entries(query)),
    scopes: () => after(() => reader.scopes()),
    async trim({ scope, unit, seq }) {
      const values = [scope, scope, unit, seq, TRIMMED_AT_A_TIME];
      const some = (): number =>
        Number(after(() => deleting(TRIMMED_PAGES, () => trim.run(...values).changes)));
      while (some() === TRIMMED_AT_A_TIME) {
        await new Promise<void>((goOn) => {
          options.environment.scheduler.yieldThen(goOn);
        });
        // The next process that opens the file does the rest.
        if (!database.isOpen) return;
      }
    },
    forget: (scope) =>
      after(() =>
        deleting(FORGOTTEN_PAGES, () => {
          for (const statement of forget) statement.run(scope);
        }),
      ),
    wakeTimes: preparing(database, path, () => wakeTimesIn({ database, batch, checkOpen, after })),
    close() {
      if (!database.isOpen) return;
      batch.flush();
      database.close();
    },
  };
}

/** The tables may be foreign despite the file's id: then the file is closed again. */
function preparing<T>(database: DatabaseSync, path: string, prepare: () => T): T {
  try {
    return prepare();
  } catch (error) {
    database.close();
    throw explained(error, path);
  }
}
