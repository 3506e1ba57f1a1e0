// What an example imports, a reader can import: public subpaths of the package, packages by name, and its own files.

import { globSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { exports: object };
const subpaths = new Set(Object.keys(manifest.exports).map((each) => `offstage${each.slice(1)}`));

const isOurs = (file: string, target: string): boolean =>
  target.startsWith('.')
    ? resolve(dirname(file), target).startsWith(`${root}examples/`)
    : !/^offstage(?:\/|$)/.test(target) || subpaths.has(target);

test.each(
  globSync('examples/**/*.{ts,tsx}', { cwd: root }).filter(
    (file) => !file.includes('node_modules'),
  ),
)('%s imports public names only', (file) => {
  const source = readFileSync(root + file, 'utf8');
  const targets = [...source.matchAll(/\b(?:from|import)\s*\(?\s*'([^']+)'/g)].map(
    ([, target = '']) => target,
  );
  expect(targets.filter((target) => !isOurs(root + file, target))).toEqual([]);
});
