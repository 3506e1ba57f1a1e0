// The leases that determine the writer of a scope: a lease expires after some time without a sign of life,
// and its token distinguishes the current holder from earlier ones.
//
// Owns:     the leases of this process, and the heartbeat that renews them.
// Does not: delete entries (`postgres-journal.ts`, whose statements check the token, too).
//
// Invariants
//   LEASES-1. A scope has at most one lease. Its token is larger than that of any earlier lease.
//   LEASES-2. A lease passes to another process only after it expired or was released. Only the clock of the
//        database counts.
//   LEASES-3. A lease that this process no longer holds is never renewed, and never released.
//   LEASES-4. Rows are locked in the order of their scopes, as in appends, so that no deadlock is possible.
//   LEASES-5. A claim of a scope that this process is releasing waits for the release: the claim may belong
//        to another user of this process, which the release must not affect.
//   APPEND-QUEUE-1. An append resolves only after the statement that holds it was committed.
//   APPEND-QUEUE-2. One statement runs at a time, so that entries are kept in the order of their appends.
//   APPEND-QUEUE-3. An append for a scope whose lease has another token by then is refused (`FENCED`): the
//        statement locks the lease, and a process that takes it over waits until the statement is done.
//   APPEND-QUEUE-4. An entry that is appended again is no error. Another entry with its number is refused,
//       without affecting the others.
//   APPEND-QUEUE-5. An entry that the server cannot store is refused permanently (`INVALID_ENTRY`), without
//        affecting the others of its statement: that statement is repeated in halves, until the entry is
//        alone.

import { hostname } from 'node:os';
import type { Environment, Scheduler } from '../../actors/ports/environment.ts';
import { JournalError, journalConflict } from '../../actors/ports/journal-error.ts';
import { messageOf, CapacityError } from '../../values/errors.ts';
import type { Row } from '../journal-rows/stored-rows.ts';
import {
  LAYOUT_VERSION,
  checkKnown,
  explained,
  isAboutData,
  queried,
  type Database,
} from './database.ts';

interface Waiting {
  readonly row: Row;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A row of the answer; without a unit it says that this process still holds the lease of the scope. */
interface Said {
  readonly scope: string;
  readonly unit: string | null;
  readonly seq: number | null;
}

/** The limits of one statement; further entries go into the next one. Characters are those of events. */
const MOST_ROWS = 1000;
const MOST_CHARACTERS = 4_000_000;

const write = (schema: string): string => `
  with held as materialized (
    select l.scope from ${schema}.leases l
    join unnest($1::text[], $2::bigint[]) as mine (scope, token)
      on l.scope = mine.scope and l.token = mine.token
    order by l.scope for share of l
  ), kept as (
    insert into ${schema}.entries
      (scope, unit, seq, at, actor, definition_version, event, checksum, packed)
    select e.scope, e.unit, e.seq, e.at, e.actor, e.version, e.event, e.checksum, e.packed
    from unnest($3::text[], $4::text[], $5::int[], $6::float8[], $7::text[], $8::int[], $9::text[], $10::bigint[], $11::bytea[])
      with ordinality as e (scope, unit, seq, at, actor, version, event, checksum, packed, number)
    where e.scope in (select scope from held)
    order by e.number
    on conflict (scope, unit, seq) do nothing
    returning scope, unit, seq
  )
  select scope, null as unit, null as seq from held
  union all select scope, unit, seq from kept`;

const find = (schema: string): string =>
  `select checksum from ${schema}.entries where scope = $1 and unit = $2 and seq = $3`;

/**
 * Combines appends of one turn of the event loop, and those that arrive while others are under way, into one
 * statement: a commit waits for the server's disk, and all of them share the wait.
 */
export class AppendQueue {
  readonly #database: Database;
  readonly #leases: Leases;
  readonly #scheduler: Scheduler;
  #waiting: Waiting[] = [];
  #isBusy = false;
  /** The appends that are neither kept nor refused yet, including those of the statement under way. */
  readonly #undecided = new Set<Promise<void>>();

  constructor(database: Database, leases: Leases, scheduler: Scheduler) {
    this.#database = database;
    this.#leases = leases;
    this.#scheduler = scheduler;
  }

  append(row: Row): Promise<void> {
    const appended = new Promise<void>((resolve, reject) => {
      this.#waiting.push({ row, resolve, reject });
    });
    this.#undecided.add(appended);
    const decided = (): void => void this.#undecided.delete(appended);
    appended.then(decided, decided);
    if (!this.#isBusy) {
      this.#isBusy = true;
      this.#scheduler.schedule(() => void this.#flush(), 0);
    }
    return appended;
  }

