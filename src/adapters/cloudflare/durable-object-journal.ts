// The journal of a Durable Object: tables in the object's SQLite database, and the object's alarm as the clock for
// sleeping sessions.
//
// Invariants
//   DURABLE-JOURNAL-1. `append` is synchronous. The object's output gate holds back every response and outgoing request
//       until the write is durable. An event is therefore committed before its effects are released.
//   DURABLE-JOURNAL-2. The platform limits a row to 2 MB, so longer events are stored in pieces, in the same
//       transaction. Events are not packed, because workerd cannot decompress with a dictionary.
//   DURABLE-JOURNAL-3. The alarm is set to the earliest wake time. While a session is in memory, the alarm is set to
//       `WATCHDOG_MS` from now. If the object dies, the alarm restarts it.
//
// The journal does not need claims, because the platform runs an object in only one place.

import { z } from 'zod';
import type { Environment } from '../../actors/ports/environment.ts';
import { journalConflict } from '../../actors/ports/journal-error.ts';
import type { Journal, JournalEntry, JournalPosition } from '../../actors/ports/journal.ts';
import { AT_ONCE, type WakeTime, type WakeTimes } from '../../actors/ports/wake-times.ts';
import { checkUnshown, type ChecksOf } from '../../values/checks.ts';
import { checksumOf, checkWakeTime, entryOf, textOfEntry } from '../journal-rows/stored-rows.ts';
import { checkStorage, type DurableStorage } from './platform.ts';

/** DURABLE-JOURNAL-2. Leaves space in the row for the other columns. */
const PIECE_BYTES = 1_000_000;
/** DURABLE-JOURNAL-3 */
export const WATCHDOG_MS = 15_000;

const TABLES = `
  create table if not exists entries (
    id integer primary key autoincrement, scope text not null, unit text not null, seq integer not null,
    at real not null, actor text not null, definition_version integer not null, event text not null,
    checksum integer not null, unique (scope, unit, seq));
  create index if not exists entries_by_scope on entries (scope, id);
  create table if not exists pieces (
    entry integer not null, part integer not null, bytes blob not null, primary key (entry, part)) without rowid;
  create table if not exists wake_times (scope text primary key, at real not null);
  create index if not exists wake_times_in_order on wake_times (at, scope)`;

/** The options of `durableObjectJournal`. */
export interface DurableObjectJournalOptions {
  /** `ctx.storage` of an object with SQLite. */
  readonly storage: DurableStorage;
  /** Time and randomness; use `workersEnvironment()`. */
  readonly environment: Environment;
}

const optionsSchema = z.strictObject({
  storage: z.looseObject({}),
  environment: z.looseObject({ clock: z.looseObject({}) }),
} satisfies ChecksOf<DurableObjectJournalOptions>);

type Row = Record<string, ArrayBuffer | string | number | null>;

/**
 * Opens the journal of a Durable Object with SQLite. The journal uses the object's alarm. Call the pool's `start` in
 * `alarm()`, or let `hostSession` do so.
 * @throws {ConfigurationError} `INVALID_OPTION`, including when the storage has no SQLite
 */
