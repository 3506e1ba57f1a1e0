// Stores large job texts in a folder that both ends can access. Implements the claims of `packedEngine` on one machine
// or a shared disk.
//
// Invariants
//   FILE-CLAIMS-1. A text is stored completely or not at all, because it is written under a temporary name and then
//       renamed.
//   FILE-CLAIMS-2. No reference can lead to a file outside the folder.

import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { propertiesOf } from '../../values/json.ts';
import { JobError } from '../../actors/ports/jobs.ts';
import { check } from '../../values/checks.ts';

/** The options of `fileClaims`. */
export interface FileClaimsOptions {
  /** The folder, which is created if necessary. Relative paths are resolved from the working directory. */
  readonly directory: string;
}

/** A store of texts by reference. */
export interface FileClaims {
  /** Writes a text to a file, which replaces an earlier text of this reference. Rejects if the disk refuses. */
  keep(reference: string, text: string): Promise<void>;
  /** Returns the text; null if the folder has none for this reference. */
  read(reference: string): Promise<string | null>;
  /**
   * Deletes all texts whose reference starts with `prefix`. @throws {JobError} `FORGET_UNSURE` if the prefix is too long
   */
  forget(prefix: string): Promise<void>;
}

const optionsSchema = z.strictObject({
  directory: z
    .string()
    .min(1)
    .refine((path) => !path.includes('\0'), 'expected a path without \\0'),
});

/** The maximum length of a file name segment. File systems allow 255 bytes. A longer name is split into folders. */
const PART_CHARS = 200;
/** A reference that is even longer ends in a digest, because a path can have at most 4,096 bytes. */
const MAX_PARTS = 12;

/**
 * Stores large job texts in a folder, for `packedEngine` and `packedHandler`.
 * @throws {ConfigurationError} if an option is unknown or invalid
 */
export function fileClaims(options: FileClaimsOptions): FileClaims {
  const { directory } = check('fileClaims(options)', optionsSchema, options);
  const folder = resolve(directory);
  return {
    async keep(reference, text) {
      const path = join(folder, pathOf(reference));
      await mkdir(dirname(path), { recursive: true });
      const written = join(folder, `.${randomUUID()}`);
      await writeFile(written, text, { flush: true });
      await rename(written, path);
    },
    async read(reference) {
      try {
        return await readFile(join(folder, pathOf(reference)), 'utf8');
      } catch (error) {
        if (propertiesOf(error)['code'] === 'ENOENT') return null;
        throw error;
      }
    },
    async forget(prefix) {
      const parts = partsOf(encoded(prefix));
      if (parts.length > MAX_PARTS)
        throw new JobError(
          'FORGET_UNSURE',
          `The claims of so long a name cannot be told from others: expected at most ${PART_CHARS * MAX_PARTS} characters, as encodeURIComponent writes them`,
          { retryable: false },
        );
      const beginning = parts.pop() ?? '';
      const within = join(folder, ...parts.map(folderOf));
      for (const name of await readdir(within).catch(() => []))
        if (name.startsWith(beginning) && !name.startsWith('.'))
          await rm(join(within, name), { force: true, recursive: true });
    },
  };
}

/** FILE-CLAIMS-2. Folder names cannot be confused with file names. */
function pathOf(reference: string): string {
  const parts = partsOf(encoded(reference));
  if (parts.length > MAX_PARTS) {
    const digest = createHash('sha256').update(reference).digest('hex');
    parts.splice(MAX_PARTS, Infinity, `~${digest}`);
  }
  const last = parts.pop() ?? '';
  return join(...parts.map(folderOf), last);
}

const folderOf = (part: string): string => `${part}+`;

function partsOf(name: string): string[] {
  const parts: string[] = [];
  for (let at = 0; at < name.length; at += PART_CHARS) parts.push(name.slice(at, at + PART_CHARS));
  return parts;
}

/** An encoded name never starts with a dot (temporary files do) and never contains a plus sign (folders do). */
function encoded(reference: string): string {
  return encodeURIComponent(reference.toWellFormed()).replaceAll('.', '%2E').replaceAll('*', '%2A');
}
