// A journal in a file, for one process: nothing that was accepted is lost when the
// process dies.
//
// Owns:     the file, while it is open.
// Does not: share it with another process (there is `offstage/postgres-journal` for that), so
//           a scope needs no claim.

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
  /** The file; its folder is made if there is none. Relative to the working directory. `:memory:` keeps nothing. */
  readonly path: string;
  /** Time; `nodeEnvironment()` of `offstage/node`. */
  readonly environment: Environment;
  /**
   * `full`: an entry survives a loss of power. `normal`: it survives the death of the process, but
   * a loss of power may take the last ones. @defaultValue 'full'
   */
  readonly synchronous?: Synchronous;
  /**
   * It is only looked at: a file that is there, in its present layout, and closed by whoever wrote it. Nothing is
   * written to it, also not its layout; `append`, `trim`, `forget`, `claim` and `wakeTimes.set` reject or throw with
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

// The index alone says which. An entry that is not there is before none.
const TRIM = `
  delete from entries where id in (
    select id from entries where scope = ? and id <
      (select id from entries where scope = ? and unit = ? and seq = ?)
    order by id limit ?)`;
/** Entries that are deleted at a time: a few milliseconds. */
const TRIMMED_AT_A_TIME = 100;

const FORGET = 'delete from entries where scope = ?';

/** Pages of 4 KB that are given back with them. */
const TRIMMED_PAGES = 100;
/** Pages that are given back when a scope is forgotten. */
const FORGOTTEN_PAGES = 2048;

/**
 * Opens a journal in a file. Needs `node:sqlite` (Node 22.13 or newer). A file of an older version is
 * brought up to date; there each unit is a scope of its own.
 *
 * @throws {ConfigurationError} `INVALID_OPTION`; `JOURNAL_IN_USE` by another process;
 * `JOURNAL_TOO_NEW` for one of a newer version, and with `readOnly` `JOURNAL_TOO_OLD` for an older one; `NOT_A_JOURNAL` for another file; `CANNOT_OPEN`.
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
  /** What was appended before is part of what `work` sees. */
  const after = <T>(work: () => T): T => {
    checkOpen();
    batch.flush();
    try {
      return work();
    } catch (error) {
      throw explained(error, path);
    }
  };
  /** One transaction, so that the disk is waited for once. */
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
        // The next one who opens it does the rest.
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

/** The tables may not be ours, though the file says so: then nothing of it stays open. */
function preparing<T>(database: DatabaseSync, path: string, prepare: () => T): T {
  try {
    return prepare();
  } catch (error) {
    database.close();
    throw explained(error, path);
  }
}
