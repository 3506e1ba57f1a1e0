// A journal in its own schema, and operations on its server that several tests use.

import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { afterEach, inject } from 'vitest';
import type { JournalEntry } from '../../../src/entries/journal.ts';
import type { Environment } from '../../../src/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import {
  postgresJournal,
  type PostgresJournal,
  type PostgresJournalOptions,
} from '../../../src/adapters/postgres-journal/index.ts';
import { connectionTo } from '../../support/postgres/global-setup.ts';

export const connection = connectionTo(inject('postgresHost'));

export function newSchema(): string {
  return `test_${randomUUID().replaceAll('-', '')}`;
}

const opened: PostgresJournal[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((journal) => journal.close()));
});

/** Opens a journal, which is closed when the test ends. */
export async function open(
  options: Partial<PostgresJournalOptions> & { readonly environment?: Environment } = {},
): Promise<PostgresJournal> {
  const journal = await postgresJournal({ connection, environment: nodeEnvironment(), ...options });
  opened.push(journal);
  return journal;
}

/** Queries the server directly. */
export async function ask<Found extends object>(text: string, values: unknown[] = []) {
  const client = new Client(connection);
  await client.connect();
  try {
    return (await client.query<Found>(text, values)).rows;
  } finally {
    await client.end();
  }
}

/** Ends the live nodes and their leases. A node stays alive if its process renews it. */
export async function expireLeases(schema: string): Promise<void> {
  await ask(`update ${schema}.nodes set expires_at = clock_timestamp() - interval '1 second'`);
}

/** Changes the tables to those of an earlier version, with their content. */
export async function downgrade(schema: string, version: 1 | 2): Promise<void> {
  await ask(`
    drop table ${schema}.nodes, ${schema}.desk;
    alter table ${schema}.leases drop column node, alter holder set not null, alter expires_at set not null;
    alter table ${schema}.entries drop column release;
    drop index ${schema}.wake_times_asleep, ${schema}.wake_times_awake;
    alter table ${schema}.wake_times drop column node, drop column release;
    create index wake_times_in_order on ${schema}.wake_times (at, scope);
    update ${schema}.layout set version = 2`);
  if (version === 1)
    await ask(`
      alter table ${schema}.entries drop column packed;
      drop table ${schema}.wake_times;
      update ${schema}.layout set version = 1`);
}

export function entry(seq: number, unit = 'unit', scope = 'scope'): JournalEntry {
  const event = { type: 'user.said', text: `words ${seq}` } as { type: string };
  const at = 1_700_000_000_000 + seq;
  return { scope, unit, seq, at, actor: 'user', definitionVersion: 3, event };
}
