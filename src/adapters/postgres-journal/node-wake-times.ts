// The wake times of sleeping sessions, shared by all processes.
//
// Owns:     the rows of `wake_times`, and the order of this process's writes to them.
// Does not: check which process writes a scope. A wake time only means that some process must load the session, and
//           this process claims the session first.
//
// Invariants
//   POSTGRES-JOURNAL-WAKE-TIMES-1. `set` resolves only after its statement has been committed. The latest value wins.
//   POSTGRES-JOURNAL-WAKE-TIMES-2. The times that are set in one turn or during a write share one statement. Suspending
//       many sessions together therefore does not delay appends and heartbeats.
//   POSTGRES-JOURNAL-WAKE-TIMES-3. Each statement locks rows in the order of the scopes, so that processes cannot
//       deadlock.
//   POSTGRES-JOURNAL-WAKE-TIMES-4. The row of a session in memory (`AT_ONCE`) contains the session's node. A search
//       reads such a row only if its node has expired, so the number of these rows does not affect the cost of the
//       search.
//   POSTGRES-JOURNAL-WAKE-TIMES-5. If several processes search at the same time, each of them receives a different
//       session, because a search skips rows that another process has locked.

import type { Scheduler } from '../../actors/ports/environment.ts';
import { AT_ONCE, type WakeTime, type WakeTimes } from '../../actors/ports/wake-times.ts';
import { BEFORE_ALL, checkWakeTime } from '../journal-rows/stored-rows.ts';
import { LAYOUT_VERSION, queried, type Database } from './database.ts';
import type { Leases, Token } from './node-leases.ts';

const upsert = (schema: string): string => `
  insert into ${schema}.wake_times (scope, at, node, release)
  select said.scope, said.at, said.node, $4::int
  from unnest($1::text[], $2::float8[], $3::bigint[]) as said (scope, at, node)
  order by said.scope collate "C"
  on conflict (scope) do update set at = excluded.at, node = excluded.node, release = excluded.release`;

const remove = (schema: string): string => `
  with gone as materialized (
    select scope from ${schema}.wake_times where scope = any($1::text[]) order by scope for update
  )
  delete from ${schema}.wake_times w using gone where w.scope = gone.scope`;

/**
 * Whether no live process holds the lease of `w`'s scope. A scalar subquery looks up only the few rows found, unlike a
 * join with all leases.
 */
const isFree = (schema: string): string => `
  not coalesce((
    select case when l.node is null then l.expires_at > clock_timestamp()
                else coalesce(n.expires_at > clock_timestamp(), true) end
    from ${schema}.leases l left join ${schema}.nodes n on n.id = l.node where l.scope = w.scope), false)`;

/** Parameters: time, scope, limit. All sessions in memory have the same wake time. */
const all = (schema: string): string => `
  select scope, at from (
    (select scope, at from ${schema}.wake_times
      where node is null and (at, scope) > ($1::float8, $2::text) order by at, scope limit $3)
    union all
    (select scope, at from ${schema}.wake_times
      where node is not null and $1::float8 <= ${AT_ONCE} and (at, scope) > ($1::float8, $2::text)
      order by at, scope limit $3)
  ) w order by at, scope limit $3`;

/** Parameters: time, scope, limit, release. Exported for a test that limits the rows it reads. */
export const unattended = (schema: string): string => `
  select scope, at from (
    (select scope, at from ${schema}.wake_times w
      where node is null and (at, scope) > ($1::float8, $2::text) and release <= $4 and ${isFree(schema)}
      order by at, scope limit $3)
    union all
    (select scope, at from ${schema}.wake_times w
      where node = any(array(select id from ${schema}.nodes where expires_at <= clock_timestamp()))
        and (at, scope) > ($1::float8, $2::text) and release <= $4 and ${isFree(schema)}
      order by at, scope limit $3)
  ) w order by at, scope limit $3`;

