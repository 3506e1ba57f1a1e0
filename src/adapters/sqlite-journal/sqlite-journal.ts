// A journal in a file, for one process. No accepted event is lost if the process dies.
//
// Owns:     the file while it is open.
// Does not: share the file with another process (use `offstage/postgres-journal`). A scope therefore needs no claim.
//
// Invariants
//   APPEND-BATCH-1. A write resolves only after its transaction has been committed.
//   APPEND-BATCH-2. An invalid entry has no effect on the rest of its transaction.
//   APPEND-BATCH-3. Appending the same entry again is not an error, because the first attempt may have been written
//                   although its response was lost.
//   SQLITE-JOURNAL-WAKE-TIMES-1. A wake time is as durable as an entry once `set` resolves. If several values are set
//                                in one turn, the latest one wins.
//   SQLITE-JOURNAL-WAKE-TIMES-2. A query sees all earlier `set` calls, even those made in the same turn.
//   READ-ONLY-1. No call changes the file or its log.
//   READ-ONLY-2. A read either completes or fails. If another process starts to write the file during the read, no
//       partial result is returned.

import { existsSync, statSync } from 'node:fs';
import { resolve as absolute } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import type { Environment, Scheduler } from '../../actors/ports/environment.ts';
import { JournalError, journalConflict, journalCorrupt } from '../../actors/ports/journal-error.ts';
import type {
  Journal,
  JournalEntry,
  JournalPosition,
  JournalQuery,
  ScopeSummary,
} from '../../actors/ports/journal.ts';
import type { Desk } from '../../actors/ports/desk.ts';
import type { WakeTime, WakeTimes } from '../../actors/ports/wake-times.ts';
import { check } from '../../values/checks.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { checkDeskRows, deskColumns, deskQuery, deskRowOf } from '../journal-rows/desk-rows.ts';
import {
  rowOf,
  type Row,
  BEFORE_ALL,
  checkWakeTime,
  entryOf,
} from '../journal-rows/stored-rows.ts';
import {
  explained,
  openDatabase,
  type Synchronous,
  isConstraint,
  INSERT,
  checkIdentity,
  checkRegular,
  checkWhole,
  isNotWritable,
  LAYOUT_VERSION,
  OLDEST_READABLE_LAYOUT,
} from './database.ts';

/** The options of `sqliteJournal`. */
export interface SqliteJournalOptions {
  /**
   * The file. A missing folder is created. A relative path starts at the working directory. `:memory:` writes no file.
   */
  readonly path: string;
  /** The clock; use `nodeEnvironment()` from `offstage/node`. */
  readonly environment: Environment;
  /**
   * `full`: an entry survives a power failure. `normal`: an entry survives the death of the process, but the latest
   * entries may be lost in a power failure. @defaultValue 'full'
   */
  readonly synchronous?: Synchronous;
  /**
   * Opens an existing file as read-only. No other process may have the file open for writing. The layout is not
   * upgraded. `append`, `trim`, `forget`, `claim` and `wakeTimes.set` reject or throw with `READ_ONLY`, so no session
   * can start on the file. @defaultValue false
   */
  readonly readOnly?: boolean;
}

const optionsSchema = z.strictObject({
  path: z.string().min(1),
  environment: z.looseObject({ scheduler: z.looseObject({}) }),
  synchronous: z.enum(['full', 'normal']).optional(),
  readOnly: z.boolean().optional(),
});

// The index alone contains everything that this query needs. For an unknown entry, nothing is deleted.
const TRIM = `
  delete from entries where id in (
    select id from entries where scope = ? and id <
      (select id from entries where scope = ? and unit = ? and seq = ?)
    order by id limit ?)`;
/** The number of entries that are deleted at a time, which takes a few milliseconds. */
const TRIMMED_AT_A_TIME = 100;

const FORGET = 'delete from entries where scope = ?';

/** The number of pages of 4 KB that are released together with them. */
const TRIMMED_PAGES = 100;
/** The number of pages that are released when a scope is forgotten. */
const FORGOTTEN_PAGES = 2048;

