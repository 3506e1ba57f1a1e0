// The connections to the database, the interpretation of its errors, and the journal's tables.
//
// Owns:     the pool. A broken connection is replaced on the next call.
// Does not: retry (the commit unit does, because it has the entry).
//
// Invariants
//   POSTGRES-JOURNAL-DATABASE-1. Tables of another program or of a newer version are never written to. Another process
//       may upgrade the tables at any time. In this case, this process claims no more scopes.
//   POSTGRES-JOURNAL-DATABASE-2. If several processes create the tables at the same time, one succeeds and the others
//       use the created tables.

import { createRequire } from 'node:module';
import type { Pool, PoolClient, PoolConfig, QueryResult } from 'pg';
import { JournalError } from '../../actors/ports/journal-error.ts';
import { CapacityError, ConfigurationError, messageOf } from '../../values/errors.ts';

/**
 * Version 1: without packed events and wake times. Version 2: with a lease and heartbeat per scope. Version 3: without
 * events that are packed with the second dictionary. Version 4: without a desk.
 */
export const LAYOUT_VERSION = 5;
/** The oldest layout with the current tables, which can be read without an upgrade. */
const OLDEST_READABLE_LAYOUT = 3;
/** An arbitrary number that identifies the advisory lock for creating the tables. */
const MAKING_TABLES = 0x4f_46_46_53;

export interface Database {
  readonly pool: Pool;
  readonly schemaName: string;
  /** The schema name, quoted for SQL. */
  readonly schema: string;
  /** The journal's name in errors. */
  readonly name: string;
  /** The app's release. Sessions that a later release has written are left unchanged. */
  readonly release: number;
}

type Require = (id: string) => unknown;

/** @throws {ConfigurationError} `MISSING_DEPENDENCY` if the package `pg` is not installed. */
export function openPool(
  config: PoolConfig,
  require: Require = createRequire(import.meta.url),
): Pool {
  let pg: { readonly Pool: new (config: PoolConfig) => Pool };
  try {
    pg = require('pg') as typeof pg;
  } catch (cause) {
    throw new ConfigurationError(
      'MISSING_DEPENDENCY',
      'postgresJournal needs the package `pg`: run `npm install pg`',
      { cause },
    );
  }
  const pool = new pg.Pool(config);
  // The pool has already removed the broken idle connection.
  pool.on('error', () => {});
  return pool;
}

// A process frequently updates its row. Each page therefore leaves free space for the next version of the row.
const nodes = (schema: string): string => `
  create table ${schema}.nodes (
    id bigint primary key,
    holder text not null,
    address text,
    expires_at timestamptz not null
  ) with (fillfactor = 50);
  create index leases_by_node on ${schema}.leases (node);
`;

// The row of a session in memory contains a node. It is in a separate index, which a search for due sessions does not
// read.
const wakeTimes = (schema: string): string => `
  create table ${schema}.wake_times (
    scope text collate "C" primary key,
    at double precision not null
  );
  ${wakeTimesByNode(schema)}
`;

const wakeTimesByNode = (schema: string): string => `
  alter table ${schema}.wake_times add column node bigint, add column release integer not null default 0;
  create index wake_times_asleep on ${schema}.wake_times (at, scope) where node is null;
  create index wake_times_awake on ${schema}.wake_times (node, scope) where node is not null;
`;

const desk = (schema: string): string => `
  create table ${schema}.desk (
    scope text collate "C" not null,
    id text collate "C" not null,
    who text collate "C" not null,
    kind text collate "C" not null,
    since double precision not null,
    body text,
    primary key (scope, id, who)
  );
  create index desk_in_order on ${schema}.desk (kind, who, since, scope, id);
`;

// Names are compared byte by byte, so that no index depends on the collation of the system. Tokens come from a
// sequence, so no token is issued twice, even after its lease has been deleted. A process with layout 2 writes a lease
// with a holder and an expiry time instead of a node.
const layout = (schema: string): string => `
  create sequence ${schema}.lease_tokens;
  create table ${schema}.leases (
    scope text collate "C" primary key,
    token bigint not null,
    holder text,
    expires_at timestamptz,
    node bigint
  );
  ${nodes(schema)}
  create table ${schema}.entries (
    scope text collate "C" not null,
    id bigint generated always as identity,
    unit text collate "C" not null,
    seq integer not null,
    at double precision not null,
    actor text not null,
    definition_version integer not null,
    event text not null,
    checksum bigint not null,
    packed bytea,
    release integer not null default 0,
    primary key (scope, id),
    unique (scope, unit, seq)
  );
  ${wakeTimes(schema)}
  create table ${schema}.layout (version integer not null);
  insert into ${schema}.layout values (${LAYOUT_VERSION});
`;

