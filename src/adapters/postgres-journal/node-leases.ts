// The leases that determine which process may write a scope. A lease belongs to a node (a process with a journal) and
// is valid while the node is alive. A single row with a heartbeat shows that the node is alive, for all of its scopes.
//
// Owns:     this process's row in `nodes`, its heartbeat and its leases.
// Does not: decide when to take over a lease (the claiming process decides this).
//
// Invariants
//   LEASES-1. A scope has at most one lease. Its token is larger than the token of any earlier lease.
//   LEASES-2. A lease passes to another process only after its node has expired or has released it. Only the database's
//       clock determines this.
//   LEASES-3. A lost lease is never renewed or released. After a node has expired, it asks the database which leases it
//       still holds.
//   LEASES-4. Rows are locked in the order of the scopes, as for appends. A node's row is locked before its leases, so
//       that statements cannot deadlock.
//   LEASES-5. If this process is releasing a scope, a claim of the scope waits for the release. The claim may come from
//       another caller in this process and must not be released.
//   LEASES-6. A scope whose last entry is from a later release is not claimed, because this process may be unable to
//             read it.
//   LEASES-7. If the response to a claim or release is lost, this node may hold a lease without recording it. A later
//       heartbeat releases such a lease, which would otherwise last as long as the node.
//   LEASES-8. The clock of the database is compared with the clock of this process when the journal is opened and on
//       each heartbeat. A difference within the round-trip time is ignored.

import { hostname } from 'node:os';
import type { Environment } from '../../actors/ports/environment.ts';
import { JournalError, journalCorrupt, scopeInUse } from '../../actors/ports/journal-error.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { LAYOUT_VERSION, checkKnown, queried, type Database } from './database.ts';

/** A bigint in PostgreSQL's notation. */
export type Token = string;

/** The minimum clock difference that is reported, because the round trip to the database can cause smaller ones. */
const LEAST_OFFSET_MS = 100;

/** The number of heartbeats within the lifetime of a node, two of which may be lost. */
const BEATS = 3;

/**
 * The scopes ($1) whose leases still have these tokens ($2), as the first part of a statement that writes their rows.
 * It locks the leases, so that a process that takes one over waits for the statement.
 */
export const heldScopes = (schema: string): string => `held as materialized (
    select l.scope from ${schema}.leases l
    join unnest($1::text[], $2::bigint[]) as mine (scope, token)
      on l.scope = mine.scope and l.token = mine.token
    order by l.scope for share of l
  )`;

/** Returns the error for a process that does not own the scope. */
export function fenced({ name }: Database, scope: string): JournalError {
  return new JournalError(
    'FENCED',
    `${name}: this process does not hold the claim of ${scope}: another process has claimed it, or none has`,
    { retryable: false },
  );
}

/** The time of the database, in milliseconds since 1970. */
const TIME = `extract(epoch from clock_timestamp())::float8 * 1000 as now`;

interface Time {
  readonly now: number;
}

/** LEASES-3. Parameters: node, holder, URL, milliseconds. Exported for a test that limits the number of written rows. */
export const heartbeat = (schema: string): string => `
  with before as materialized (
    select expires_at > clock_timestamp() as was_alive from ${schema}.nodes where id = $1
  ), beat as (
    insert into ${schema}.nodes as n (id, holder, address, expires_at)
    values ($1, $2, $3, clock_timestamp() + $4 * interval '1 millisecond')
    on conflict (id) do update set expires_at = excluded.expires_at
    returning id
  )
  select coalesce((select was_alive from before), false) as was_alive, ${TIME} from beat`;

/** Deletes expired nodes without leases. */
const sweep = (schema: string): string => `
  delete from ${schema}.nodes n where expires_at < clock_timestamp() - interval '1 hour'
    and not exists (select 1 from ${schema}.leases l where l.node = n.id)
    and not exists (select 1 from ${schema}.wake_times w where w.node = n.id)`;

/** The release of the app that wrote the scope's last entry. */
const lastRelease = (schema: string): string =>
  `coalesce((select release from ${schema}.entries where scope = $1 order by id desc limit 1), 0)`;

