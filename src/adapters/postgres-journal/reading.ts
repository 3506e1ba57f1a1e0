// Reads entries in pages, since the server has a time limit.
//
// Invariants
//   READING-1. All pages are of one instant: a scope that is trimmed meanwhile has no gap.

import type { Pool, PoolClient } from 'pg';
import type { JournalEntry, JournalQuery } from '../../actors/ports/journal.ts';
import { entryOf } from '../journal-rows/stored-entry.ts';
import { explained, inTransaction, type Database } from './database.ts';

const ROWS_OF_A_PAGE = 2000;

interface Row {
  readonly [column: string]: unknown;
  readonly scope: string;
  readonly id: string;
  readonly checksum: string;
}

/** Returns the requested entries, in their order within each scope. */
export async function readEntries(
  database: Database,
  query: JournalQuery,
): Promise<readonly JournalEntry[]> {
  const { name } = database;
  const entriesOf = (rows: readonly Row[]) =>
    rows.map((row) => entryOf({ ...row, checksum: Number(row.checksum) }, name));
  try {
    const only = await page(database.pool, database.schema, query);
    if (only.length < ROWS_OF_A_PAGE) return entriesOf(only);
    return await inTransaction(
      database,
      'isolation level repeatable read, read only',
      async (client) => {
        const entries: JournalEntry[] = [];
        let last: Row | undefined;
        do {
          const rows = await page(client, database.schema, query, last);
          entries.push(...entriesOf(rows));
          last = rows.length === ROWS_OF_A_PAGE ? rows.at(-1) : undefined;
        } while (last);
        return entries;
      },
    );
  } catch (error) {
    throw explained(error, name);
  }
}

async function page(
  on: Pool | PoolClient,
  schema: string,
  { scope, unit }: JournalQuery,
  after?: Row,
): Promise<readonly Row[]> {
  const { rows } = await on.query<Row>(
    `select * from ${schema}.entries
     where ($1::text is null or scope = $1) and ($2::text is null or unit = $2)
       and ($3::text is null or (scope, id) > ($3, $4::bigint))
     order by scope, id limit ${ROWS_OF_A_PAGE}`,
    [scope, unit, after?.scope, after?.id],
  );
  return rows;
}
