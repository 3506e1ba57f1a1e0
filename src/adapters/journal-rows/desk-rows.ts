// The desk in tables of a database: one row for each thing that waits, and one for each identity that may answer it.
//
//   who       contains           answered by
//   all       the body           any identity
//   listed    the body           the identities of the other rows
//   =NAME     no body            NAME
//
// A query reads one range of the index (kind, who, since, scope, id) for each kind and identity.

import type { DeskQuery, DeskRow, FoundDeskRow } from '../../actors/ports/desk.ts';
import { checkWakeTime } from './stored-rows.ts';

/** The columns of a row, apart from the scope. */
export type DeskColumns = readonly [
  id: string,
  who: string,
  kind: string,
  since: number,
  body: string | null,
];

const EVERYBODY = 'all';
const LISTED = 'listed';
const named = (name: string): string => `=${name}`;

export function deskColumns(rows: readonly DeskRow[]): readonly DeskColumns[] {
  return rows.flatMap(({ id, kind, since, answerableBy, body }): DeskColumns[] => [
    [id, answerableBy ? LISTED : EVERYBODY, kind, since, body],
    ...[...new Set(answerableBy)].map((name): DeskColumns => [id, named(name), kind, since, null]),
  ]);
}

/** @throws {JournalError} `INVALID_ENTRY` for rows that cannot be stored. */
export function checkDeskRows(scope: string, rows: readonly DeskRow[]): void {
  for (const { id, kind, since, answerableBy, body } of rows)
    for (const text of [scope, id, kind, body, ...(answerableBy ?? [])]) checkWakeTime(text, since);
}

/**
 * Returns the statement for a query, and its values.
 * @param table The name of the table, in SQL.
 * @param mark Returns the placeholder of a value, which counts from 1.
 */
export function deskQuery(
  { kinds, answerableBy, after, limit }: DeskQuery,
  table: string,
  mark: (number: number) => string,
): { readonly text: string; readonly values: (string | number)[] } {
  const { since = Number.MIN_SAFE_INTEGER, scope = '', id = '' } = after ?? {};
  const values: (string | number)[] = [since, scope, id, limit];
  const next = (value: string): string => mark(values.push(value));
  const whos = answerableBy ? [EVERYBODY, ...answerableBy.map(named)] : [EVERYBODY, LISTED];
  const ranges = kinds.flatMap((kind) =>
    whos.map(
      (who) => `select * from (select since, scope, id from ${table}
        where kind = ${next(kind)} and who = ${next(who)} and (since, scope, id) > (${mark(1)}, ${mark(2)}, ${mark(3)})
        order by since, scope, id limit ${mark(4)}) as r`,
    ),
  );
  const text = `
    select f.scope, f.id, f.since, d.body
    from (select * from (${ranges.join(' union ')}) as u order by since, scope, id limit ${mark(4)}) as f
    join ${table} d on d.scope = f.scope and d.id = f.id and d.who in ('${EVERYBODY}', '${LISTED}')
    order by f.since, f.scope, f.id`;
  return { text, values };
}

/** Reads one row of `deskQuery`. */
export function deskRowOf(row: Readonly<Record<string, unknown>>): FoundDeskRow {
  const { scope, id, since, body } = row;
  return { scope: String(scope), id: String(id), since: Number(since), body: String(body) };
}
