// The times at which sessions that no process has in memory must be loaded, beside their entries.
//
// Owns:     the rows of `wake_times`. Forgetting a scope deletes its own (sqlite-journal.ts).
// Does not: begin a transaction: the times of a turn share the one of its appends (append-batch.ts).
//
// Invariants
//   SQLITE-JOURNAL-WAKE-TIMES-1. A time is as durable as an entry once `set` resolves; the latest value of a
//       turn counts.
//   SQLITE-JOURNAL-WAKE-TIMES-2. A query sees all earlier `set` calls, even those of the same turn.

import type { DatabaseSync } from 'node:sqlite';
import type { WakeTime, WakeTimes } from '../../actors/ports/wake-times.ts';
import { BEFORE_ALL, checkWakeTime } from '../journal-rows/stored-wake-time.ts';
import type { AppendBatch } from './append-batch.ts';

export interface WakeTimesPorts {
  readonly database: DatabaseSync;
  readonly batch: AppendBatch;
  /** @throws {JournalError} `JOURNAL_CLOSED` */
  checkOpen(): void;
  /** Runs `work` after all earlier writes. */
  after<T>(work: () => T): T;
}

const SET = `insert into wake_times (scope, at) values (?, ?)
  on conflict (scope) do update set at = excluded.at`;

export const REMOVE = 'delete from wake_times where scope = ?';

// One range of the index.
export const EARLIEST = `select scope, at from wake_times where (at, scope) > (?, ?) order by at, scope limit ?`;

/** Reads one row of `EARLIEST`. */
export function wakeTimeOf({ scope, at }: Readonly<Record<string, unknown>>): WakeTime {
  return { scope: String(scope), at: Number(at) };
}

export function wakeTimesIn(ports: WakeTimesPorts): WakeTimes {
  const { database, batch } = ports;
  const set = database.prepare(SET);
  const remove = database.prepare(REMOVE);
  const earliest = database.prepare(EARLIEST);
  return {
    async set(scope, at) {
      ports.checkOpen();
      checkWakeTime(scope, at);
      await batch.add(() => {
        if (at === null) remove.run(scope);
        else set.run(scope, at);
        return null;
      });
    },
    earliest: ({ after = BEFORE_ALL, limit }) =>
      ports.after(() => earliest.all(after.at, after.scope, limit).map(wakeTimeOf)),
  };
}
