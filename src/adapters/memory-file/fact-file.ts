// The file format: one fact a line, as JSON. Reads it whole, writes it whole.
//
// Invariants
//   FACT-FILE-1. A write replaces the file by a rename, after the new content reached the disk: a
//       crash at any instant leaves the old content or the new, never a part of one.
//   FACT-FILE-2. A malformed file is refused, with its name and line, and never changed.

import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import {
  memoryFactSchema,
  type FactTable,
  type MemoryFact,
} from '../../actors/ports/memory-store.ts';
import { ConfigurationError, messageOf, ProviderError } from '../../values/errors.ts';

/**
 * Reads the facts; none where there is no file.
 * @throws {ConfigurationError} `MEMORY_FILE_CORRUPT` when a line is not a fact,
 * {ProviderError} `MEMORY_FILE_UNREADABLE` when the file cannot be read.
 */
export async function readFacts(path: string): Promise<FactTable> {
  let content: string;
  try {
    content = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Map();
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
 * @throws {ProviderError} `MEMORY_FILE_UNWRITABLE`; the old content is still there then.
 */
export async function writeFacts(path: string, table: FactTable): Promise<void> {
  let content = '';
  for (const facts of table.values()) {
    for (const fact of facts.values()) content += `${JSON.stringify(fact)}\n`;
  }
  const folder = dirname(path);
  // One writer at a time, so one temporary name is enough; a remainder of a crash is overwritten.
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

/** Makes the rename itself durable, where the system lets a folder be opened. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => null);
  if (!handle) return;
  try {
    await handle.sync().catch(() => {});
  } finally {
    await handle.close();
  }
}
