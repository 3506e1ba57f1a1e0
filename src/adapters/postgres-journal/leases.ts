// The leases that determine the writer of a scope: a lease expires after some time without a sign of life,
// and its token distinguishes the current holder from earlier ones.
//
// Owns:     the leases of this process, and the heartbeat that renews them.
// Does not: prevent writes: each writing statement checks the token (append-queue.ts, deletions.ts).
//
// Invariants
//   LEASES-1. A scope has at most one lease. Its token is larger than that of any earlier lease.
//   LEASES-2. A lease passes to another process only after it expired or was released. Only the clock of the
//        database counts.
//   LEASES-3. A lease that this process no longer holds is never renewed, and never released.
//   LEASES-4. Rows are locked in the order of their scopes, as in appends, so that no deadlock is possible.
//   LEASES-5. A claim of a scope that this process is releasing waits for the release: the claim may belong
//        to another user of this process, which the release must not affect.

import { hostname } from 'node:os';
import type { Environment } from '../../actors/ports/environment.ts';
import { JournalError } from '../../actors/ports/journal-error.ts';
import { CapacityError } from '../../values/errors.ts';
import { checkKnown, explained, LAYOUT_VERSION, type Database } from './database.ts';

/** A bigint as the database writes it. */
export type Token = string;

/** The heartbeats in the lifetime of a lease: two may be lost. */
const BEATS = 3;

/** Returns the error for a process that does not write the scope. */
export function fenced({ name }: Database, scope: string): JournalError {
  return new JournalError(
    'FENCED',
    `${name}: this process does not hold the claim of ${scope}: another process has claimed it, or none has`,
    { retryable: false },
  );
}

export class Leases {
  readonly #database: Database;
  readonly #environment: Environment;
  readonly #leaseMs: number;
  readonly #holder: string;
  readonly #held = new Map<string, Token>();
  /** The claims that the database has not answered. */
  readonly #claiming = new Set<Promise<void>>();
  /** The latest release of each scope, until it is done. */
  readonly #releasing = new Map<string, Promise<void>>();
  #stopBeat: (() => void) | null = null;

  constructor(database: Database, environment: Environment, leaseMs: number) {
    this.#database = database;
    this.#environment = environment;
    this.#leaseMs = leaseMs;
    this.#holder = `${environment.ids.next('process')} on ${hostname()}, process ${process.pid}`;
  }

  /** Returns the token of a scope that this process writes, as far as it knows. */
  tokenOf(scope: string): Token | undefined {
    return this.#held.get(scope);
  }

  /** Records that another process holds the lease now. */
  lost(scope: string, token: Token): void {
    if (this.#held.get(scope) === token) this.#held.delete(scope);
  }

  /** @throws {CapacityError} `SCOPE_IN_USE`. @throws {ConfigurationError} `JOURNAL_TOO_NEW` (POSTGRES-JOURNAL-DATABASE-1) */
  async claim(scope: string): Promise<void> {
    const claimed = this.#claim(scope);
    this.#claiming.add(claimed);
    try {
      await claimed;
    } finally {
      this.#claiming.delete(claimed);
    }
  }

  async #claim(scope: string): Promise<void> {
    const { schema } = this.#database;
    // LEASES-5
    await this.#releasing.get(scope)?.catch(() => {});
    // A lease of this process continues with its token, so that its running writes are not fenced.
    const rows = await this.#query<{ token: Token }>(
      `insert into ${schema}.leases as l (scope, token, holder, expires_at)
       select $1, nextval('${schema}.lease_tokens'), $2, clock_timestamp() + $3 * interval '1 millisecond'
       from ${schema}.layout where version <= $4
       on conflict (scope) do update set
         token = case when l.holder = $2 then l.token else excluded.token end,
         holder = excluded.holder,
         expires_at = clock_timestamp() + $3 * interval '1 millisecond'
       where l.holder = $2 or l.expires_at <= clock_timestamp()
       returning token`,
      [scope, this.#holder, this.#leaseMs, LAYOUT_VERSION],
    );
    const [lease] = rows;
    if (!lease) throw await this.#refusal(scope);
    this.#held.set(scope, lease.token);
    this.#beatLater();
  }

  /** @param decided Settles when the running writes under the lease are done. */
  async release(scope: string, decided: Promise<void> = Promise.resolve()): Promise<void> {
    const before = this.#releasing.get(scope) ?? Promise.resolve();
    const released = this.#release(scope, [decided, before]);
    this.#releasing.set(scope, released);
    try {
      await released;
    } finally {
      if (this.#releasing.get(scope) === released) this.#releasing.delete(scope);
    }
  }

  async #release(scope: string, first: readonly Promise<void>[]): Promise<void> {
    await Promise.allSettled(first);
    const token = this.#held.get(scope);
    if (token === undefined) return;
    this.#held.delete(scope);
    await this.#query(
      `delete from ${this.#database.schema}.leases where scope = $1 and token = $2`,
      [scope, token],
    );
  }

  /** Releases all leases, and claims none afterwards. A lease that cannot be released expires by itself. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#claiming);
    this.#stopBeat?.();
    this.#stopBeat = null;
    this.#held.clear();
    await this.#query(`delete from ${this.#database.schema}.leases where holder = $1`, [
      this.#holder,
    ]).catch(() => {});
  }

  async #refusal(scope: string): Promise<CapacityError> {
    const { schema, name } = this.#database;
    const [found] = await this.#query<{ version: number; holder: string | null }>(
      `select version, (select holder from ${schema}.leases where scope = $1) as holder from ${schema}.layout`,
      [scope],
    );
    checkKnown(name, found?.version ?? null);
    return new CapacityError(
      'SCOPE_IN_USE',
      `${scope} is in use by ${found?.holder ?? 'another process'}: another process can claim it when the holder has not renewed its lease for ${this.#leaseMs} ms`,
    );
  }

  #beatLater(): void {
    if (this.#stopBeat || this.#held.size === 0) return;
    this.#stopBeat = this.#environment.scheduler.schedule(
      () =>
        void this.#renew().finally(() => {
          if (this.#stopBeat === null) return;
          this.#stopBeat = null;
          this.#beatLater();
        }),
      this.#leaseMs / BEATS,
      { isBackground: true },
    );
  }

  async #renew(): Promise<void> {
    const { schema } = this.#database;
    const leases = [...this.#held];
    let renewed: readonly { readonly scope: string }[];
    try {
      renewed = await this.#query(
        `with mine as (
           select l.scope from ${schema}.leases l
           join unnest($1::text[], $2::bigint[]) as held (scope, token)
             on l.scope = held.scope and l.token = held.token
           order by l.scope for no key update of l
         )
         update ${schema}.leases l set expires_at = clock_timestamp() + $3 * interval '1 millisecond'
         from mine where l.scope = mine.scope returning l.scope`,
        [leases.map(([scope]) => scope), leases.map(([, token]) => token), this.#leaseMs],
      );
    } catch {
      // The next heartbeat retries; a lease that expires meanwhile is fenced if another process takes it.
      return;
    }
    const ours = new Set(renewed.map(({ scope }) => scope));
    for (const [scope, token] of leases) if (!ours.has(scope)) this.lost(scope, token);
  }

  async #query<Found extends object>(text: string, values: unknown[]): Promise<readonly Found[]> {
    try {
      return (await this.#database.pool.query<Found>(text, values)).rows;
    } catch (error) {
      throw explained(error, this.#database.name);
    }
  }
}