// Processes with layout 2 keep their leases and heartbeats.
const withNodes = (schema: string): string => `
  alter table ${schema}.leases
    alter column holder drop not null,
    alter column expires_at drop not null,
    add column node bigint;
  alter table ${schema}.entries add column release integer not null default 0;
  ${nodes(schema)}
`;

const from1 = (schema: string): string => `
  alter table ${schema}.entries add column packed bytea;
  ${withNodes(schema)}
  ${wakeTimes(schema)}
`;

const from2 = (schema: string): string => `
  ${withNodes(schema)}
  drop index ${schema}.wake_times_in_order;
  ${wakeTimesByNode(schema)}
`;

/**
 * Creates missing tables and upgrades older ones.
 * @throws {ConfigurationError} `JOURNAL_TOO_NEW`, `NOT_A_JOURNAL` (POSTGRES-JOURNAL-DATABASE-1), `CANNOT_OPEN`
 * @throws {JournalError} `JOURNAL_UNREACHABLE`, `JOURNAL_IO`
 */
export async function prepareTables(database: Database): Promise<void> {
  const { name } = database;
  try {
    let version = await versionOf(database);
    if (version === null || version < LAYOUT_VERSION) version = await bringUpToDate(database);
    checkKnown(name, version);
  } catch (error) {
    throw explained(error, name);
  }
}

/**
 * Checks the tables of the schema without changing anything.
 * @throws {ConfigurationError} `NOT_A_JOURNAL`, `JOURNAL_TOO_OLD`, `JOURNAL_TOO_NEW`, `CANNOT_OPEN`
 * @throws {JournalError} `JOURNAL_UNREACHABLE`, `JOURNAL_IO`
 */
export async function checkLayout(pool: Pool, schemaName: string): Promise<void> {
  const name = `The journal in the schema ${schemaName}`;
  const schema = `"${schemaName.replaceAll('"', '""')}"`;
  let version: number | null;
  try {
    version = await versionOf({ pool, schema, schemaName });
  } catch (error) {
    throw explained(error, name);
  }
  if (version === null)
    throw new ConfigurationError(
      'NOT_A_JOURNAL',
      `Expected the tables of a journal in the schema ${schemaName} of the database, it has none`,
    );
  if (version < OLDEST_READABLE_LAYOUT)
    throw new ConfigurationError(
      'JOURNAL_TOO_OLD',
      `${name} has layout ${version}; this version of Offstage reads ${OLDEST_READABLE_LAYOUT} to ${LAYOUT_VERSION}: start the app on it, which upgrades it`,
    );
  checkKnown(name, version);
}

/** @throws {ConfigurationError} `JOURNAL_TOO_NEW` */
export function checkKnown(name: string, version: number | null): void {
  if (version !== null && version > LAYOUT_VERSION)
    throw new ConfigurationError(
      'JOURNAL_TOO_NEW',
      `${name} was written by a newer version of Offstage (layout ${version}; this one knows ${LAYOUT_VERSION})`,
    );
}

/** POSTGRES-JOURNAL-DATABASE-2. Returns the resulting version of the tables, no matter which process created them. */
async function bringUpToDate(database: Database): Promise<number> {
  const { schema, schemaName } = database;
  return inTransaction(database, '', async (client) => {
    await client.query('select pg_advisory_xact_lock($1)', [MAKING_TABLES]);
    const version = await versionOf(database, client);
    if (version === null) {
      // Creating a schema requires a privilege that the owner of an existing schema may not have.
      const { rowCount } = await client.query('select 1 from pg_namespace where nspname = $1', [
        schemaName,
      ]);
      if (rowCount === 0) await client.query(`create schema ${schema}`);
      await client.query(layout(schema));
    }
    if (version === 1) await client.query(from1(schema));
    if (version === 2) await client.query(from2(schema));
    if (version === null || version < 5) await client.query(desk(schema));
    if (version !== null && version < LAYOUT_VERSION)
      await client.query(`update ${schema}.layout set version = ${LAYOUT_VERSION}`);
    return Math.max(version ?? 0, LAYOUT_VERSION);
  });
}

