// The appends of this process. The statement that writes an entry also checks the lease of its scope.
//
// Owns:     the entries that have been neither written nor refused yet.
// Does not: hold leases (`node-leases.ts`), or delete entries (`postgres-journal.ts` does, and also checks the token).
//
// Invariants
//   APPEND-QUEUE-1. An append resolves only after its statement has been committed.
//   APPEND-QUEUE-2. One statement runs at a time, so entries are written in append order.
//   APPEND-QUEUE-3. An append is refused (`FENCED`) if the lease of its scope has another token by then. The statement
//       locks the lease, so that a process that takes over the lease waits for the statement.
//   APPEND-QUEUE-4. Appending the same entry again is not an error. A different entry with the same number is refused,
//       without any effect on other entries.
//   APPEND-QUEUE-5. An entry that the server cannot store is refused permanently (`INVALID_ENTRY`), without any effect
//       on the rest of its statement. The statement is split in half and repeated until the entry is on its own.

import type { Scheduler } from '../../actors/ports/environment.ts';
import { JournalError, journalConflict } from '../../actors/ports/journal-error.ts';
import { messageOf } from '../../values/errors.ts';
import type { Row } from '../journal-rows/stored-rows.ts';
import { explained, isAboutData, queried, type Database } from './database.ts';
import { fenced, heldScopes, type Leases, type Token } from './node-leases.ts';

interface Waiting {
  readonly row: Row;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A row of the result. A row without a unit confirms that this process still holds the scope's lease. */
interface Said {
  readonly scope: string;
  readonly unit: string | null;
  readonly seq: number | null;
}

/** The maximum number of rows, and of event characters, per statement. Further entries go into the next statement. */
const MOST_ROWS = 1000;
const MOST_CHARACTERS = 4_000_000;

const write = (schema: string): string => `
  with ${heldScopes(schema)}, kept as (
    insert into ${schema}.entries
      (scope, unit, seq, at, actor, definition_version, event, checksum, packed, release)
    select e.scope, e.unit, e.seq, e.at, e.actor, e.version, e.event, e.checksum, e.packed, $12::int
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
 * Combines appends into one statement: those of one turn of the event loop, and those that arrive while a statement is
 * running. A commit has to wait for the server's disk, and all of these appends share one wait.
 */
export class AppendQueue {
  readonly #database: Database;
  readonly #leases: Leases;
  readonly #scheduler: Scheduler;
  #waiting: Waiting[] = [];
  #isBusy = false;
  /** The pending appends, including those of the running statement. */
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

  /** Resolves when all earlier appends have been written or refused, even if further ones arrive. */
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
      // Each byte becomes two hex digits.
      characters += row[6].length + 2 * (row[8]?.length ?? 0);
      return at === MOST_ROWS || (at > 0 && characters > MOST_CHARACTERS);
    });
    return this.#waiting.splice(0, tooMany === -1 ? this.#waiting.length : tooMany);
  }

  /** Never rejects, because each append of the batch has its own result. */
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
      const values = [[...tokens.keys()], [...tokens.values()], ...columns, this.#database.release];
      said = (await pool.query<Said>(write(schema), values)).rows;
    } catch (error) {
      if (isAboutData(error)) {
        await this.#isolate(ours, tokens, error);
        return;
      }
      // It is unknown whether the entries were written, so each unit retries.
      const reason = explained(error, this.#database.name);
      for (const { reject } of ours) reject(reason);
      return;
    }
    await this.#tell(ours, tokens, said);
  }

  /** APPEND-QUEUE-5. The statement has not written any entry. */
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
      // The first entry with this number was written, but the second was not.
      else if (kept.delete(keyOf(scope, unit, seq))) waiting.resolve();
      else await this.#compare(waiting);
    }
  }

  /** APPEND-QUEUE-4. The journal already has an entry with this number. */
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
