// The tables of the file, in their present version, and how older files become it.
//
// Invariants
//   LAYOUT-1. What is written anew of an older file is checked by its own checksums before. A file that
//       is damaged stays in its old version, untouched.

import type { DatabaseSync } from 'node:sqlite';
import { journalCorrupt } from '../../actors/ports/journal-error.ts';
import { checksumOf } from '../journal-rows/stored-entry.ts';

/** Kept in `pragma user_version`. 1: without scopes. 2: nothing was packed, and no wake times. */
export const LAYOUT_VERSION = 3;

// `at` is whole as a rule, and then stored as an integer. The one index serves all that is asked, since it
// holds the id as well, as each index does; another one would cost each append a quarter more.
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

// All that is asked of it is in its index.
const WAKE_TIMES = `
  create table wake_times (scope text primary key, at real not null) strict, without rowid;
  create index wake_times_in_order on wake_times (at, scope);
`;

export const INSERT = `insert into entries
  (scope, unit, seq, at, actor, definition_version, event, checksum, packed) values (?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Makes the present layout of what is there, within a transaction. `version` 0: nothing is. */
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

/** Scopes were not known: each unit is one. */
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
