// The queries of a journal in a file. They write nothing.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type {
  JournalEntry,
  JournalQuery,
  ScopeSummary,
  Journal,
  JournalPosition,
} from '../../actors/ports/journal.ts';
import { entryOf } from '../journal-rows/stored-entry.ts';
import type { WakeTimes } from '../../actors/ports/wake-times.ts';

// The inner query needs only the index.
const SCOPES = `
  select s.scope, s.entries, f.at as firstAt, l.at as lastAt
  from (select scope, count(*) as entries, min(id) as first, max(id) as last from entries group by scope) s
  join entries f on f.id = s.first join entries l on l.id = s.last
  order by s.first`;

export class JournalReader {
  readonly #database: DatabaseSync;
  readonly #path: string;
  /** Statements by their text: preparing one takes longer than finding the entries of a session. */
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, path: string) {
    this.#database = database;
    this.#path = path;
  }

  scopes(): readonly ScopeSummary[] {
    return this.#statement(SCOPES)
      .all()
      .map(({ scope, entries, firstAt, lastAt }) => ({
        scope: String(scope),
        entries: Number(entries),
        firstAt: Number(firstAt),
        lastAt: Number(lastAt),
      }));
  }

  /** @throws {JournalError} `JOURNAL_CORRUPT` */
  entries(query: JournalQuery = {}): readonly JournalEntry[] {
    const { where, values } = filter(query);
    // The index finds the ids, which are sorted; then the table is read from front to back.
    const rows = this.#statement(
      `select * from entries where id in (select id from entries ${where}) order by id`,
    );
    return rows.all(...values).map((row) => entryOf(row, this.#path));
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

function filter({ scope, unit }: JournalQuery): { where: string; values: readonly string[] } {
  const conditions = Object.entries({ scope, unit }).filter(
    (condition): condition is [string, string] => condition[1] !== undefined,
  );
  if (conditions.length === 0) return { where: '', values: [] };
  const where = conditions.map(([column]) => `${column} = ?`).join(' and ');
  return { where: `where ${where}`, values: conditions.map(([, value]) => value) };
}

export interface SqliteJournal extends Journal {
  append(entry: JournalEntry): Promise<void>;
  read(query?: JournalQuery): readonly JournalEntry[];
  scopes(): readonly ScopeSummary[];
  /**
   * Also makes the file smaller. Deletes the oldest entries first, in small parts, so that it does not delay
   * sound that is playing. After an interruption the next call trims the rest.
   */
  trim(entry: JournalPosition): Promise<void>;
  /** Also makes the file smaller, by up to 8 MB at a time; further free pages are reused. */
  forget(scope: string): void;
  /** Times set in one turn of the event loop share a commit, with each other and with its appends. */
  readonly wakeTimes: WakeTimes;
  /**
   * Writes the waiting entries and closes the file. Later calls throw or reject with `JOURNAL_CLOSED`. Safe
   * to call twice.
   */
  close(): void;
}
