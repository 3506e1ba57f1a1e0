// Everything that the documents name exists: each path of a source file or test in docs/ and README.md, and each name
// that they attribute to an entry (`offstage/…`).

import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const documents = [
  'README.md',
  'AGENTS.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'llms.txt',
  ...globSync('docs/**/*.md', { cwd: root, exclude: ['docs/site/**'] }),
];

/** The folders that a path in a document may be relative to. */
const bases = ['', 'src', 'src/actors', 'src/actors/session', 'test', 'test/actors', 'src/testing'];
const allFiles = globSync(
  ['src/**/*.ts', 'test/**/*.ts', 'scripts/**/*.ts', 'bench/**/*.ts', 'examples/**/*'],
  {
    cwd: root,
  },
).map((file) => `/${file}`);

const isThere = (path: string): boolean =>
  bases.some((base) => existsSync(join(root, base, path))) ||
  // A file whose folder the document has named just before.
  (!path.includes('/') && allFiles.some((file) => file.endsWith(`/${path}`)));

test.each(documents)('%s names only files that exist', (document) => {
  const text = readFileSync(join(root, document), 'utf8');
  const named = [...text.matchAll(/(?:`|participant \w+ as )([\w./-]+\.ts)\b/g)].map(
    ([, path = '']) => path,
  );
  expect(named.filter((path) => !isThere(path))).toEqual([]);
});

test.each(documents)('%s links only to files that exist', (document) => {
  const text = readFileSync(join(root, document), 'utf8');
  const links = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, link = '']) => link);
  const local = links.filter((link) => !/^\w+:/.test(link));
  expect(local.filter((link) => !existsSync(join(root, dirname(document), link)))).toEqual([]);
});

/** The public names that each entry exports. */
const entries = new Map<string, Set<string>>();
for (const section of readFileSync(join(root, 'docs/api.md'), 'utf8').split(/^## /m).slice(1))
  entries.set(
    section.split('\n', 1).join('').trim(),
    new Set([...section.matchAll(/^\| `([\w$]+)/gm)].map(([, name = '']) => name)),
  );

test.each(documents)('%s names exports of the right entry point', (document) => {
  const text = readFileSync(join(root, document), 'utf8');
  const phrases = text.matchAll(
    /`(?:await )?([\w$]+)\b[^`\n]*`(?:,? (?:and|or) `([\w$]+)[^`\n]*`)?\s+(?:of|from)\s+`(offstage[\w/-]*)`/g,
  );
  const wrong = [...phrases].flatMap(([, first = '', second, entry = '']) =>
    [first, ...(second ? [second] : [])]
      .filter((name) => !entries.get(entry)?.has(name))
      .map((name) => `${name} of ${entry}`),
  );
  expect(wrong).toEqual([]);
});