/**
 * Opens a journal in a file. Needs `node:sqlite` (Node 22.13 or newer). A file of an older version is upgraded. If the
 * file has no scopes, each unit becomes a scope.
 *
 * @throws {ConfigurationError} `INVALID_OPTION`; `JOURNAL_IN_USE` if another process is using the file;
 *   `JOURNAL_TOO_NEW` for a file of a newer version; with `readOnly`, `JOURNAL_TOO_OLD` for a file of an older version;
 *   `NOT_A_JOURNAL` for any other file; `CANNOT_OPEN`.
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
  const path = isKept ? absolute(options.path) : options.path;
  if (options.readOnly === true) return readOnlyJournal(path);
  const database = openDatabase(path, synchronous);
  const { batch, reader, trim, forget } = preparing(database, path, () => ({
    batch: new AppendBatch(database, path, options.environment.scheduler),
    reader: new JournalReader(database, path),
    trim: database.prepare(TRIM),
    forget: [FORGET, REMOVE, CLEAR].map((statement) => database.prepare(statement)),
  }));
  const checkOpen = (): void => checkIsOpen(database, path);
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
  /** A single transaction waits for the disk only once. */
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
    readAfter: (entry) => after(() => reader.after(entry)),
    scopes: () => after(() => reader.scopes()),
    async trim({ scope, unit, seq }) {
      const values = [scope, scope, unit, seq, TRIMMED_AT_A_TIME];
      const some = (): number =>
        Number(after(() => deleting(TRIMMED_PAGES, () => trim.run(...values).changes)));
      while (some() === TRIMMED_AT_A_TIME) {
        await new Promise<void>((resume) => {
          options.environment.scheduler.yieldThen(resume);
        });
        // The next process that opens the file deletes the remaining entries.
        if (!database.isOpen) return;
      }
    },
    forget: (scope) =>
      after(() => {
        deleting(FORGOTTEN_PAGES, () => {
          for (const statement of forget) statement.run(scope);
        });
        // SQLITE-JOURNAL-DATABASE-6
        database.exec('pragma wal_checkpoint(truncate)');
      }),
    wakeTimes: preparing(database, path, () => wakeTimesIn(database, batch, checkOpen, after)),
    desk: preparing(database, path, () => deskIn(database, batch, checkOpen, after)),
    close() {
      if (!database.isOpen) return;
      batch.flush();
      database.close();
    },
  };
}

/** @throws {JournalError} `JOURNAL_CLOSED` */
function checkIsOpen(database: DatabaseSync, path: string): void {
  if (!database.isOpen)
    throw new JournalError('JOURNAL_CLOSED', `The journal ${path} was closed`, {
      retryable: false,
    });
}

/** Tables of another program may have the journal's file id. The file is closed again in this case. */
function preparing<T>(database: DatabaseSync, path: string, prepare: () => T): T {
  try {
    return prepare();
  } catch (error) {
    database.close();
    throw explained(error, path);
  }
}

/**
 * Called within the transaction. Returns the error of this write, or null. Throws an error that concerns the whole
 * transaction.
 */
type Write = () => unknown;

interface Waiting {
  readonly write: Write;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const FIND = 'select checksum from entries where scope = ? and unit = ? and seq = ?';

/**
 * Combines the writes of one turn of the event loop into one transaction. A commit waits for the disk, and all writes
 * of the turn share this wait.
 */
class AppendBatch {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #scheduler: Scheduler;
  readonly #insert: StatementSync;
  readonly #find: StatementSync;
  #waiting: Waiting[] = [];

  constructor(database: DatabaseSync, path: string, scheduler: Scheduler) {
    this.#database = database;
    this.#path = path;
    this.#scheduler = scheduler;
    this.#insert = database.prepare(INSERT);
    this.#find = database.prepare(FIND);
  }

