// Combines the appends and other writes of one turn of the event loop into one transaction: a commit waits
// for the disk, so a hundred subagents share the wait.
//
// Invariants
//   APPEND-BATCH-1. A write resolves only after the transaction that holds it was committed.
//   APPEND-BATCH-2. A bad entry does not affect the others of its transaction.
//   APPEND-BATCH-3. An entry that is appended again is no error: the first attempt was kept, and its answer
//       was lost.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Scheduler } from '../../actors/ports/environment.ts';
import { journalConflict } from '../../actors/ports/journal-error.ts';
import type { Row } from '../journal-rows/stored-entry.ts';
import { explained, isConstraint } from './database.ts';
import { INSERT } from './layout.ts';

/** Runs within the transaction. Returns the error of this write, or null; throws an error of all. */
type Write = () => unknown;

interface Waiting {
  readonly write: Write;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const FIND = 'select checksum from entries where scope = ? and unit = ? and seq = ?';

export class AppendBatch {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #scheduler: Scheduler;
  readonly #insert: StatementSync;
  readonly #find: StatementSync;
  #waiting: Waiting[] = [];

  constructor(database: DatabaseSync, path: string, scheduler: Scheduler) {
    this.#database = database;
    this.#path = path;
    this.#scheduler = scheduler;
    this.#insert = database.prepare(INSERT);
    this.#find = database.prepare(FIND);
  }

  append(row: Row): Promise<void> {
    return this.add(() => this.#insertOnce(row));
  }

  add(write: Write): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, resolve, reject });
      if (this.#waiting.length === 1) this.#scheduler.schedule(() => this.flush(), 0);
    });
  }

  /** Writes the waiting entries now. */
  flush(): void {
    const batch = this.#waiting;
    if (batch.length === 0) return;
    this.#waiting = [];
    const outcomes: { readonly waiting: Waiting; readonly error: unknown }[] = [];
    try {
      this.#database.exec('begin immediate');
      for (const waiting of batch) outcomes.push({ waiting, error: waiting.write() });
      this.#database.exec('commit');
    } catch (error) {
      // The transaction kept no entry; the callers retry.
      if (this.#database.isTransaction) this.#database.exec('rollback');
      const reason = explained(error, this.#path);
      for (const { reject } of batch) reject(reason);
      return;
    }
    for (const { waiting, error } of outcomes)
      if (error === null) waiting.resolve();
      else waiting.reject(error);
  }

  /** APPEND-BATCH-2, APPEND-BATCH-3 */
  #insertOnce(row: Row): unknown {
    try {
      this.#insert.run(...row);
      return null;
    } catch (error) {
      const [scope, unit, seq, , , , , checksum] = row;
      if (!isConstraint(error)) throw error;
      if (this.#find.get(scope, unit, seq)?.['checksum'] === checksum) return null;
      return journalConflict(this.#path, { scope, unit, seq });
    }
  }
}
