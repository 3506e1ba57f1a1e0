// Memory in a file for one process. It is small, readable and crash-safe.
//
// Owns:     the order of reads and writes. The file is read when it is first used.
// Does not: share the file. A second process, or a second store on the same path, would overwrite the changes of the
//           first.
//
// Invariants
//   FILE-MEMORY-1. A change becomes visible, and `remember` resolves, only once the change is on disk.
//   FILE-MEMORY-2. Changes are applied in the order of the calls. Pending changes are written together.
//   FILE-MEMORY-3. If a change cannot be written, it is undone and its call rejects. Later changes continue.
//   FACT-FILE-1. To write a change, a complete new file is synced to disk and then renamed over the old file. After a
//       crash, the file has either the old or the new content.
//   FACT-FILE-2. A malformed file is never changed. It is rejected with an error that names the file and the line.

import { mkdir, open, readFile, rename, stat } from 'node:fs/promises';
import { resolve, dirname } from 'node:path';
import { z } from 'zod';
import { propertiesOf } from '../../values/json.ts';
import {
  checkedMemoryLimits,
  rankFacts,
  withFact,
  withoutFact,
  type FactTable,
  type MemoryLimits,
  type MemoryStore,
  memoryFactSchema,
  type MemoryFact,
} from '../../actors/ports/memory-store.ts';
import { check } from '../../values/checks.ts';
import { ConfigurationError, messageOf, ProviderError } from '../../values/errors.ts';

/** The options of `fileMemory`. */
export interface FileMemoryOptions {
  /** The file's path. Its folder is created if necessary. Relative paths are resolved from the working directory. */
  readonly path: string;
  /** The memory limits. @defaultValue the defaults of `MemoryLimits` */
  readonly limits?: Partial<MemoryLimits>;
}

const optionsSchema = z.strictObject({
  path: z
    .string()
    .min(1)
    .refine((path) => !path.includes('\0'), 'expected a path without \\0'),
  limits: z.custom<Partial<MemoryLimits>>().optional(),
});

interface Change {
  readonly apply: (table: FactTable) => FactTable;
  /** Resolves with whether the change had an effect. */
  readonly resolve: (changed: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Creates a memory store in a file. A file error rejects the current call. Later calls try again.
 * @throws {ConfigurationError} if a limit is not a positive whole number
 */
export function fileMemory(options: FileMemoryOptions): MemoryStore {
  const given = check('fileMemory', optionsSchema, options);
  const path = resolve(given.path);
  const limits = checkedMemoryLimits(given.limits ?? {});
  let loading: Promise<void> | null = null;
  let table: FactTable = new Map();
  let waiting: Change[] = [];
  let isWriting = false;

  /** Reads the file on the first call, and again only if that fails. */
  const load = async (): Promise<void> => {
    loading ??= (async () => {
      table = await readFacts(path);
    })();
    try {
      await loading;
    } catch (error) {
      loading = null;
      throw error;
    }
  };

  const writeAll = async (changes: readonly Change[]): Promise<void> => {
    let draft = table;
    const settle: (() => void)[] = [];
    for (const change of changes) {
      try {
        const next = change.apply(draft);
        const changed = next !== draft;
        draft = next;
        settle.push(() => change.resolve(changed));
      } catch (error) {
        // Only this change is rejected (the memory is full, or the value is not a fact). The rest of the batch
        // continues.
        change.reject(error);
      }
    }
    if (draft !== table) await writeFacts(path, draft);
    table = draft;
    for (const done of settle) done();
  };

  const drain = async (): Promise<void> => {
    if (isWriting) return;
    isWriting = true;
    while (waiting.length > 0) {
      const changes = waiting;
      waiting = [];
      try {
        await load();
        await writeAll(changes);
      } catch (error) {
        for (const change of changes) change.reject(error);
      }
    }
    isWriting = false;
  };

  const change = async (apply: Change['apply']): Promise<boolean> =>
    new Promise<boolean>((resolveChange, reject) => {
      waiting.push({ apply, resolve: resolveChange, reject });
      void drain();
    });

  return {
    async facts(query) {
      await load();
      return rankFacts(table, query);
    },
    async remember(fact) {
      await change((draft) => withFact(draft, fact, limits));
    },
    async forget({ scope, id }) {
      return change((draft) => withoutFact(draft, scope, id));
    },
  };
}

/**
 * Returns the facts in the file, or no facts if the file does not exist.
 * @throws {ConfigurationError} `MEMORY_FILE_CORRUPT` if a line is not a fact, {ProviderError} `MEMORY_FILE_UNREADABLE`
 *   if the file cannot be read
 */
async function readFacts(path: string): Promise<FactTable> {
  let content: string;
  try {
    // Reading a pipe or device would never end, and a write would replace it with a file.
    if (!(await stat(path)).isFile()) throw new Error('expected a regular file');
    content = await readFile(path, 'utf8');
  } catch (error) {
    if (propertiesOf(error)['code'] === 'ENOENT') return new Map();
    throw new ProviderError('MEMORY_FILE_UNREADABLE', `Cannot read ${path}: ${messageOf(error)}`, {
      cause: error,
      retryable: true,
    });
  }
  const table = new Map<string, Map<string, MemoryFact>>();
  for (const [index, line] of content.split('\n').entries()) {
    if (line.trim() === '') continue;
    const fact = readFact(line, `${path}, line ${index + 1}`);
    const facts = table.get(fact.scope) ?? new Map<string, MemoryFact>();
    table.set(fact.scope, facts.set(fact.id, fact));
  }
  return table;
}

/**
 * Replaces the content (FACT-FILE-1). Creates the folder if necessary.
 * @throws {ProviderError} `MEMORY_FILE_UNWRITABLE`; the old content then remains
 */
async function writeFacts(path: string, table: FactTable): Promise<void> {
  let content = '';
  for (const facts of table.values()) {
    for (const fact of facts.values()) content += `${JSON.stringify(fact)}\n`;
  }
  const folder = dirname(path);
  // Only one writer runs at a time, so one temporary name is enough. A file left over from a crash is overwritten.
  const draft = `${path}.tmp`;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = await open(draft, 'w', 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
    await syncFolder(folder);
  } catch (error) {
    throw new ProviderError('MEMORY_FILE_UNWRITABLE', `Cannot write ${path}: ${messageOf(error)}`, {
      cause: error,
      retryable: true,
    });
  }
}

function readFact(line: string, where: string): MemoryFact {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw corrupt(where, messageOf(error), error);
  }
  const parsed = memoryFactSchema.safeParse(value);
  if (!parsed.success) throw corrupt(where, z.prettifyError(parsed.error), parsed.error);
  return parsed.data;
}

function corrupt(where: string, problem: string, cause: unknown): ConfigurationError {
  return new ConfigurationError(
    'MEMORY_FILE_CORRUPT',
    `${where}: expected a fact as JSON, such as {"id":"f1","scope":"ann","text":"…","at":0}; ${problem}. The file was left as it is: repair or move it.`,
    { cause },
  );
}

/** Makes the rename itself durable if the system can sync a folder. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => null);
  if (!handle) return;
  try {
    await handle.sync().catch(() => {});
  } finally {
    await handle.close();
  }
}