  append(row: Row): Promise<void> {
    return this.add(() => this.#insertOnce(row));
  }

  add(write: Write): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, resolve, reject });
      if (this.#waiting.length === 1) this.#scheduler.schedule(() => this.flush(), 0);
    });
  }

  /** Writes the pending entries now. */
  flush(): void {
    const batch = this.#waiting;
    if (batch.length === 0) return;
    this.#waiting = [];
    const outcomes: { readonly waiting: Waiting; readonly error: unknown }[] = [];
    try {
      this.#database.exec('begin immediate');
      for (const waiting of batch) outcomes.push({ waiting, error: waiting.write() });
      this.#database.exec('commit');
    } catch (error) {
      // The transaction has not written any entry, so callers retry.
      if (this.#database.isTransaction) this.#database.exec('rollback');
      const reason = explained(error, this.#path);
      for (const { reject } of batch) reject(reason);
      return;
    }
    for (const { waiting, error } of outcomes)
      if (error === null) waiting.resolve();
      else waiting.reject(error);
  }

  /** APPEND-BATCH-2, APPEND-BATCH-3 */
  #insertOnce(row: Row): unknown {
    try {
      this.#insert.run(...row);
      return null;
    } catch (error) {
      const [scope, unit, seq, , , , , checksum] = row;
      if (!isConstraint(error)) throw error;
      if (this.#find.get(scope, unit, seq)?.['checksum'] === checksum) return null;
      return journalConflict(this.#path, { scope, unit, seq });
    }
  }
}

const SET = `insert into wake_times (scope, at) values (?, ?)
  on conflict (scope) do update set at = excluded.at`;

const REMOVE = 'delete from wake_times where scope = ?';

// Reads one index range.
export const EARLIEST = `select scope, at from wake_times where (at, scope) > (?, ?) order by at, scope limit ?`;

/** Reads one row of `EARLIEST`. */
function wakeTimeOf({ scope, at }: Readonly<Record<string, unknown>>): WakeTime {
  return { scope: String(scope), at: Number(at) };
}

/** The times share a transaction with the appends of the same turn. `after`: runs work after all earlier writes. */
function wakeTimesIn(
  database: DatabaseSync,
  batch: AppendBatch,
  checkOpen: () => void,
  after: <T>(work: () => T) => T,
): WakeTimes {
  const set = database.prepare(SET);
  const remove = database.prepare(REMOVE);
  const earliest = database.prepare(EARLIEST);
  return {
    async set(scope, at) {
      checkOpen();
      checkWakeTime(scope, at);
      await batch.add(() => {
        if (at === null) remove.run(scope);
        else set.run(scope, at);
        return null;
      });
    },
    earliest: ({ after: last = BEFORE_ALL, limit }) =>
      after(() => earliest.all(last.at, last.scope, limit).map(wakeTimeOf)),
  };
}

const CLEAR = 'delete from desk where scope = ?';

/** The rows share a transaction with the appends of the same turn. `after`: runs work after all earlier writes. */
function deskIn(
  database: DatabaseSync,
  batch: AppendBatch,
  checkOpen: () => void,
  after: <T>(work: () => T) => T,
): Desk {
  const clear = database.prepare(CLEAR);
  const insert = database.prepare(
    'insert or replace into desk (scope, id, who, kind, since, body) values (?, ?, ?, ?, ?, ?)',
  );
  return {
    async set(scope, rows) {
      checkOpen();
      checkDeskRows(scope, rows);
      await batch.add(() => {
        clear.run(scope);
        for (const columns of deskColumns(rows)) insert.run(scope, ...columns);
        return null;
      });
    },
    find: (query) =>
      after(() => {
        const { text, values } = deskQuery(query, 'desk', (number) => `?${number}`);
        return database
          .prepare(text)
          .all(...values)
          .map(deskRowOf);
      }),
  };
}

// The inner query reads only the index.
const SCOPES = `
  select s.scope, s.entries, f.at as firstAt, l.at as lastAt
  from (select scope, count(*) as entries, min(id) as first, max(id) as last from entries group by scope) s
  join entries f on f.id = s.first join entries l on l.id = s.last
  order by s.first`;

class JournalReader {
  readonly #database: DatabaseSync;
  readonly #path: string;
  /** Prepared statements by text, because preparing one takes longer than finding a session's entries. */
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, path: string) {
    this.#database = database;
    this.#path = path;
  }

  scopes(): readonly ScopeSummary[] {
    return this.#statement(SCOPES)
      .all()
      .map(({ scope, entries, firstAt, lastAt }) => ({
        scope: String(scope),
        entries: Number(entries),
        firstAt: Number(firstAt),
        lastAt: Number(lastAt),
      }));
  }

  /** @throws {JournalError} `JOURNAL_CORRUPT` */
  entries(query: JournalQuery = {}): readonly JournalEntry[] {
    const { where, values } = filter(query);
    // The index finds the ids, which are sorted. The table is then read sequentially.
    const rows = this.#statement(
      `select * from entries where id in (select id from entries ${where}) order by id`,
    );
    const entries = rows.all(...values).map((row) => entryOf(row, this.#path));
    // A damaged index can end a search too early, so the search for the last entry is repeated from the end.
    const end = this.#statement(
      `select (select count(*) from entries ${where}) as count, scope, unit, seq from entries ${where}
        order by scope desc, unit desc, seq desc limit 1`,
    ).get(...values, ...values);
    const hasEnd = entries.some(
      ({ scope, unit, seq }) =>
        scope === end?.['scope'] && unit === end['unit'] && seq === end['seq'],
    );
    if (end ? end['count'] !== entries.length || !hasEnd : entries.length > 0)
      throw journalCorrupt(this.#path, 'its index and its entries differ');
    return withoutGap(entries, this.#path);
  }

  /** @throws {JournalError} `JOURNAL_CORRUPT` */
  after({ scope, unit, seq }: JournalPosition): readonly JournalEntry[] | null {
    const rows = this.#statement(AFTER).all(scope, scope, unit, seq);
    if (rows.length === 0) return null;
    return withoutGap(
      rows.map((row) => entryOf(row, this.#path)),
      this.#path,
    ).slice(1);
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/**
 * Returns the entries. A unit's entries are numbered without gaps, even after `trim`, so a gap indicates a damaged
 * index.
 * @throws {JournalError} `JOURNAL_CORRUPT`
 */
function withoutGap(entries: readonly JournalEntry[], path: string): readonly JournalEntry[] {
  const last = new Map<string, number>();
  for (const { scope, unit, seq } of entries) {
    const name = JSON.stringify([scope, unit]);
    const before = last.get(name);
    if (before !== undefined && seq !== before + 1)
      throw journalCorrupt(path, `entry ${before + 1} of ${unit} in ${scope} is missing`);
    last.set(name, seq);
  }
  return entries;
}

/** The first row is the entry itself, so that a missing entry yields no rows. */
const AFTER = `
  select * from entries where scope = ? and id >=
    (select id from entries where scope = ? and unit = ? and seq = ?)
  order by id`;

function filter({ scope, unit }: JournalQuery): { where: string; values: readonly string[] } {
  const conditions = Object.entries({ scope, unit }).filter(
    (condition): condition is [string, string] => condition[1] !== undefined,
  );
  if (conditions.length === 0) return { where: '', values: [] };
  const where = conditions.map(([column]) => `${column} = ?`).join(' and ');
  return { where: `where ${where}`, values: conditions.map(([, value]) => value) };
}

/** The journal in an SQLite file, as returned by `sqliteJournal`. */
export interface SqliteJournal extends Journal {
  append(entry: JournalEntry): Promise<void>;
  read(query?: JournalQuery): readonly JournalEntry[];
  readAfter(entry: JournalPosition): readonly JournalEntry[] | null;
  scopes(): readonly ScopeSummary[];
  /**
   * Deletes entries and shrinks the file. The oldest entries are deleted first, a few at a time, so that audio playback
   * is not delayed. If this is interrupted, the next call deletes the rest.
   */
  trim(entry: JournalPosition): Promise<void>;
  /** Deletes a scope and shrinks the file by up to 8 MB. Any further free pages stay in the file and are reused. */
  forget(scope: string): void;
  /** Times that are set in one turn of the event loop share a commit with each other and with that turn's appends. */
  readonly wakeTimes: WakeTimes;
  /**
   * Writes the pending entries and closes the file. Later calls throw or reject with `JOURNAL_CLOSED`. Safe to call twice.
   */
  close(): void;
}

/**
 * Opens a read-only journal in a file.
 *
 * SQLite reads a file with a log (`…-wal`) only if it may write the index of the log next to the file (`…-shm`). A file
 * that was closed properly has no log. It is opened as `immutable`, without a lock or other files, even in a folder
 * that is not writable. Source: sqlite.org/wal.html#readonly.
 *
 * @throws {ConfigurationError} `JOURNAL_TOO_OLD` for a layout that needs an upgrade; `JOURNAL_IN_USE`, `JOURNAL_TOO_NEW`,
 *   `NOT_A_JOURNAL` or `CANNOT_OPEN`.
 * @throws {JournalError} `JOURNAL_CORRUPT`, `JOURNAL_IO`.
 */
function readOnlyJournal(path: string): SqliteJournal {
  const { database, checkUnchanged } = open(path);
  const reader = new JournalReader(database, path);
  const readOnly = (what: string): JournalError =>
    new JournalError(
      'READ_ONLY',
      `${path} was opened read-only: \`${what}\` needs a journal that was opened without \`readOnly\``,
      { retryable: false },
    );
  const reading = <T>(read: () => T): T => {
    checkIsOpen(database, path);
    let found: T;
    try {
      found = read();
    } catch (error) {
      // If the file changes during the read, it looks damaged.
      checkUnchanged();
      throw explained(error, path);
    }
    checkUnchanged();
    return found;
  };
  return {
    append: () => Promise.reject(readOnly('append')),
    read: (query) => reading(() => reader.entries(query)),
    readAfter: (entry) => reading(() => reader.after(entry)),
    // Refuses to let a session start.
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
    checkRegular(path);
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
        // SQLite locks a file that is not immutable while the file is open.
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
  if (version < OLDEST_READABLE_LAYOUT)
    throw new ConfigurationError(
      'JOURNAL_TOO_OLD',
      `${path} was written by an older version of Offstage (layout ${version}; this one reads ${OLDEST_READABLE_LAYOUT} to ${LAYOUT_VERSION}), and cannot be brought up to date read-only: open it, or a copy of it, once without \`readOnly\`, as an app does that starts on it`,
    );
}

/**
 * Returns null on Node.js before 22.15, which does not accept a URL. In this case, SQLite leaves an empty log and index
 * behind.
 */
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
