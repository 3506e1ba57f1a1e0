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
//   POSTGRES-JOURNAL-DESK-1. Only the process that holds the lease of a scope replaces its rows: the statement locks the
//       lease and checks its token, as for an append. A process also removes the rows of a scope that no other node has
//       claimed, because an ended session has already released its lease.
//   POSTGRES-JOURNAL-DESK-2. The rows that are set in one turn or during a write share one statement. The latest rows of
//       a scope are written.
//   POSTGRES-JOURNAL-DESK-3. A row that has not changed is not written.

import type { Pool, PoolClient, PoolConfig } from 'pg';
import { z } from 'zod';
import type { Environment, Scheduler } from '../../actors/ports/environment.ts';
import { JournalError } from '../../actors/ports/journal-error.ts';
import type {
  Journal,
  JournalEntry,
  JournalPosition,
  JournalQuery,
  ScopeSummary,
} from '../../actors/ports/journal.ts';
import type { Desk } from '../../actors/ports/desk.ts';
import type { WakeTimes } from '../../actors/ports/wake-times.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { checkUnshown } from '../../values/checks.ts';
import {
  checkDeskRows,
  deskColumns,
  deskQuery,
  deskRowOf,
  type DeskColumns,
} from '../journal-rows/desk-rows.ts';
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
import { Leases, fenced, heldScopes } from './node-leases.ts';
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
  /** The rows of all processes' sessions. Only the process that owns a scope may set its rows. */
  readonly desk: Desk;
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
  const desk = postgresDesk(database, leases, environment.scheduler);
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
      const decided = Promise.all([queue.decided(), desk.decided()]).then(() => {});
      await leases.release(scope, decided, () => times.asleep(scope));
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
        await desk.set(scope, []);
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
    desk: {
      async set(scope, rows) {
        checkOpen();
        await desk.set(scope, rows);
      },
      async find(asked) {
        checkOpen();
        return desk.find(asked);
      },
    },
    close() {
      closing ??= Promise.all([queue.decided(), times.decided(), desk.decided()])
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

/** Parameters: scopes, tokens, the emptied scopes, this node; then the columns of the rows. */
const writeDesk = (schema: string): string => `
  with ${heldScopes(schema)}, ours as materialized (
    select scope from held
    union
    select emptied.scope from unnest($3::text[]) as emptied (scope)
    where not exists (
      select 1 from ${schema}.leases l where l.scope = emptied.scope and l.node is distinct from $4::bigint)
  ), said as materialized (
    select * from unnest($5::text[], $6::text[], $7::text[], $8::text[], $9::float8[], $10::text[])
      as said (scope, id, who, kind, since, body)
    where scope in (select scope from ours)
  ), gone as materialized (
    delete from ${schema}.desk d using ours where d.scope = ours.scope and not exists (
      select 1 from said s where s.scope = d.scope and s.id = d.id and s.who = d.who)
  ), kept as materialized (
    insert into ${schema}.desk as d (scope, id, who, kind, since, body)
    select scope, id, who, kind, since, body from said
    on conflict (scope, id, who) do update
      set kind = excluded.kind, since = excluded.since, body = excluded.body
      where (d.kind, d.since, d.body) is distinct from (excluded.kind, excluded.since, excluded.body)
  )
  select scope from ours`;

interface PostgresDesk extends Desk {
  /** Resolves when all earlier rows have been written or refused. */
  decided(): Promise<void>;
}

export function postgresDesk(
  database: Database,
  leases: Leases,
  scheduler: Scheduler,
): PostgresDesk {
  let waiting = new Map<string, readonly DeskColumns[]>();
  /** The pending write, which resolves with the scopes whose rows it has replaced; null if there is none. */
  let next: Promise<ReadonlySet<string>> | null = null;
  let latest: Promise<unknown> = Promise.resolve();

  /** POSTGRES-JOURNAL-DESK-2 */
  async function writeAfter(before: Promise<unknown>): Promise<ReadonlySet<string>> {
    await Promise.allSettled([
      before,
      new Promise<void>((resolve) => scheduler.schedule(resolve, 0)),
    ]);
    const said = [...waiting];
    waiting = new Map();
    next = null;
    const claims = said.flatMap(([scope]) => {
      const token = leases.tokenOf(scope);
      return token === undefined ? [] : [{ scope, token }];
    });
    const rows = said.flatMap(([scope, columns]) => columns.map((one) => [scope, ...one] as const));
    const { rows: written } = await queried<{ scope: string }>(
      database,
      writeDesk(database.schema),
      [
        claims.map(({ scope }) => scope),
        claims.map(({ token }) => token),
        said.filter(([, columns]) => columns.length === 0).map(([scope]) => scope),
        await leases.node(),
        ...[0, 1, 2, 3, 4, 5].map((at) => rows.map((row) => row[at])),
      ],
    );
    return new Set(written.map(({ scope }) => scope));
  }

  return {
    /** @throws {JournalError} `FENCED`; `INVALID_ENTRY` for rows that cannot be stored. */
    async set(scope, rows) {
      checkDeskRows(scope, rows);
      waiting.set(scope, deskColumns(rows));
      next ??= latest = writeAfter(latest);
      if (!(await next).has(scope)) throw fenced(database, scope);
    },
    async find(query) {
      const { text, values } = deskQuery(query, `${database.schema}.desk`, placeholder);
      return (await queried<Record<string, unknown>>(database, text, values)).rows.map(deskRowOf);
    },
    async decided() {
      await Promise.allSettled([latest]);
    },
  };
}

const CASTS = ['', '::float8', '::text', '::text', '::int'];

/** Exported for a test that checks the plan of a query. */
export const placeholder = (number: number): string => `$${number}${CASTS[number] ?? '::text'}`;
