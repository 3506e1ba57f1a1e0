// Finds the programs of a PostgreSQL server on this machine.

import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Folders that contain one folder for each version. */
const PARENTS = ['/usr/lib/postgresql', '/opt/homebrew/opt', '/usr/local/opt'];

/**
 * Returns the folder of `initdb` and `postgres`, or undefined if there is none. `POSTGRES_BIN` may specify the folder.
 */
export function findPostgres(): string | undefined {
  const named = process.env['POSTGRES_BIN'];
  if (named) return named;
  const versions = PARENTS.filter((parent) => existsSync(parent)).flatMap((parent) =>
    readdirSync(parent)
      .filter((name) => /^(?:postgresql@)?\d+$/.test(name))
      .toSorted((a, b) => Number(b.replace(/\D/g, '')) - Number(a.replace(/\D/g, '')))
      .map((version) => join(parent, version, 'bin')),
  );
  const inPath = (process.env['PATH'] ?? '').split(delimiter);
  return [...versions, ...inPath].find((folder) =>
    ['initdb', 'postgres'].every((program) => existsSync(join(folder, program))),
  );
}
