// Examples import only modules that a reader can import: public subpaths, packages by name, and the example's own
// files.

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

test("limits the voice demo's page, server and program to 460 lines of code", () => {
  // `about.ts` contains the texts of the page.
  const files = globSync('examples/voice-demo/{*.ts,page/*.ts}', { cwd: root }).filter(
    (file) => !file.endsWith('about.ts'),
  );
  const lines = files.flatMap((file) => readFileSync(root + file, 'utf8').split('\n'));
  expect(files.length).toBeGreaterThan(8);
  // A larger example would indicate a gap in `offstage/react`, `offstage/serve` or another subpath.
  expect(lines.filter((line) => !/^\s*(?:\/\/|\/\*|\*|$)/.test(line)).length).toBeLessThan(461);
});