// A lease of this process keeps its token, so that running writes are not refused.
const claim = (schema: string): string => `
  insert into ${schema}.leases as l (scope, token, node)
  select $1, nextval('${schema}.lease_tokens'), n.id
  from ${schema}.nodes n, ${schema}.layout y
  where n.id = $2 and n.expires_at > clock_timestamp() and y.version <= $3
    and ${lastRelease(schema)} <= $4
  on conflict (scope) do update set node = l.node where l.node = excluded.node
  returning token`;

// Reads nodes and leases in one query, to explain why a claim was refused.
const state = (schema: string): string => `
  select y.version, ${lastRelease(schema)} as release,
    coalesce((select expires_at > clock_timestamp() from ${schema}.nodes where id = $2), false) as is_alive,
    l.token, l.node, coalesce(n.holder, l.holder) as holder, n.address,
    case when l.node is null then l.expires_at <= clock_timestamp()
         else coalesce(n.expires_at <= clock_timestamp(), true) end as is_over
  from ${schema}.layout y
  left join ${schema}.leases l on l.scope = $1
  left join ${schema}.nodes n on n.id = l.node`;

// Locking the node's row waits for a running heartbeat, whose result is then visible.
const takeOver = (schema: string): string => `
  with dead as materialized (
    select id from ${schema}.nodes where id = $4 and expires_at <= clock_timestamp() for update
  )
  update ${schema}.leases set token = nextval('${schema}.lease_tokens'), node = $2, holder = null, expires_at = null
  where scope = $1 and token = $3
    and case when node is null then expires_at <= clock_timestamp()
             else exists (select 1 from dead)
               or not exists (select 1 from ${schema}.nodes where id = $4) end
  returning token`;

interface State {
  readonly version: number;
  readonly release: number;
  readonly is_alive: boolean;
  readonly token: Token | null;
  readonly node: string | null;
  readonly holder: string | null;
  readonly address: string | null;
  readonly is_over: boolean | null;
}

export interface LeaseOptions {
  readonly leaseMs: number;
  /** The URL of this process, for other processes. */
  readonly address: string | null;
}

export class Leases {
  readonly #database: Database;
  readonly #environment: Environment;
  readonly #options: LeaseOptions;
  readonly #holder: string;
  readonly #held = new Map<string, Token>();
  /** The claims that have not been answered, with their scopes; null for the claim of due sessions. */
  readonly #claiming = new Map<Promise<unknown>, string | null>();
  /** The running release of each scope. */
  readonly #releasing = new Map<string, Promise<void>>();
  #node: Promise<string> | null = null;
  /** LEASES-7 */
  #isInDoubt = false;
  #stopBeat: (() => void) | null = null;
  #clockOffsetMs = 0;

  constructor(database: Database, environment: Environment, options: LeaseOptions) {
    this.#database = database;
    this.#environment = environment;
    this.#options = options;
    this.#holder = `${environment.ids.next('process')} on ${hostname()}, process ${process.pid}`;
  }

  /** The database clock minus this process's clock, in milliseconds. */
  get clockOffsetMs(): number {
    return this.#clockOffsetMs;
  }

  /** LEASES-8 */
  async compareClocks(): Promise<void> {
    await this.#timed<Time>(`select ${TIME}`, []);
  }