  /** Resolves when all earlier appends are kept or refused, whatever is appended meanwhile. */
  async decided(): Promise<void> {
    await Promise.allSettled(this.#undecided);
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) await this.#write(this.#nextBatch());
    this.#isBusy = false;
  }

  #nextBatch(): readonly Waiting[] {
    let characters = 0;
    const tooMany = this.#waiting.findIndex(({ row }, at) => {
      // Each byte is written as two digits.
      characters += row[6].length + 2 * (row[8]?.length ?? 0);
      return at === MOST_ROWS || (at > 0 && characters > MOST_CHARACTERS);
    });
    return this.#waiting.splice(0, tooMany === -1 ? this.#waiting.length : tooMany);
  }

  /** Never rejects: each append of the batch gets its own result. */
  async #write(batch: readonly Waiting[]): Promise<void> {
    const tokens = new Map<string, Token>();
    const ours: Waiting[] = [];
    for (const waiting of batch) {
      const [scope] = waiting.row;
      const token = this.#leases.tokenOf(scope);
      if (token === undefined) {
        waiting.reject(fenced(this.#database, scope));
      } else {
        tokens.set(scope, token);
        ours.push(waiting);
      }
    }
    if (ours.length === 0) return;
    await this.#keep(ours, tokens);
  }

  async #keep(ours: readonly Waiting[], tokens: ReadonlyMap<string, Token>): Promise<void> {
    const { pool, schema } = this.#database;
    const columns = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((at) => ours.map(({ row }) => row[at]));
    let said: readonly Said[];
    try {
      const values = [[...tokens.keys()], [...tokens.values()], ...columns];
      said = (await pool.query<Said>(write(schema), values)).rows;
    } catch (error) {
      if (isAboutData(error)) {
        await this.#isolate(ours, tokens, error);
        return;
      }
      // It is unknown whether the entries were kept; each unit retries.
      const reason = explained(error, this.#database.name);
      for (const { reject } of ours) reject(reason);
      return;
    }
    await this.#tell(ours, tokens, said);
  }

  /** APPEND-QUEUE-5. The statement kept no entry. */
  async #isolate(
    ours: readonly Waiting[],
    tokens: ReadonlyMap<string, Token>,
    error: unknown,
  ): Promise<void> {
    const [first] = ours;
    if (!first || ours.length === 1) {
      const [scope, unit, seq] = first?.row ?? [];
      first?.reject(
        new JournalError(
          'INVALID_ENTRY',
          `${this.#database.name}: entry ${String(seq)} of ${String(unit)} in ${String(scope)} cannot be kept: ${messageOf(error)}`,
          { retryable: false, cause: error },
        ),
      );
      return;
    }
    const middle = Math.ceil(ours.length / 2);
    await this.#keep(ours.slice(0, middle), tokens);
    await this.#keep(ours.slice(middle), tokens);
  }

  async #tell(
    batch: readonly Waiting[],
    tokens: ReadonlyMap<string, Token>,
    said: readonly Said[],
  ): Promise<void> {
    const held = new Set<string>();
    const kept = new Set<string>();
    for (const { scope, unit, seq } of said)
      if (unit === null || seq === null) held.add(scope);
      else kept.add(keyOf(scope, unit, seq));
    for (const [scope, token] of tokens) if (!held.has(scope)) this.#leases.lost(scope, token);
    for (const waiting of batch) {
      const [scope, unit, seq] = waiting.row;
      if (!held.has(scope)) waiting.reject(fenced(this.#database, scope));
      // The first entry of its number was kept, the second one was not.
      else if (kept.delete(keyOf(scope, unit, seq))) waiting.resolve();
      else await this.#compare(waiting);
    }
  }

  /** APPEND-QUEUE-4. There is already an entry with this number. */
  async #compare({ row, resolve, reject }: Waiting): Promise<void> {
    const { schema, name } = this.#database;
    const [scope, unit, seq] = row;
    try {
      const key = [scope, unit, seq];
      const { rows } = await queried<{ checksum: string }>(this.#database, find(schema), key);
      if (Number(rows[0]?.checksum) === row[7]) resolve();
      else reject(journalConflict(name, { scope, unit, seq }));
    } catch (error) {
      reject(error);
    }
  }
}

function keyOf(scope: string, unit: string, seq: number): string {
  return JSON.stringify([scope, unit, seq]);
}

/** A bigint as the database writes it. */
type Token = string;

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
    return (await queried<Found>(this.#database, text, values)).rows;
  }
}
