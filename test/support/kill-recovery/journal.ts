// The journal of a life: a PostgreSQL server if `KILL_POSTGRES` specifies one (the options for its journal, as JSON),
// or else a file in the folder.

import type { Environment, Journal } from '../../../src/index.ts';
import { postgresJournal } from '../../../src/adapters/postgres-journal/index.ts';
import { sqliteJournal } from '../../../src/adapters/sqlite-journal/index.ts';
import { journalIn } from './world.ts';

export interface OpenJournal extends Journal {
  close(): void | Promise<void>;
}

export async function openJournal(folder: string, environment: Environment): Promise<OpenJournal> {
  const server = process.env['KILL_POSTGRES'];
  if (server === undefined) return sqliteJournal({ path: journalIn(folder), environment });
  return postgresJournal({ ...(JSON.parse(server) as { connection: object }), environment });
}
