// A journal in PostgreSQL for several processes. One process at a time writes a scope, and another process takes over
// if it dies.
//
// Owns:     its connections, and one schema of the database.
// Does not: decide when to take over a scope (the claiming process decides this).
//
// Invariants
//   READING-1. All pages show the state at one point in time, so that a concurrent trim leaves no gap.
//   DELETIONS-1. Only the process that owns the scope can delete its entries. As for an append, the statement locks the
//       lease and checks its token. Any other process is refused with `FENCED`.
//   DELETIONS-2. If forgetting a scope is interrupted, the first entries of the scope remain.

import type { Pool, PoolClient, PoolConfig } from 'pg';
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
import { ConfigurationError } from '../../values/errors.ts';
import { checkUnshown } from '../../values/checks.ts';
import { rowOf, entryOf } from '../journal-rows/stored-rows.ts';
import {
  checkLayout,
  explained,
  inTransaction,
  openPool,
  prepareTables,
  queried,
  type Database,
} from './database.ts';
import { AppendQueue } from './leased-appends.ts';
import { Leases, fenced } from './node-leases.ts';
import { nodeWakeTimes } from './node-wake-times.ts';

/** The options of `postgresJournal`. */
export interface PostgresJournalOptions {
  /**
   * The database: `postgres://…`, or the options for `Pool` from the package `pg`.
   * @defaultValue the environment variables `PGHOST`, `PGDATABASE` …
   */
  readonly connection?: string | PoolConfig;
  /** Time and randomness; use `nodeEnvironment()` from `offstage/node`. */
  readonly environment: Environment;
  /**
   * The schema for the journal's tables. It must not be used for anything else, and is created if missing.
   * @defaultValue 'offstage'
   */
  readonly schema?: string;
  /**
   * The time without a heartbeat after which another process can take over the scopes of a process. Three heartbeats
   * are sent in this time. In milliseconds, at least 100. @defaultValue 15_000
   */
  readonly leaseMs?: number;
  /**
   * The URL of this process, such as `http://10.0.0.7:3000`. Other processes receive it in the `holder` of
   * `SCOPE_IN_USE` and can redirect a user to it. @defaultValue none
   */
  readonly address?: string;
  /**
   * The app's release. Increase this number when an earlier release cannot continue the sessions of this release. A
   * process with an earlier release neither claims nor wakes sessions that a later release has written. @defaultValue 0
   */
  readonly release?: number;
  /**
   * The time limit for a response of the server. If it is exceeded, the server counts as unreachable. In milliseconds.
   * @defaultValue 10_000
   */
  readonly timeoutMs?: number;
}

/** The journal in a PostgreSQL database, as returned by `postgresJournal`. */
export interface PostgresJournal extends Journal {
  append(entry: JournalEntry): Promise<void>;
  read(query?: JournalQuery): Promise<readonly JournalEntry[]>;
  readAfter(entry: JournalPosition): Promise<readonly JournalEntry[] | null>;
  /**
   * @throws {CapacityError} `SCOPE_IN_USE`, with the `holder` (`ScopeInUse`).
   * @throws {ConfigurationError} `JOURNAL_TOO_NEW` if a newer version of Offstage has upgraded the tables, or a later
   *   `release` has written the scope.
   */
  claim(scope: string): Promise<void>;
  /** @throws {JournalError} `FENCED` if this process does not own the scope, in which case no entry is deleted */
  trim(entry: JournalPosition): Promise<void>;
  release(scope: string): Promise<void>;
  scopes(): Promise<readonly ScopeSummary[]>;
  /** @throws {CapacityError} `SCOPE_IN_USE` while another process owns the scope */
  forget(scope: string): Promise<void>;
  /** The wake times of all processes. Any process may set one, even if another process owns the scope. */
  readonly wakeTimes: WakeTimes;
  /**
   * Writes the pending entries, releases all scopes and closes the connections. Later calls reject with
   * `JOURNAL_CLOSED`. Safe to call twice.
   */
  close(): Promise<void>;
}

/** `pg` would interpret any other text as the path of a database on the host "base". */
const ADDRESS = /^(?:postgres(?:ql)?:\/\/|socket:|\/)/;
const isConnection = (value: unknown): boolean =>
  typeof value === 'string' ? ADDRESS.test(value) : typeof value === 'object' && value !== null;