/** Parameters: node, layout, release, now, limit, exceptions. Exported for a test that limits the rows it reads. */
export const take = (schema: string): string => `
  with dead as materialized (
    select array(select id from ${schema}.nodes where expires_at <= clock_timestamp()) as ids
  ), orphans as materialized (
    select scope from ${schema}.wake_times w
    where node = any((select ids from dead)::bigint[])
      and release <= $3 and scope <> all($6::text[]) and ${isFree(schema)}
    limit $5 for update skip locked
  ), due as materialized (
    select scope from ${schema}.wake_times w
    where node is null and at <= $4
      and release <= $3 and scope <> all($6::text[]) and ${isFree(schema)}
    order by at, scope limit $5 for update skip locked
  ), found as materialized (
    (select scope, 0 as turn from orphans union all select scope, 1 from due) order by turn limit $5
  ), taken as (
    insert into ${schema}.leases as l (scope, token, node)
    select f.scope, nextval('${schema}.lease_tokens'), n.id
    from found f, ${schema}.nodes n, ${schema}.layout y
    where n.id = $1 and n.expires_at > clock_timestamp() and y.version <= $2
    order by f.scope
    on conflict (scope) do update
      set token = excluded.token, node = excluded.node, holder = null, expires_at = null
      where case when l.node is null then l.expires_at <= clock_timestamp()
                 else l.node = any((select ids from dead)::bigint[]) end
    returning scope, token
  )
  update ${schema}.wake_times w set node = $1, at = ${AT_ONCE} from taken t where t.scope = w.scope
  returning t.scope, t.token`;

/** A journal's wake times, including those of the sessions that this process has in memory. */
interface NodeWakeTimes extends Required<WakeTimes> {
  /** Records that a session has left the memory of this process, so that another process may load it. */
  asleep(scope: string): Promise<void>;
  /** Resolves when all earlier times have been written or refused. */
  decided(): Promise<void>;
}

export function nodeWakeTimes(
  database: Database,
  leases: Leases,
  scheduler: Scheduler,
): NodeWakeTimes {
  let waiting = new Map<string, number | null>();
  /** The promise of the pending write; null if no times are pending. */
  let next: Promise<void> | null = null;
  /** The promise of the latest write, whether pending or running. */
  let latest: Promise<void> = Promise.resolve();
  /** The scopes whose rows contain this node. */
  const inMemory = new Set<string>();

  async function decided(): Promise<void> {
    await Promise.allSettled([latest]);
  }

  /** POSTGRES-JOURNAL-WAKE-TIMES-2 */
  async function writeAfter(before: Promise<void>): Promise<void> {
    await Promise.allSettled([
      before,
      new Promise<void>((resolve) => scheduler.schedule(resolve, 0)),
    ]);
    const times = waiting;
    waiting = new Map();
    next = null;
    await write(times);
  }

  async function write(times: ReadonlyMap<string, number | null>): Promise<void> {
    const { schema, release } = database;
    const due = [...times].filter(([, at]) => at !== null);
    const never = [...times].filter(([, at]) => at === null).map(([scope]) => scope);
    if (due.length > 0) {
      const node = await leases.node();
      // POSTGRES-JOURNAL-WAKE-TIMES-4
      const nodes = due.map(([scope, at]) => {
        const isHere = at === AT_ONCE && leases.tokenOf(scope) !== undefined;
        if (isHere) inMemory.add(scope);
        else inMemory.delete(scope);
        return isHere ? node : null;
      });
      const values = [due.map(([scope]) => scope), due.map(([, at]) => at), nodes, release];
      await queried(database, upsert(schema), values);
    }
    if (never.length === 0) return;
    for (const scope of never) inMemory.delete(scope);
    await queried(database, remove(schema), [never]);
  }

  return {
    /** @throws {JournalError} `INVALID_ENTRY` for a scope or a time that cannot be stored. */
    set(scope, at) {
      checkWakeTime(scope, at);
      waiting.set(scope, at);
      next ??= latest = writeAfter(latest);
      return next;
    },
    async earliest(query) {
      const { after = BEFORE_ALL, limit, exceptClaimed = false } = query;
      const { schema, release } = database;
      const values = [after.at, after.scope, limit];
      const found = exceptClaimed
        ? queried<WakeTime>(database, unattended(schema), [...values, release])
        : queried<WakeTime>(database, all(schema), values);
      return (await found).rows;
    },
    /** POSTGRES-JOURNAL-WAKE-TIMES-5 */
    take(query) {
      const { now, limit, except } = query;
      const { schema, release } = database;
      return leases.claimMany(async (node) => {
        const values = [node, LAYOUT_VERSION, release, now, limit, except];
        const { rows } = await queried<{ scope: string; token: Token }>(
          database,
          take(schema),
          values,
        );
        for (const { scope } of rows) inMemory.add(scope);
        return rows;
      });
    },
    async asleep(scope) {
      await decided();
      if (!inMemory.delete(scope)) return;
      try {
        await queried(
          database,
          `update ${database.schema}.wake_times set node = null where scope = $1 and node = $2`,
          [scope, await leases.node()],
        );
      } catch (error) {
        inMemory.add(scope);
        throw error;
      }
    },
    decided,
  };
}
