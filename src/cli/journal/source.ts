// The journal that a command names: a SQLite file, a recording (JSON Lines), or the URL of a PostgreSQL database.
//
//   SOURCE-1. Commands that only read change nothing. A file is opened read-only. A database without journal tables, or
//       with tables of another version, is refused and left unchanged.
//   SOURCE-3. A source that cannot be read (no permission, a pipe, a loop of links) is refused. The error contains the
//       source's name and the system's reason.
//   SOURCE-2. The displayed name of a source contains neither the password nor the query of its URL.

import { readFileSync, statSync, closeSync, openSync, readSync } from 'node:fs';
import { propertiesOf } from '../../values/json.ts';
import type { Recording } from '../../entries/replay.ts';
import { parseRecording } from '../../entries/replay.ts';
import type { Journal } from '../../index.ts';
import { nodeEnvironment } from '../../adapters/node/index.ts';
import type { SqliteJournal } from '../../adapters/sqlite-journal/index.ts';
import { codeOf, ConfigurationError, isA, messageOf, OffstageError } from '../../values/errors.ts';

export interface Source {
  readonly journal: Journal & Required<Pick<Journal, 'scopes'>>;
  /** Null if the source is a journal. */
  readonly recording: Recording | null;
  /** The displayed name. */
  readonly name: string;
  close(): void | Promise<void>;
}

export interface SourceOptions {
  /** @defaultValue false */
  readonly isWritten?: boolean;
  /** The PostgreSQL schema that contains the tables. @defaultValue the default of `postgresJournal` */
  readonly schema?: string | undefined;
  /** The release of the app whose sessions are written. @defaultValue the default of `postgresJournal` */
  readonly release?: number | undefined;
}

/** The first bytes of every SQLite database. Source: sqlite.org/fileformat.html. */
const SQLITE = 'SQLite format 3\0';

/**
 * Opens a source. The journal is read-only unless `isWritten` is set.
 * @throws {ConfigurationError} `NOT_A_JOURNAL`; if the content is invalid, the reader's error.
 */
export async function openSource(place: string, options: SourceOptions = {}): Promise<Source> {
  if (/^postgres(?:ql)?:/i.test(place)) return openPostgres(place, options);
  if (/^https?:\/\//i.test(place))
    throw notAJournal(
      place,
      'it is the address of a page: open it in a browser, or see `offstage sessions --url`',
    );
  const begins = readable(place, () => {
    const stat = statSync(place);
    if (stat.isDirectory()) throw notAJournal(place, 'it is a folder');
    // The first bytes of a pipe can be read only once.
    if (!stat.isFile()) throw notAJournal(place, 'it is no file, but a pipe or a device');
    return beginningOf(place);
  });
  if (begins === SQLITE) {
    const journal = await openJournal(place, { readOnly: options.isWritten !== true });
    return { journal, recording: null, name: place, close: () => journal.close() };
  }
  if (!begins.startsWith('{'))
    throw notAJournal(place, begins === '' ? 'it is empty' : 'it is something else');
  const recording = parseRecording(readFileSync(place, 'utf8'), place);
  return { journal: journalOf(recording), recording, name: place, close() {} };
}

async function openPostgres(address: string, { schema, release }: SourceOptions): Promise<Source> {
  // Imported on demand because the package `pg` is optional.
  const { checkTables, postgresJournal } =
    await import('../../adapters/postgres-journal/postgres-journal.ts');
  const name = address.replace(/^([^/]*\/\/).*@/s, '$1').replace(/[?#].*/s, '');
  try {
    await checkTables(address, schema);
    const journal = await postgresJournal({
      connection: address,
      environment: nodeEnvironment(),
      ...(schema !== undefined && { schema }),
      ...(release !== undefined && { release }),
    });
    return { journal, recording: null, name, close: () => journal.close() };
  } catch (error) {
    // The journal's own errors omit the URL, but a command may name several journals.
    throw new OffstageError(codeOf(error, 'CANNOT_OPEN'), `${name}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** Returns a read-only journal that contains the one session of a recording. */
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

/** Opens the journal in a file. Creates the file if it is missing. */
export async function openJournal(path: string, { readOnly = false } = {}): Promise<SqliteJournal> {
  // Imported on demand: Node.js warns that its SQLite is experimental.
  const { sqliteJournal } = await import('../../adapters/sqlite-journal/index.ts');
  return sqliteJournal({ path, environment: nodeEnvironment(), readOnly });
}

/** SOURCE-3 */
function readable<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const { code = '' } = propertiesOf(error);
    if (isA(error, OffstageError)) throw error;
    if (path === '') throw notAJournal(path, 'the path is empty: a variable may not be set');
    const isAbsent = code === 'ENOENT' || code === 'ENOTDIR';
    throw notAJournal(
      path,
      isAbsent ? 'there is no such file' : `it cannot be read (${String(code)})`,
    );
  }
}

/** Returns whether the error concerns the command's arguments rather than the journal or the session. */
export function isWrongCall(error: OffstageError): boolean {
  return WRONG_CALLS.has(codeOf(error));
}

const WRONG_CALLS: ReadonlySet<string> = new Set([
  'NOT_A_JOURNAL',
  'INVALID_ANSWER',
  'INVALID_ARGUMENT',
  'INVALID_OPTION',
  'INVALID_URL',
  'UNKNOWN_SESSION',
  'READ_ONLY',
  'CANNOT_WRITE',
  'SESSION_EXISTS',
]);

/** Returns the error for an unknown session. The error lists the known sessions. */
export function notInSource(
  { name }: Pick<Source, 'name'>,
  scopes: readonly { readonly scope: string }[],
  wanted: string,
): string {
  const some = scopes.slice(0, 10).map(({ scope }) => scope);
  const all = [...some, ...(scopes.length > some.length ? ['…'] : [])].join(', ');
  return `Expected --session to be a session of ${name} (${all || 'it has none'}), got \`${wanted}\``;
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
