// Lists the public names by subpath in docs/api.md: `npm run api` writes the file; `npm run check` compares it, so
// that no name is added or lost by accident. Both fail if a name has no description.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { API, SymbolFlags } from 'typescript/unstable/sync';

const root = fileURLToPath(new URL('..', import.meta.url));
const report = join(root, 'docs/api.md');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
};

const KINDS: readonly (readonly [SymbolFlags, string])[] = [
  [SymbolFlags.Class, 'class'],
  [SymbolFlags.Function, 'function'],
  [SymbolFlags.Interface, 'interface'],
  [SymbolFlags.TypeAlias, 'type'],
  [SymbolFlags.Variable, 'constant'],
];

/** Returns the first sentence, escaped for a table cell. */
function firstSentence(text: string): string {
  const flat = text.replaceAll(/\s+/g, ' ').trim();
  const sentence = /^.*?[.!?](?=\s|$)/.exec(flat)?.[0] ?? flat;
  return sentence.replaceAll('|', '\\|');
}

/** The names without a description, each with its subpath. */
const undescribed: string[] = [];

function sections(api: API): string {
  const [project] = api
    .updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] })
    .getProjects();
  if (!project) throw new Error('tsconfig.json was not opened');
  const { program, checker } = project;
  const texts: string[] = [];
  for (const [subpath, entry] of Object.entries(manifest.exports)) {
    if (typeof entry === 'string') continue;
    const source = entry.types.replace('./dist/', 'src/').replace('.d.ts', '.ts');
    const file = program.getSourceFile(join(root, source));
    const module = file && checker.getSymbolAtLocation(file);
    if (!module) throw new Error(`package.json exports ${subpath}, but ${source} is no module`);
    const name = `offstage${subpath.slice(1)}`;
    const rows = checker
      .getExportsOfModule(module)
      .map((symbol) => {
        const isAlias = (symbol.flags & SymbolFlags.Alias) !== 0;
        const target = isAlias ? checker.getAliasedSymbol(symbol) : symbol;
        const kind = KINDS.find(([flag]) => (target.flags & flag) !== 0)?.[1] ?? 'other';
        const says = firstSentence(target.getDocumentationComment(checker));
        if (says === '') undescribed.push(`${name}: ${symbol.name}`);
        return `| \`${symbol.name}\` | ${kind} | ${says} |`;
      })
      .toSorted();
    texts.push(
      `## ${name}\n\n${rows.length} ${rows.length === 1 ? 'name' : 'names'}.\n\n| name | is | |\n| --- | --- | --- |\n${rows.join('\n')}\n`,
    );
  }
  return texts.join('\n');
}

const api = new API({ cwd: root });
const text = `# Public names

Written by \`npm run api\` from the exports and their docstrings; \`npm run check\` fails when it is not
up to date. The site that \`npm run site\` builds has each name with its signature, members, defaults and errors.

Types that are only a part have no name of their own: the options of a function are \`Parameters<typeof forkSession>[1]\`, a
part of a view is \`SessionState['outage']\`, the input of a statechart is XState's \`InputFrom<typeof questionMachine>\`.

${sections(api)}`;
api.close();

if (argv.includes('--check')) {
  const known = readFileSync(report, 'utf8');
  if (known !== text) {
    const [before, after] = [known, text].map((it) => new Set(it.split('\n')));
    for (const line of after ?? []) if (!before?.has(line)) stdout.write(`+ ${line}\n`);
    for (const line of before ?? []) if (!after?.has(line)) stdout.write(`- ${line}\n`);
    stdout.write(
      'docs/api.md is not up to date: run `npm run api`, and commit it if that is meant.\n',
    );
    process.exitCode = 1;
  }
} else writeFileSync(report, text);
for (const name of undescribed) stdout.write(`${name} has no description\n`);
if (undescribed.length > 0) {
  stdout.write('Each public name has a docstring: one sentence that says what it is for.\n');
  process.exitCode = 1;
}
