// Deletes entries of a scope: those before an entry that replaces them, or all.
//
// Invariants
//   DELETIONS-1. Only the process that writes the scope can delete entries before another: like an append,
//        the statement locks the lease and checks its token. Any other process is refused: `FENCED`.
//   DELETIONS-2. If forgetting a scope is interrupted, the remaining entries are a prefix of it.

import type { JournalPosition } from '../../actors/ports/journal.ts';
import { explained, type Database } from './database.ts';
import { fenced, type Leases } from './leases.ts';

/** The number deleted at a time, so that it is done within the server's time limit. */
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
 * DELETIONS-1. Deletes the entries of a scope before another; for an unknown one, none.
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

/** Returns the number of affected rows. */
async function run({ pool, name }: Database, text: string, values: unknown[]): Promise<number> {
  try {
    return (await pool.query(text, values)).rowCount ?? 0;
  } catch (error) {
    throw explained(error, name);
  }
}
