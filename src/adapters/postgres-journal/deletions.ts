// What is deleted of a scope: the entries before one that says what they had led to, or all.
//
// Invariants
//   DELETIONS-1. What is before an entry is deleted by whoever writes the scope, or not at all: as an append
//        does, the statement locks the lease and looks at its token. Anybody else is refused: `FENCED`.
//   DELETIONS-2. What is left of a scope that is forgotten, if that is broken off, is a beginning of it.

import type { JournalPosition } from '../../actors/ports/journal.ts';
import { explained, type Database } from './database.ts';
import { fenced, type Leases } from './leases.ts';

/** Deleted at a time: it must be done within the time that the server has to answer. */
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
 * DELETIONS-1. Deletes what is before an entry of a scope; an unknown one is before nothing.
 * @throws {JournalError} `FENCED`
 */
export async function trimTo(
  database: Database,
  leases: Leases,
  { scope, unit, seq }: JournalPosition,
): Promise<void> {
  const token = leases.tokenOf(scope);
  if (token === undefined) throw fenced(database, scope);
  const held = await run(database, trim(database.schema), [scope, token, unit, seq]);
  if (held > 0) return;
  leases.lost(scope, token);
  throw fenced(database, scope);
}

/** DELETIONS-2 */
export async function forgetAll(database: Database, scope: string): Promise<void> {
  let deleted: number;
  do deleted = await run(database, forget(database.schema), [scope]);
  while (deleted === ROWS_AT_A_TIME);
}

/** Returns how many rows it was about. */
async function run({ pool, name }: Database, text: string, values: unknown[]): Promise<number> {
  try {
    return (await pool.query(text, values)).rowCount ?? 0;
  } catch (error) {
    throw explained(error, name);
  }
}