/** Runs one statement. @throws {JournalError} the converted error (`explained`) */
export async function queried<Found extends object>(
  { pool, name }: Database,
  text: string,
  values: unknown[] = [],
): Promise<QueryResult<Found>> {
  try {
    return await pool.query<Found>(text, values);
  } catch (error) {
    throw explained(error, name);
  }
}

/** Runs `work` in a transaction. `kind`: the mode for `begin`. */
export async function inTransaction<T>(
  { pool }: Database,
  kind: string,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  // The pool does not listen to connections that are in use. The running query receives the error anyway.
  const ignore = (): void => {};
  client.on('error', ignore);
  try {
    await client.query(`begin ${kind}`);
    const result = await work(client);
    await client.query('commit');
    client.off('error', ignore);
    client.release();
    return result;
  } catch (error) {
    // The connection is still in a transaction, so the pool has to replace it.
    client.release(true);
    throw error;
  }
}

/** Returns null if the tables do not exist. */
async function versionOf(
  { pool, schema, schemaName }: Pick<Database, 'pool' | 'schema' | 'schemaName'>,
  client: Pick<PoolClient, 'query'> = pool,
): Promise<number | null> {
  // `to_regclass` may use the catalog as it was at the start of the transaction.
  const { rowCount } = await client.query(
    `select 1 from pg_tables where schemaname = $1 and tablename = 'layout'`,
    [schemaName],
  );
  if (rowCount === 0) return null;
  const { rows } = await client.query<{ version: number }>(`select version from ${schema}.layout`);
  return rows[0]?.version ?? null;
}

/** Error classes and codes. Source: postgresql.org/docs/current/errcodes-appendix.html. */
const DISK_FULL = '53100';
const DUPLICATE_TABLE = '42P07';
const UNDEFINED_COLUMN = '42703';
const NO_PRIVILEGE = '42501';
const NO_SUCH_DATABASE = '3D000';
const CONNECTION = '08';
const REFUSED_USER = '28';
/** The server is shutting down or starting up, or an administrator ended the connection. */
const SERVER_STOPS = '57P';
const STATE = /^[0-9A-Z]{5}$/;

/** Converts a database error to an Offstage error whose class shows who has to act. Returns other errors unchanged. */
export function explained(error: unknown, name: string): unknown {
  if (error instanceof JournalError || error instanceof ConfigurationError) return error;
  const state = stateOf(error);
  const said = messageOf(error);
  if (state === DISK_FULL)
    return new CapacityError('DISK_FULL', `${name}: the disk is full`, { cause: error });
  // Another program's object has the same name as one of the journal's objects.
  if (state === DUPLICATE_TABLE || state === UNDEFINED_COLUMN)
    return new ConfigurationError(
      'NOT_A_JOURNAL',
      `${name}: expected the schema to be for the journal alone: ${said}`,
      { cause: error },
    );
  if (state === NO_PRIVILEGE || state === NO_SUCH_DATABASE || state.startsWith(REFUSED_USER))
    return new ConfigurationError('CANNOT_OPEN', `${name} cannot be opened: ${said}`, {
      cause: error,
    });
  const isUnreachable =
    state === '' || state.startsWith(CONNECTION) || state.startsWith(SERVER_STOPS);
  return new JournalError(
    isUnreachable ? 'JOURNAL_UNREACHABLE' : 'JOURNAL_IO',
    `${name}: ${said}`,
    { retryable: true, cause: error },
  );
}

/**
 * Returns whether the error concerns the written data (its content, its integrity, or a limit such as the size of an
 * index entry) rather than the server.
 */
export function isAboutData(error: unknown): boolean {
  return ['22', '23', '54'].includes(stateOf(error).slice(0, 2));
}

/** Returns the SQLSTATE; empty if there is none. Operating system codes (`EPIPE`) look similar but have no severity. */
function stateOf(error: unknown): string {
  const { code, severity } = (error ?? {}) as {
    readonly code?: unknown;
    readonly severity?: unknown;
  };
  const isOfServer = typeof severity === 'string';
  return isOfServer && typeof code === 'string' && STATE.test(code) ? code : '';
}
