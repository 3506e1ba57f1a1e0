// The tables of the file in their present version, and the upgrade of older files.
//
// Invariants
//   LAYOUT-1. Entries of an older file are verified by its own checksums before they are rewritten. A damaged
//       file keeps its old version, unchanged.

import type { DatabaseSync } from 'node:sqlite';
import { journalCorrupt } from '../../actors/ports/journal-error.ts';
import { checksumOf } from '../journal-rows/stored-entry.ts';

/**
 * Stored in `pragma user_version`. Version 1: without scopes. Version 2: without packed events and wake
 * times.
 */
export const LAYOUT_VERSION = 3;

// `at` is usually whole, and then stored as an integer. One index serves all queries, since it contains the
// id, as each index does; another one would increase the cost of each append by a quarter.
const LAYOUT = `
  create table entries (
    id integer primary key,
    scope text not null,
    unit text not null,
    seq integer not null,
    at real not null,
    actor text not null,
    definition_version integer not null,
    event text not null,
    checksum integer not null,
    packed blob,
    unique (scope, unit, seq)
  ) strict;
`;

// The index covers all queries.
const WAKE_TIMES = `
  create table wake_times (scope text primary key, at real not null) strict, without rowid;
  create index wake_times_in_order on wake_times (at, scope);
`;

export const INSERT = `insert into entries
  (scope, unit, seq, at, actor, definition_version, event, checksum, packed) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Upgrades the file to the present layout, within a transaction. `version` 0: an empty file. */
export function bringUpToDate(database: DatabaseSync, version: number, path: string): void {
  if (version === LAYOUT_VERSION) return;
  if (version === 2) {
    database.exec('alter table entries add column packed blob');
  } else {
    if (version === 1) database.exec('alter table entries rename to entries_1');
    database.exec(LAYOUT);
    if (version === 1) takeOverFrom1(database, path);
  }
  database.exec(WAKE_TIMES);
  database.exec(`pragma user_version = ${LAYOUT_VERSION}`);
}

/** Version 1 had no scopes: each unit becomes one. */
function takeOverFrom1(database: DatabaseSync, path: string): void {
  const insert = database.prepare(INSERT);
  const rows = database.prepare('select * from entries_1 order by id');
  for (const row of rows.iterate()) {
    const { unit, seq, at, actor, definition_version: version, event, checksum } = row;
    const values = [unit, seq, at, actor, version, event] as (string | number)[];
    if (checksumOf(values) !== checksum)
      throw journalCorrupt(path, `entry ${String(seq)} of ${String(unit)} is not what was written`);
    const [scope = ''] = values;
    insert.run(scope, ...values, checksumOf([scope, ...values]), null);
  }
  database.exec('drop table entries_1');
}
