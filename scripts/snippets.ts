// Compiles each `` `ts snippet in README.md and docs/ against the sources, as a separate module. Most snippets are
// fragments. They need no import for the public names (docs/api.md), and scripts/snippet-globals.ts declares the values
// that the surrounding text assumes (a session, a model, a microphone). The snippets with a title on one page are the
// files of one project, and receive only their own imports.

import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process, { stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { titledSnippets } from './titled-snippets.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = join(root, '.snippets');

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
// The compiler's errors refer to line 12 of docs/guide/tools.md as line 12 of docs__guide__tools.md.12.ts.
let count = 0;
for (const page of [
  'README.md',
  ...globSync('docs/**/*.md', { cwd: root, exclude: ['docs/site/**'] }),
]) {
  const text = readFileSync(join(root, page), 'utf8');
  for (const fence of text.matchAll(/^```ts\n(.*?)^```$/gms)) {
    const line = text.slice(0, fence.index).split('\n').length;
    const name = `${page.replaceAll('/', '__')}.${line}.ts`;
    const padding = '\n'.repeat(line - 1);
    writeFileSync(join(folder, name), `export {};${padding}\n${fence[1] ?? ''}`);
    count += 1;
  }
  for (const { title, code, line } of titledSnippets(text).filter((it) =>
    it.title.endsWith('.ts'),
  )) {
    const file = join(folder, 'projects', page.replaceAll('/', '__'), title);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '\n'.repeat(line) + code);
    count += 1;
  }
}
const globals: string[] = [];
let from = '';
for (const line of readFileSync(join(root, 'docs/api.md'), 'utf8').split('\n')) {
  from = /^## (\S+)/.exec(line)?.[1] ?? from;
  const [, name, kind = ''] = /^\| `(\w+)` \| (\w+) \|/.exec(line) ?? [];
  if (!name) continue;
  const type = `import('${from}').${name}`;
  if (['class', 'function', 'constant'].includes(kind))
    globals.push(`const ${name}: typeof ${type};`);
  if (['class', 'interface', 'type'].includes(kind)) globals.push(`type ${name} = ${type};`);
}
writeFileSync(
  join(folder, 'globals.d.ts'),
  `export {};\ndeclare global {\n${[...new Set(globals)].join('\n')}\n}\n`,
);
const compilerOptions = { noUnusedLocals: false, noUnusedParameters: false };
writeFileSync(
  join(folder, 'tsconfig.json'),
  JSON.stringify({
    extends: '../tsconfig.json',
    compilerOptions,
    include: ['*.ts', '../scripts/snippet-globals.ts'],
    exclude: [],
  }),
);
writeFileSync(
  join(folder, 'projects/tsconfig.json'),
  JSON.stringify({
    extends: '../../templates/tsconfig.json',
    compilerOptions: { customConditions: ['offstage-source'] },
  }),
);
let status = 0;
for (const project of [folder, join(folder, 'projects')]) {
  const done = spawnSync('tsc', ['-p', project, '--pretty', 'false'], {
    encoding: 'utf8',
    cwd: root,
  });
  stdout.write(
    done.stdout.replaceAll(
      /^\.snippets[\\/](?:projects[\\/])?([^\\/(]+?\.md)[^(]*\((\d+),/gm,
      (_, page: string, line: string) => `${page.replaceAll('__', '/')}(${line},`,
    ),
  );
  status ||= done.status ?? 1;
}
stdout.write(`${count} snippets of README.md and docs/\n`);
rmSync(folder, { recursive: true, force: true });
process.exitCode = status;
