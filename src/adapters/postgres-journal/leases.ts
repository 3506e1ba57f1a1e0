// Who writes a scope: a lease, which is over when nobody has shown signs of life for so long,
// and whose token tells whoever had it before from whoever has it now.
//
// Owns:     the leases of this process, and the heartbeat that renews them.
// Does not: keep anybody from writing: each statement that does looks at the token (append-queue.ts, deletions.ts).
//
// Invariants
//   LEASES-1. A scope has at most one lease. Its token is larger than that of any lease before.
//   LEASES-2. A lease passes to another process only if it is over, or was released. What time it is
//        the database says, and nobody else.
//   LEASES-3. What is not ours any more is never renewed, and never released.
//   LEASES-4. Rows are locked in the order of their scopes, as appends do, so that none waits for another one in a circle.
//   LEASES-5. Whoever claims a scope here while it is being released claims it afterwards: it may be somebody else
//        of this process, whom that release is not for.

import { hostname } from 'node:os';
import type { Environment } from '../../actors/ports/environment.ts';
import { JournalError } from '../../actors/ports/journal-error.ts';
import { CapacityError } from '../../values/errors.ts';
import { checkKnown, explained, LAYOUT_VERSION, type Database } from './database.ts';

/** A bigint, as the database wrote it. */
export type Token = string;

/** Beats in the life of a lease: two may be lost. */
const BEATS = 3;

/** What whoever does not write a scope is told that would. */
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
  /** Claims that the database has not answered. */
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

  /** The token of a scope that this process writes, as far as it knows. */
  tokenOf(scope: string): Token | undefined {
    return this.#held.get(scope);
  }

  /** It has turned out that somebody else has it now. */
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
    // One of our own goes on under its token: what is being written under it is not fenced.
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

  /** `decided`: what is being written under it. */
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

  /** Gives everything back; nothing is claimed after it. A lease that cannot be given back ends by itself. */
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
      // The next beat tries again; a lease that is over meanwhile is fenced, if somebody takes it.
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
