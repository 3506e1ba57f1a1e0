// The times at which sessions that no process has in memory must be loaded, for all processes.
//
// Owns:     the rows of `wake_times`, and the order in which this process writes them.
// Does not: check the writer of a scope: a time only says that some process must load the session, which
//           claims it first.
//
// Invariants
//   POSTGRES-JOURNAL-WAKE-TIMES-1. `set` resolves only after the statement that holds it was committed; the
//       latest value counts.
//   POSTGRES-JOURNAL-WAKE-TIMES-2. The times of one turn, and those that arrive while others are written, are
//        one statement, so that a mass suspension does not delay appends and heartbeats.
//   POSTGRES-JOURNAL-WAKE-TIMES-3. Each statement locks rows in the order of their scopes, so that processes
//        cannot deadlock.

import type { Scheduler } from '../../actors/ports/environment.ts';
import type { WakeTime, WakeTimes } from '../../actors/ports/wake-times.ts';
import { BEFORE_ALL, checkWakeTime } from '../journal-rows/stored-wake-time.ts';
import { explained, type Database } from './database.ts';

const upsert = (schema: string): string => `
  insert into ${schema}.wake_times (scope, at)
  select said.scope, said.at from unnest($1::text[], $2::float8[]) as said (scope, at)
  order by said.scope collate "C"
  on conflict (scope) do update set at = excluded.at`;

const remove = (schema: string): string => `
  with gone as materialized (
    select scope from ${schema}.wake_times where scope = any($1::text[]) order by scope for update
  )
  delete from ${schema}.wake_times w using gone where w.scope = gone.scope`;

// The index gives them in their order, and each of these is looked up: many may be awake elsewhere, few are due.
const earliest = (schema: string): string => `
  select scope, at from ${schema}.wake_times w
  where (at, scope) > ($1::float8, $2::text)
    and not ($4 and exists (
      select 1 from ${schema}.leases l where l.scope = w.scope and l.expires_at > clock_timestamp()))
  order by at, scope limit $3`;

export class WakeTimeQueue implements WakeTimes {
  readonly #database: Database;
  readonly #scheduler: Scheduler;
  #waiting = new Map<string, number | null>();
  /** The waiting times; null if there are none. */
  #next: Promise<void> | null = null;
  /** The latest write that was begun, or waits. */
  #latest: Promise<void> = Promise.resolve();

  constructor(database: Database, scheduler: Scheduler) {
    this.#database = database;
    this.#scheduler = scheduler;
  }

  /** @throws {JournalError} `INVALID_ENTRY` for a scope or a time that cannot be stored. */
  set(scope: string, at: number | null): Promise<void> {
    checkWakeTime(scope, at);
    this.#waiting.set(scope, at);
    this.#next ??= this.#latest = this.#writeAfter(this.#latest);
    return this.#next;
  }

  async earliest(query: {
    readonly after?: WakeTime;
    readonly limit: number;
    readonly exceptClaimed?: boolean;
  }): Promise<readonly WakeTime[]> {
    const { after = BEFORE_ALL, limit, exceptClaimed = false } = query;
    const { pool, schema, name } = this.#database;
    try {
      const values = [after.at, after.scope, limit, exceptClaimed];
      return (await pool.query<WakeTime>(earliest(schema), values)).rows;
    } catch (error) {
      throw explained(error, name);
    }
  }

  /** Resolves when all earlier times are kept or refused. */
  async decided(): Promise<void> {
    await Promise.allSettled([this.#latest]);
  }

  /** POSTGRES-JOURNAL-WAKE-TIMES-2 */
  async #writeAfter(before: Promise<void>): Promise<void> {
    await Promise.allSettled([
      before,
      new Promise<void>((resolve) => this.#scheduler.schedule(resolve, 0)),
    ]);
    const times = this.#waiting;
    this.#waiting = new Map();
    this.#next = null;
    await this.#write(times);
  }

  async #write(times: ReadonlyMap<string, number | null>): Promise<void> {
    const { pool, schema, name } = this.#database;
    const due = [...times].filter(([, at]) => at !== null);
    const never = [...times].filter(([, at]) => at === null).map(([scope]) => scope);
    try {
      if (due.length > 0)
        await pool.query(upsert(schema), [due.map(([scope]) => scope), due.map(([, at]) => at)]);
      if (never.length > 0) await pool.query(remove(schema), [never]);
    } catch (error) {
      throw explained(error, name);
    }
  }
}