const optionsSchema = z.strictObject({
  connection: z
    .custom(
      isConnection,
      'expected postgres://user@host/database, or the options of `Pool` of the package pg',
    )
    .optional(),
  environment: z.looseObject({ scheduler: z.looseObject({}), ids: z.looseObject({}) }),
  schema: z
    .string()
    .regex(/^[a-z_][a-z0-9_]{0,62}$/, 'expected a name of small letters, digits and _')
    .optional(),
  leaseMs: z.number().min(100).optional(),
  address: z.string().min(1).max(2000).optional(),
  release: z.int().min(0).max(2_147_483_647).optional(),
  timeoutMs: z.number().positive().optional(),
});

/** One connection for appends, one for heartbeats, and two for reads. */
const MOST_CONNECTIONS = 4;

/**
 * Opens a journal in a PostgreSQL database (12 or newer) and creates its tables on first use. A scope must be claimed
 * before entries are written to it. Needs the package `pg`.
 *
 * @throws {ConfigurationError} `INVALID_OPTION`; `MISSING_DEPENDENCY`; `CANNOT_OPEN` if the server refuses the
 *   connection; `JOURNAL_TOO_NEW` for tables of a newer version; `NOT_A_JOURNAL` if the schema has other tables.
 * @throws {JournalError} `JOURNAL_UNREACHABLE`, `JOURNAL_IO`.
 */
