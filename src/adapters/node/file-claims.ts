// Large texts of jobs in a folder that both ends reach: the claims of `packedJobs` on one machine, or on a shared disk.
//
// Invariants
//   FILE-CLAIMS-1. A text is there whole, or not at all: it is written beside its name, and then renamed.
//   FILE-CLAIMS-2. No reference names a file outside the folder.

import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { check } from '../../values/checks.ts';

export interface FileClaimsOptions {
  /** The folder; created if necessary. Relative to the working directory. */
  readonly directory: string;
}

/** Keeps texts by reference. */
export interface FileClaims {
  keep(reference: string, text: string): Promise<void>;
  read(reference: string): Promise<string | null>;
  forget(prefix: string): Promise<void>;
}

const optionsSchema = z.strictObject({
  directory: z
    .string()
    .min(1)
    .refine((path) => !path.includes('\0'), 'expected a path without \\0'),
});

/** Names of files may have 255 bytes. */
const MAX_NAME = 200;
const KEPT_OF_LONG = 120;

/**
 * Keeps large texts of jobs in a folder, for `packedJobs` and `packedHands`.
 * @throws {ConfigurationError} for options that are unknown or wrong.
 */
export function fileClaims(options: FileClaimsOptions): FileClaims {
  const { directory } = check('fileClaims(options)', optionsSchema, options);
  const folder = resolve(directory);
  return {
    async keep(reference, text) {
      await mkdir(folder, { recursive: true });
      const written = join(folder, `.${randomUUID()}`);
      await writeFile(written, text, { flush: true });
      await rename(written, join(folder, nameOf(reference)));
    },
    async read(reference) {
      try {
        return await readFile(join(folder, nameOf(reference)), 'utf8');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
        throw error;
      }
    },
    async forget(prefix) {
      const beginning = encoded(prefix);
      // The names of two long references may begin alike: those stay.
      if (beginning.length > KEPT_OF_LONG) return;
      for (const name of await readdir(folder).catch(() => []))
        if (name.startsWith(beginning)) await rm(join(folder, name), { force: true });
    },
  };
}

/** FILE-CLAIMS-2 */
function nameOf(reference: string): string {
  const name = encoded(reference);
  if (name.length <= MAX_NAME) return name;
  const digest = createHash('sha256').update(reference).digest('hex');
  return `${name.slice(0, KEPT_OF_LONG)}~${digest}`;
}

/** A name never begins with a dot, as those that are being written do. */
function encoded(reference: string): string {
  return encodeURIComponent(reference.toWellFormed()).replaceAll('.', '%2E').replaceAll('*', '%2A');
}