  /** Runs a query that returns the database's time (LEASES-8). */
  async #timed<Found extends Time>(text: string, values: unknown[]): Promise<Found | undefined> {
    const { clock } = this.#environment;
    const sentAt = clock.now();
    const [found] = await this.#query<Found>(text, values);
    const roundTripMs = clock.now() - sentAt;
    // A simulated clock has no relation to the wall time.
    if (!found || !clock.wall) return found;
    const offsetMs = Math.round(found.now - (sentAt + roundTripMs / 2));
    if (Math.abs(offsetMs - this.#clockOffsetMs) > Math.max(roundTripMs, LEAST_OFFSET_MS))
      this.#clockOffsetMs = offsetMs;
    return found;
  }

  /** Returns the token of a scope that this process considers its own. */
  tokenOf(scope: string): Token | undefined {
    return this.#held.get(scope);
  }

  /** Records the loss of the lease. */
  lost(scope: string, token: Token): void {
    if (this.#held.get(scope) === token) this.#held.delete(scope);
  }

  /**
   * @throws {CapacityError} `SCOPE_IN_USE`. @throws {ConfigurationError} `JOURNAL_TOO_NEW`
   *   (POSTGRES-JOURNAL-DATABASE-1, LEASES-6)
   */
  claim(scope: string): Promise<void> {
    return this.#tracked(this.#claim(scope), scope);
  }

  /**
   * Runs a statement that grants leases to this node, and records the leases. The statement receives the node's id. A
   * node that has expired is renewed first.
   */
  async claimMany(
    run: (node: string) => Promise<readonly { readonly scope: string; readonly token: Token }[]>,
  ): Promise<readonly string[]> {
    return this.#tracked(this.#claimMany(run), null);
  }

  /** This process's node; null before the first claim. */
  async node(): Promise<string | null> {
    return this.#node;
  }

  /**
   * @param first Settles when the running writes under the lease have ended.
   * @param prepare Runs immediately before the release. If it fails, the lease is not released.
   */
  async release(
    scope: string,
    first: Promise<void> = Promise.resolve(),
    prepare: () => Promise<void> = () => Promise.resolve(),
  ): Promise<void> {
    const before = this.#releasing.get(scope) ?? Promise.resolve();
    const released = this.#release(scope, [first, before], prepare);
    this.#releasing.set(scope, released);
    try {
      await released;
    } finally {
      if (this.#releasing.get(scope) === released) this.#releasing.delete(scope);
    }
  }

  /** Releases all leases and refuses later claims. A lease that cannot be released expires together with the node. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#claiming.keys());
    this.#stopBeat?.();
    this.#stopBeat = null;
    this.#held.clear();
    const node = await this.#node?.catch(() => null);
    if (node === null || node === undefined) return;
    const { schema } = this.#database;
    await this.#query(
      `with asleep as (update ${schema}.wake_times set node = null where node = $1),
         free as (delete from ${schema}.leases where node = $1)
       delete from ${schema}.nodes where id = $1`,
      [node],
    ).catch(() => {});
  }

  async #tracked<T>(claimed: Promise<T>, scope: string | null): Promise<T> {
    this.#claiming.set(claimed, scope);
    try {
      return await claimed;
    } catch (error) {
      if (error instanceof JournalError) this.#doubt();
      throw error;
    } finally {
      this.#claiming.delete(claimed);
    }
  }

  async #claim(scope: string): Promise<void> {
    const { schema, name, release } = this.#database;
    // LEASES-5
    await this.#releasing.get(scope)?.catch(() => {});
    const node = await this.#joined();
    for (;;) {
      const values = [scope, node, LAYOUT_VERSION, release];
      const [lease] = await this.#query<{ token: Token }>(claim(schema), values);
      if (lease) return this.#holds(scope, lease.token);
      const [found] = await this.#query<State>(state(schema), [scope, node]);
      if (!found) throw journalCorrupt(name, 'its table `layout` is empty');
      checkKnown(name, found.version);
      if (found.token !== null && found.is_over !== true && found.node !== node)
        throw this.#refusal(scope, found);
      // LEASES-6
      if (found.release > release)
        throw new ConfigurationError(
          'JOURNAL_TOO_NEW',
          `${name}: ${scope} was written by release ${found.release} of the app; this process has release ${release}`,
        );
      if (!found.is_alive) await this.#beat(node);
      // The scope has no lease, because it has been released since then.
      else if (found.token !== null && found.is_over === true) {
        const taking = [scope, node, found.token, found.node];
        const [taken] = await this.#query<{ token: Token }>(takeOver(schema), taking);
        if (taken) return this.#holds(scope, taken.token);
      }
    }
  }

  async #claimMany(
    run: (node: string) => Promise<readonly { readonly scope: string; readonly token: Token }[]>,
  ): Promise<readonly string[]> {
    const node = await this.#joined();
    if (this.#stopBeat === null) await this.#beat(node);
    const taken = await run(node);
    for (const { scope, token } of taken) this.#holds(scope, token);
    return taken.map(({ scope }) => scope);
  }

  #holds(scope: string, token: Token): void {
    this.#held.set(scope, token);
    this.#beatLater();
  }

  #refusal(scope: string, { holder, address }: State): Error {
    return scopeInUse(
      scope,
      { name: holder ?? 'another process', address },
      `another process can claim it when the holder has given no sign of life for ${this.#options.leaseMs} ms`,
    );
  }

  /** Resolves with the node of this process, which exists from the first claim on. */
  #joined(): Promise<string> {
    if (this.#node) return this.#node;
    const joining = this.#join();
    this.#node = joining;
    // The next claim tries again.
    joining.catch(() => (this.#node = null));
    return joining;
  }

  async #join(): Promise<string> {
    const { schema } = this.#database;
    const [next] = await this.#query<{ id: string }>(
      `select nextval('${schema}.lease_tokens')::text as id`,
      [],
    );
    const id = next?.id ?? '';
    await this.#beat(id);
    await this.#query(sweep(schema), []);
    return id;
  }

  /** LEASES-3 */
  async #beat(node: string): Promise<void> {
    const { schema } = this.#database;
    const { address, leaseMs } = this.#options;
    const leases = [...this.#held];
    const values = [node, this.#holder, address, leaseMs];
    const beat = await this.#timed<Time & { was_alive: boolean }>(heartbeat(schema), values);
    const isSure = beat?.was_alive === true || leases.length === 0;
    if (isSure && !this.#isInDoubt) return;
    const claiming = new Set(this.#claiming.values());
    const kept = await this.#query<{ scope: string; token: Token }>(
      `select scope, token from ${schema}.leases where node = $1`,
      [node],
    );
    const ours = new Map(kept.map(({ scope, token }) => [scope, token]));
    for (const [scope, token] of leases) if (ours.get(scope) !== token) this.lost(scope, token);
    if (!this.#isInDoubt || claiming.has(null)) return;
    this.#isInDoubt = false;
    for (const scope of this.#claiming.values()) claiming.add(scope);
    for (const { scope, token } of kept) {
      if (this.#held.has(scope) || claiming.has(scope) || this.#releasing.has(scope)) continue;
      this.#held.set(scope, token);
      // If the release fails, the next heartbeat tries again.
      this.release(scope).catch(() => {});
    }
  }

  async #release(
    scope: string,
    first: readonly Promise<void>[],
    prepare: () => Promise<void>,
  ): Promise<void> {
    await Promise.allSettled(first);
    const token = this.#held.get(scope);
    if (token === undefined) return;
    await prepare();
    this.lost(scope, token);
    try {
      await this.#query(
        `delete from ${this.#database.schema}.leases where scope = $1 and token = $2`,
        [scope, token],
      );
    } catch (error) {
      this.#doubt();
      throw error;
    }
  }

  #doubt(): void {
    this.#isInDoubt = true;
    this.#beatLater();
  }

  #beatLater(): void {
    if (this.#stopBeat || (this.#held.size === 0 && !this.#isInDoubt)) return;
    this.#stopBeat = this.#environment.scheduler.schedule(
      () =>
        void this.#joined()
          .then((node) => this.#beat(node))
          // The next heartbeat retries. If the node expires before then and another node takes over a lease, writes
          // under the old lease are refused.
          .catch(() => {})
          .finally(() => {
            if (this.#stopBeat === null) return;
            this.#stopBeat = null;
            this.#beatLater();
          }),
      this.#options.leaseMs / BEATS,
      { isBackground: true },
    );
  }

  async #query<Found extends object>(text: string, values: unknown[]): Promise<readonly Found[]> {
    return (await queried<Found>(this.#database, text, values)).rows;
  }
}
