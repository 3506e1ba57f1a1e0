// A journal in a file, for one process: nothing that was accepted is lost when the
// process dies.
//
// Owns:     the file, while it is open.
// Does not: share it with another process (there is PostgreSQL for that).

import { resolve } from 'node:path';
import type { SQLOutputValue } from 'node:sqlite';
import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import type { Journal, JournalEntry } from '../../actors/ports/journal.ts';
import { ConfigurationError } from '../../errors.ts';
import { AppendBatch } from './append-batch.ts';
import { explained, openDatabase, type Synchronous } from './database.ts';
import { entryOf, rowOf } from './stored-entry.ts';

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
}

export interface SqliteJournal extends Journal {
  append(entry: JournalEntry): Promise<void>;
  read(unit?: string): readonly JournalEntry[];
  /** Writes what waits and closes the file. Later appends reject with `JOURNAL_CLOSED`. Safe to call twice. */
  close(): void;
}

const optionsSchema = z.object({
  path: z.string().min(1),
  environment: z.looseObject({ scheduler: z.looseObject({}) }),
  synchronous: z.enum(['full', 'normal']).optional(),
});

/**
 * Opens a journal in a file. Needs `node:sqlite` (Node 22.13 or newer).
 *
 * @throws {ConfigurationError} `INVALID_OPTION`; `JOURNAL_IN_USE` by another process;
 * `JOURNAL_TOO_NEW` for one of a newer version; `NOT_A_JOURNAL` for another file; `CANNOT_OPEN`.
 * @throws {OffstageError} `JOURNAL_CORRUPT`.
 */
export function sqliteJournal(options: SqliteJournalOptions): SqliteJournal {
  const checked = optionsSchema.safeParse(options);
  if (!checked.success)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `sqliteJournal: ${z.prettifyError(checked.error)}`,
    );
  const { synchronous = 'full' } = options;
  const path = options.path === ':memory:' ? options.path : resolve(options.path);
  const database = openDatabase(path, synchronous);
  const batch = new AppendBatch(database, path, options.environment.scheduler);
  const all = database.prepare('select * from entries order by id');
  const ofUnit = database.prepare('select * from entries where unit = ? order by seq');
  const checkOpen = (): void => {
    if (!database.isOpen)
      throw new ConfigurationError('JOURNAL_CLOSED', `The journal ${path} was closed`);
  };
  return {
    async append(entry) {
      checkOpen();
      await batch.append(rowOf(entry));
    },
    read(unit) {
      checkOpen();
      // What was appended before this call is part of it.
      batch.flush();
      let rows: Record<string, SQLOutputValue>[];
      try {
        rows = unit === undefined ? all.all() : ofUnit.all(unit);
      } catch (error) {
        throw explained(error, path);
      }
      return rows.map((row) => entryOf(row, path));
    },
    close() {
      if (!database.isOpen) return;
      batch.flush();
      database.close();
    },
  };
}
