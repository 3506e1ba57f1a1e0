// Handles the declarations of the build that the package's entries reach. `node scripts/declarations.ts` deletes all
// others, because no compiler reads them and they make up a twentieth of the package.

import { globSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, unknown>>;
}
export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

/** The entries of the package, each with its declarations. */
export const entries = Object.entries(manifest.exports).flatMap(([entry, target]) =>
  typeof target === 'string' ? [] : [[entry, join(root, target.types)] as const],
);

/** Returns the declarations that this file reaches, each with the packages that it imports. */
export function reachedFrom(file: string): ReadonlyMap<string, readonly string[]> {
  const reached = new Map<string, readonly string[]>();
  const open = [file];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (reached.has(next)) continue;
    const text = readFileSync(next, 'utf8').replaceAll(/\/\*.*?\*\/|\/\/.*$/gms, '');
    const named = [...text.matchAll(/(?:\bfrom |\bimport\(|^import )'([^']+)'/gm)].flatMap(
      ([, name]) => name ?? [],
    );
    for (const name of named)
      if (name.startsWith('.')) open.push(join(dirname(next), name.replace(/\.[jt]s$/, '.d.ts')));
    const packages = named.filter((name) => !name.startsWith('.'));
    reached.set(next, /\b(?:Buffer|NodeJS)\b/.test(text) ? [...packages, 'node:'] : packages);
  }
  return reached;
}

if (import.meta.main) {
  const reached = new Set(entries.flatMap(([, types]) => [...reachedFrom(types).keys()]));
  for (const name of globSync('dist/**/*.d.ts', { cwd: root })) {
    const file = join(root, name);
    if (reached.has(file)) continue;
    rmSync(file);
    rmSync(`${file}.map`);
  }
}
