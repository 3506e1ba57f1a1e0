// A journal in PostgreSQL, for several processes: one of them at a time writes each scope, and another one
// takes over after that has died.
//
// Owns:     its connections, and one schema of the database.
// Does not: decide when to take over: the claiming process does.

import { checkUnshown } from '../../values/checks.ts';
import type { PoolConfig } from 'pg';
import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import { JournalError } from '../../actors/ports/journal-error.ts';
import type {
  Journal,
  JournalEntry,
  JournalPosition,
  JournalQuery,
  ScopeSummary,
} from '../../actors/ports/journal.ts';
import type { WakeTimes } from '../../actors/ports/wake-times.ts';
import { rowOf } from '../journal-rows/stored-entry.ts';
import { AppendQueue } from './append-queue.ts';
import { forgetAll, trimTo } from './deletions.ts';
import { explained, openPool, prepareTables, type Database } from './database.ts';
import { Leases } from './leases.ts';
import { readEntries } from './reading.ts';
import { WakeTimeQueue } from './wake-times.ts';

export interface PostgresJournalOptions {
  /**
   * The database: `postgres://…`, or the options of `Pool` of the package `pg`.
   * @defaultValue the variables `PGHOST`, `PGDATABASE` …
   */
  readonly connection?: string | PoolConfig;
  /** Time and chance; `nodeEnvironment()` of `offstage/node`. */
  readonly environment: Environment;
  /**
   * The schema of the tables, for the journal alone; created if it does not exist. @defaultValue 'offstage'
   */
  readonly schema?: string;
  /**
   * Time without a sign of life after which another process can replace this one, which gives one three times
   * as often. In milliseconds, at least 100. @defaultValue 15_000
   */
  readonly leaseMs?: number;
  /**
   * The time limit of the server's answer, after which it counts as unreachable. In milliseconds.
   * @defaultValue 10_000
   */
  readonly timeoutMs?: number;
}

export interface PostgresJournal extends Journal {
  append(entry: JournalEntry): Promise<void>;
  read(query?: JournalQuery): Promise<readonly JournalEntry[]>;
  /**
   * @throws {CapacityError} `SCOPE_IN_USE`.
   * @throws {ConfigurationError} `JOURNAL_TOO_NEW` once a newer version of Offstage has upgraded the tables.
   */
  claim(scope: string): Promise<void>;
  /** @throws {JournalError} `FENCED` unless this process writes the scope: then no entry is deleted. */
  trim(entry: JournalPosition): Promise<void>;
  release(scope: string): Promise<void>;
  scopes(): Promise<readonly ScopeSummary[]>;
  /** @throws {CapacityError} `SCOPE_IN_USE` while another process writes it. */
  forget(scope: string): Promise<void>;
  /** The wake times of all processes: any process may set them, whichever writes the scope. */
  readonly wakeTimes: WakeTimes;
  /**
   * Writes the waiting entries, releases all scopes and closes the connections. Later calls reject with
   * `JOURNAL_CLOSED`. Safe to call twice.
   */
  close(): Promise<void>;
}

const optionsSchema = z.strictObject({
  connection: z.union([z.string().min(1), z.looseObject({})]).optional(),
  environment: z.looseObject({ scheduler: z.looseObject({}), ids: z.looseObject({}) }),
  schema: z
    .string()
    .regex(/^[a-z_][a-z0-9_]{0,62}$/, 'expected a name of small letters, digits and _')
    .optional(),
  leaseMs: z.number().min(100).optional(),
  timeoutMs: z.number().positive().optional(),
});

/** Appends, heartbeats, and two readers. */
const MOST_CONNECTIONS = 4;

/**
 * Opens a journal in a PostgreSQL database (12 or newer), and creates its tables the first time. A scope must
 * be claimed before it is written. Needs the package `pg`.
 *
 * @throws {ConfigurationError} `INVALID_OPTION`; `MISSING_DEPENDENCY`; `CANNOT_OPEN` if the server refuses;
 *   `JOURNAL_TOO_NEW` for tables of a newer version; `NOT_A_JOURNAL` if the schema has other tables.
 * @throws {JournalError} `JOURNAL_UNREACHABLE`, `JOURNAL_IO`.
 */
export async function postgresJournal(options: PostgresJournalOptions): Promise<PostgresJournal> {
  checkUnshown('postgresJournal', optionsSchema, options);
  const { connection = {}, environment, schema = 'offstage' } = options;
  const { leaseMs = 15_000, timeoutMs = 10_000 } = options;
  const database: Database = {
    pool: openPool({
      max: MOST_CONNECTIONS,
      keepAlive: true,
      allowExitOnIdle: true,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      ...(typeof connection === 'string' ? { connectionString: connection } : connection),
    }),
    schemaName: schema,
    schema: `"${schema}"`,
    name: `The journal in the schema ${schema}`,
  };
  const { pool, name } = database;
  try {
    await prepareTables(database);
  } catch (error) {
    await pool.end();
    throw error;
  }
  const leases = new Leases(database, environment, leaseMs);
  const queue = new AppendQueue(database, leases, environment.scheduler);
  const times = new WakeTimeQueue(database, environment.scheduler);
  let closing: Promise<void> | null = null;

  const checkOpen = (): void => {
    if (closing)
      throw new JournalError('JOURNAL_CLOSED', `${name} was closed`, { retryable: false });
  };
  const query = async <Found extends object>(text: string, values: unknown[] = []) => {
    try {
      return (await pool.query<Found>(text, values)).rows;
    } catch (error) {
      throw explained(error, name);
    }
  };

  return {
    async append(entry) {
      checkOpen();
      await queue.append(rowOf(entry));
    },
    async read(asked = {}) {
      checkOpen();
      return readEntries(database, asked);
    },
    async claim(scope) {
      checkOpen();
      await leases.claim(scope);
    },
    async trim(entry) {
      checkOpen();
      await queue.decided();
      checkOpen();
      await trimTo(database, leases, entry);
    },
    async release(scope) {
      checkOpen();
      await leases.release(scope, queue.decided());
    },
    async scopes() {
      checkOpen();
      const rows = await query<{
        scope: string;
        entries: string;
        first_at: number;
        last_at: number;
      }>(
        `select s.scope, s.entries, f.at as first_at, l.at as last_at
         from (select scope, count(*) as entries, min(id) as first, max(id) as last
               from ${database.schema}.entries group by scope) s
         join ${database.schema}.entries f on f.scope = s.scope and f.id = s.first
         join ${database.schema}.entries l on l.scope = s.scope and l.id = s.last
         order by s.first`,
      );
      return rows.map(({ scope, entries, first_at: firstAt, last_at: lastAt }) => ({
        scope,
        entries: Number(entries),
        firstAt,
        lastAt,
      }));
    },
    async forget(scope) {
      checkOpen();
      await queue.decided();
      checkOpen();
      const isOurs = leases.tokenOf(scope) !== undefined;
      await leases.claim(scope);
      try {
        // First, so that no process wakes a session that is partly deleted.
        await times.set(scope, null);
        await forgetAll(database, scope);
      } finally {
        if (!isOurs) await leases.release(scope);
      }
    },
    wakeTimes: {
      async set(scope, at) {
        checkOpen();
        await times.set(scope, at);
      },
      async earliest(asked) {
        checkOpen();
        return times.earliest(asked);
      },
    },
    close() {
      closing ??= Promise.all([queue.decided(), times.decided()])
        .then(() => leases.close())
        .then(() => pool.end());
      return closing;
    },
  };
}