export function durableObjectJournal(options: DurableObjectJournalOptions): Journal {
  checkUnshown('durableObjectJournal', optionsSchema, options);
  const { storage, environment } = options;
  checkStorage('durableObjectJournal', storage);
  const { clock } = environment;
  const ask = (query: string, ...values: (ArrayBuffer | string | number | null)[]): Row[] =>
    storage.sql.exec(query, ...values).toArray();
  ask(TABLES);

  const setAlarm = async (): Promise<void> => {
    const [next] = ask('select min(at) as at from wake_times');
    const at = next?.['at'] ?? null;
    if (at === null) await storage.deleteAlarm();
    else await storage.setAlarm(Number(at) <= AT_ONCE ? clock.now() + WATCHDOG_MS : Number(at));
  };
  const textOf = ({ id, event }: Row): string => {
    if (typeof event === 'string' && event !== '') return event;
    const pieces = ask('select bytes from pieces where entry = ? order by part', Number(id));
    const decoder = new TextDecoder();
    const text = pieces.map(({ bytes }) => decoder.decode(bytes as ArrayBuffer, { stream: true }));
    return text.join('') + decoder.decode();
  };
  const kept = (row: Row): JournalEntry =>
    entryOf({ ...row, event: textOf(row) }, 'The journal of this object');
  const idOf = ({ scope, unit, seq }: JournalPosition): number | null => {
    const [found] = ask(
      'select id from entries where scope = ? and unit = ? and seq = ?',
      scope,
      unit,
      seq,
    );
    return found ? Number(found['id']) : null;
  };
  const remove = (scope: string, before: number | null): void => {
    const until = before ?? Number.MAX_SAFE_INTEGER;
    ask(
      'delete from pieces where entry in (select id from entries where scope = ? and id < ?)',
      scope,
      until,
    );
    ask('delete from entries where scope = ? and id < ?', scope, until);
  };

  const wakeTimes: WakeTimes = {
    set(scope, at) {
      checkWakeTime(scope, at);
      if (at === null) ask('delete from wake_times where scope = ?', scope);
      else ask('insert or replace into wake_times values (?, ?)', scope, at);
      return setAlarm();
    },
    earliest({ after, limit }) {
      const found =
        after === undefined
          ? ask('select scope, at from wake_times order by at, scope limit ?', limit)
          : ask(
              'select scope, at from wake_times where (at, scope) > (?, ?) order by at, scope limit ?',
              after.at,
              after.scope,
              limit,
            );
      return found.map(({ scope, at }): WakeTime => ({ scope: nameIn(scope), at: Number(at) }));
    },
  };

  return {
    append(entry: JournalEntry) {
      const text = textOfEntry(entry);
      const { scope, unit, seq, at, actor, definitionVersion } = entry;
      const checksum = checksumOf([scope, unit, seq, at, actor, definitionVersion, text]);
      const [known] = ask(
        'select checksum from entries where scope = ? and unit = ? and seq = ?',
        scope,
        unit,
        seq,
      );
      if (known) {
        if (known['checksum'] === checksum) return;
        throw journalConflict('The journal of this object', entry);
      }
      // A character takes at most three bytes.
      const bytes = text.length * 3 > PIECE_BYTES ? new TextEncoder().encode(text) : null;
      const isWhole = bytes === null || bytes.length <= PIECE_BYTES;
      // DURABLE-JOURNAL-2
      storage.transactionSync(() => {
        const [row] = ask(
          `insert into entries (scope, unit, seq, at, actor, definition_version, event, checksum)
           values (?, ?, ?, ?, ?, ?, ?, ?) returning id`,
          scope,
          unit,
          seq,
          at,
          actor,
          definitionVersion,
          isWhole ? text : '',
          checksum,
        );
        if (isWhole) return;
        for (let part = 0; part * PIECE_BYTES < bytes.length; part += 1) {
          const piece = bytes.slice(part * PIECE_BYTES, (part + 1) * PIECE_BYTES);
          ask('insert into pieces values (?, ?, ?)', Number(row?.['id']), part, piece.buffer);
        }
      });
    },
    read({ scope, unit } = {}) {
      return ask(
        'select * from entries where scope = coalesce(?, scope) and unit = coalesce(?, unit) order by id',
        scope ?? null,
        unit ?? null,
      ).map(kept);
    },
    readAfter(position) {
      const id = idOf(position);
      if (id === null) return null;
      const { scope } = position;
      return ask('select * from entries where scope = ? and id > ? order by id', scope, id).map(
        kept,
      );
    },
    trim(position) {
      storage.transactionSync(() => {
        const id = idOf(position);
        if (id !== null) remove(position.scope, id);
      });
    },
    scopes: () =>
      ask(
        `select s.scope, s.entries, f.at as first_at, l.at as last_at
         from (select scope, count(*) as entries, min(id) as first, max(id) as last from entries group by scope) s
         join entries f on f.id = s.first join entries l on l.id = s.last order by s.first`,
      ).map((row) => ({
        scope: nameIn(row['scope']),
        entries: Number(row['entries']),
        firstAt: Number(row['first_at']),
        lastAt: Number(row['last_at']),
      })),
    async forget(scope) {
      storage.transactionSync(() => {
        remove(scope, null);
        ask('delete from wake_times where scope = ?', scope);
      });
      await setAlarm();
    },
    wakeTimes,
  };
}

/** Returns a column's text; empty if the column contains no text. */
function nameIn(value: Row[string] | undefined): string {
  return typeof value === 'string' ? value : '';
}
