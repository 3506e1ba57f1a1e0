// Opens the file of `offstage replay`: a SQLite journal or a recording, by its first bytes.

import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { nodeEnvironment } from '../../adapters/node/index.ts';
import type { SqliteJournal } from '../../adapters/sqlite-journal/index.ts';
import { ConfigurationError } from '../../values/errors.ts';
import { parseRecording, type Recording } from '../../entries/replay.ts';
import { type Journal } from '../../index.ts';

/** The first bytes of every SQLite database. Source: sqlite.org/fileformat.html. */
const SQLITE = 'SQLite format 3\0';

export interface Source {
  readonly journal: Journal & Required<Pick<Journal, 'scopes'>>;
  /** Null for a journal. */
  readonly recording: Recording | null;
  close(): void;
}

/**
 * Opens a source; read-only, unless `isWritten`.
 * @throws {ConfigurationError} `NOT_A_JOURNAL`, and the errors of both readers for content that they cannot read.
 */
export async function openSource(path: string, isWritten: boolean): Promise<Source> {
  if (!existsSync(path)) throw notAJournal(path, 'there is no such file');
  if (statSync(path).isDirectory()) throw notAJournal(path, 'it is a folder');
  const begins = beginningOf(path);
  if (begins === SQLITE) {
    const journal = await openJournal(path, { readOnly: !isWritten });
    return { journal, recording: null, close: () => journal.close() };
  }
  if (!begins.startsWith('{'))
    throw notAJournal(path, begins === '' ? 'it is empty' : 'it is something else');
  const recording = parseRecording(readFileSync(path, 'utf8'), path);
  return { journal: journalOf(recording), recording, close() {} };
}

/** Makes a read-only journal with one session of a recording. */
function journalOf({ scope, steps }: Recording): Source['journal'] {
  const entries = steps.map(({ entry }) => entry);
  const [firstAt = 0, lastAt = 0] = [entries[0]?.at, entries.at(-1)?.at];
  return {
    append() {
      throw new ConfigurationError('READ_ONLY', 'A recording is read-only');
    },
    read: (query = {}) => (query.scope === undefined || query.scope === scope ? entries : []),
    scopes: () => [{ scope, entries: entries.length, firstAt, lastAt }],
  };
}

/** Opens a journal in a file; creates it where there is none. */
export async function openJournal(path: string, { readOnly = false } = {}): Promise<SqliteJournal> {
  // Imported late: Node prints a warning that its SQLite is experimental.
  const { sqliteJournal } = await import('../../adapters/sqlite-journal/index.ts');
  return sqliteJournal({ path, environment: nodeEnvironment(), readOnly });
}

function beginningOf(path: string): string {
  const bytes = Buffer.alloc(SQLITE.length);
  const file = openSync(path, 'r');
  try {
    return bytes.toString('latin1', 0, readSync(file, bytes));
  } finally {
    closeSync(file);
  }
}

function notAJournal(path: string, why: string): ConfigurationError {
  return new ConfigurationError(
    'NOT_A_JOURNAL',
    `Expected a SQLite journal or a recording (JSON Lines), got \`${path}\`: ${why}`,
  );
}