export async function postgresJournal(options: PostgresJournalOptions): Promise<PostgresJournal> {
  checkUnshown('postgresJournal', optionsSchema, options);
  // An undefined `connection` would silently select the default database: that of PGHOST, or a local one.
  if ('connection' in options && options.connection === undefined)
    throw new ConfigurationError(
      'INVALID_OPTION',
      'postgresJournal: expected an address in `connection`, got undefined: leave it out to use PGHOST, PGDATABASE …',
    );
  const { connection = {}, environment, schema = 'offstage' } = options;
  const { leaseMs = 15_000, timeoutMs = 10_000, address = null, release = 0 } = options;
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
    release,
  };
  const { pool, name } = database;
  const leases = new Leases(database, environment, { leaseMs, address });
  try {
    await prepareTables(database);
    await leases.compareClocks();
  } catch (error) {
    await pool.end();
    throw error;
  }
  const queue = new AppendQueue(database, leases, environment.scheduler);
  const times = nodeWakeTimes(database, leases, environment.scheduler);
  let closing: Promise<void> | null = null;

  const checkOpen = (): void => {
    if (closing)
      throw new JournalError('JOURNAL_CLOSED', `${name} was closed`, { retryable: false });
  };

  return {
    async append(entry) {
      checkOpen();
      await queue.append(rowOf(entry));
    },
    async read(asked = {}) {
      checkOpen();
      return (await readEntries(database, asked)) ?? [];
    },
    async readAfter(entry) {
      checkOpen();
      return readEntries(database, entry, entry.seq);
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
      await leases.release(scope, queue.decided(), () => times.asleep(scope));
    },
    async scopes() {
      checkOpen();
      const { rows } = await queried<{
        scope: string;
        entries: string;
        first_at: number;
        last_at: number;
      }>(
        database,
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
        // The wake time is deleted first, so that no process wakes a partly deleted session.
        await times.set(scope, null);
        await forgetAll(database, scope);
      } finally {
        if (!isOurs) await leases.release(scope);
      }
    },
    clockOffsetMs: () => leases.clockOffsetMs,
    wakeTimes: {
      async set(scope, at) {
        checkOpen();
        await times.set(scope, at);
      },
      async earliest(asked) {
        checkOpen();
        return times.earliest(asked);
      },
      async take(asked) {
        checkOpen();
        return times.take(asked);
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

/**
 * Checks that the database has journal tables with the layout of this version, without changing anything.
 * @throws {ConfigurationError} `NOT_A_JOURNAL`; `JOURNAL_TOO_OLD`, `JOURNAL_TOO_NEW`; `CANNOT_OPEN`.
 * @throws {JournalError} `JOURNAL_UNREACHABLE`, `JOURNAL_IO`.
 */
export async function checkTables(connectionString: string, schema = 'offstage'): Promise<void> {
  const timeoutMs = 10_000;
  const pool = openPool({
    max: 1,
    connectionString,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  try {
    await checkLayout(pool, schema);
  } finally {
    await pool.end();
  }
}

/** Entries are read in pages, because the server's time for a response is limited. */
const ROWS_OF_A_PAGE = 2000;

interface Row {
  readonly [column: string]: unknown;
  readonly scope: string;
  readonly id: string;
  readonly checksum: string;
}

/**
 * Returns the requested entries, in order within each scope. With `seq`: returns the entries of all units after this
 * entry of the unit, or null if the journal no longer has this entry.
 */
async function readEntries(
  database: Database,
  query: JournalQuery,
  seq?: number,
): Promise<readonly JournalEntry[] | null> {
  const { name } = database;
  const entriesOf = (rows: readonly Row[]) =>
    rows.map((row) => entryOf({ ...row, checksum: Number(row.checksum) }, name));
  /** The first row is the entry itself, so that no rows are returned if the entry is missing. */
  const without = (rows: readonly JournalEntry[]) =>
    seq === undefined ? rows : rows.length === 0 ? null : rows.slice(1);
  try {
    const only = await page(database.pool, database.schema, query, { seq });
    if (only.length < ROWS_OF_A_PAGE) return without(entriesOf(only));
    const all = await inTransaction(
      database,
      'isolation level repeatable read, read only',
      async (client) => {
        const entries: JournalEntry[] = [];
        let last: Row | undefined;
        do {
          const rows = await page(client, database.schema, query, { seq, after: last });
          entries.push(...entriesOf(rows));
          last = rows.length === ROWS_OF_A_PAGE ? rows.at(-1) : undefined;
        } while (last);
        return entries;
      },
    );
    return without(all);
  } catch (error) {
    throw explained(error, name);
  }
}

async function page(
  on: Pool | PoolClient,
  schema: string,
  { scope, unit }: JournalQuery,
  { seq, after }: { readonly seq: number | undefined; readonly after?: Row | undefined },
): Promise<readonly Row[]> {
  if (seq !== undefined && after === undefined) {
    const { rows } = await on.query<Row>(
      `select * from ${schema}.entries where scope = $1 and id >=
         (select id from ${schema}.entries where scope = $1 and unit = $2 and seq = $3)
       order by scope, id limit ${ROWS_OF_A_PAGE}`,
      [scope, unit, seq],
    );
    return rows;
  }
  const { rows } = await on.query<Row>(
    `select * from ${schema}.entries
     where ($1::text is null or scope = $1) and ($2::text is null or unit = $2)
       and ($3::text is null or (scope, id) > ($3, $4::bigint))
     order by scope, id limit ${ROWS_OF_A_PAGE}`,
    [scope, seq === undefined ? unit : undefined, after?.scope, after?.id],
  );
  return rows;
}

/** The maximum number of rows that one statement deletes, because the server's time for a response is limited. */
const ROWS_AT_A_TIME = 2000;

const trim = (schema: string): string => `
  with held as materialized (
    select l.scope from ${schema}.leases l where l.scope = $1 and l.token = $2 for share of l
  ), deleted as (
    delete from ${schema}.entries e using held
    where e.scope = held.scope
      and e.id < (select id from ${schema}.entries where scope = $1 and unit = $3 and seq = $4)
  )
  select scope from held`;

const forget = (schema: string): string => `
  delete from ${schema}.entries where scope = $1 and id in (
    select id from ${schema}.entries where scope = $1 order by id desc limit ${ROWS_AT_A_TIME})`;

/**
 * DELETIONS-1. Deletes the entries of a scope before the given entry, or no entries if the given entry is unknown.
 * @throws {JournalError} `FENCED`
 */
async function trimTo(
  database: Database,
  leases: Leases,
  { scope, unit, seq }: JournalPosition,
): Promise<void> {
  const token = leases.tokenOf(scope);
  if (token === undefined) throw fenced(database, scope);
  const held = await queried(database, trim(database.schema), [scope, token, unit, seq]);
  if (held.rows.length > 0) return;
  leases.lost(scope, token);
  throw fenced(database, scope);
}

/** DELETIONS-2 */
async function forgetAll(database: Database, scope: string): Promise<void> {
  let deleted: number | null;
  do ({ rowCount: deleted } = await queried(database, forget(database.schema), [scope]));
  while (deleted === ROWS_AT_A_TIME);
}
