// Memory in a file, for one process: small, readable, and safe against a crash.
//
// Owns:     the order of reads and writes. The file is read at the first use.
// Does not: share the file; a second process, or a second store on the same path,
//           would overwrite the changes of the first one.
//
// Invariants
//   FILE-MEMORY-1. A change is visible, and `remember` resolves, only after it is on the disk.
//   FILE-MEMORY-2. Changes are made in the order of the calls; those that wait are written together.
//   FILE-MEMORY-3. A change that cannot be written is undone and rejects; the ones after it go on.

import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { resolve } from 'node:path';
import {
  checkedMemoryLimits,
  rankFacts,
  withFact,
  withoutFact,
  type FactTable,
  type MemoryLimits,
  type MemoryStore,
} from '../../actors/ports/memory-store.ts';
import { readFacts, writeFacts } from './fact-file.ts';

export interface FileMemoryOptions {
  /** The path of the file; its folder is created if necessary. Relative to the working directory. */
  readonly path: string;
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
  /** Returns whether it changed anything. */
  readonly resolve: (changed: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Errors of the file (see `fact-file.ts`) reject the call that meets them; a later call tries again.
 * @throws {ConfigurationError} when a limit is not a positive whole number.
 */
export function fileMemory(options: FileMemoryOptions): MemoryStore {
  const given = check('fileMemory', optionsSchema, options);
  const path = resolve(given.path);
  const limits = checkedMemoryLimits(given.limits ?? {});
  let loading: Promise<void> | null = null;
  let table: FactTable = new Map();
  let waiting: Change[] = [];
  let isWriting = false;

  /** Reads the file once; again only after a failure. */
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
        // This change alone is refused (full, or not a fact); the others of the batch continue.
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
