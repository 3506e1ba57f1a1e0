// `npm run coverage:inventory`: checks the features of the four predecessors, line by line, against the tests. A test
// must cite each line of `docs/coming-from.md` by its tag, such as `B44`, unless the line explains a deliberate
// difference. A test must also cite each of the predecessors' bugs, unless `test/faults/README.md` explains why it
// cannot occur. With `--quiet` it prints only the totals and the failures.

import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The number of lines in each list, so that a line missing from the documents is noticed. */
const lists = {
  Bodhi: { B: 92 },
  RockBot: { R: 41 },
  Helix: { H: 23 },
  Makaio: { M: 28 },
  Faults: { BW: 37, RW: 15, HW: 9, MW: 12 },
} as const satisfies Record<string, Readonly<Record<string, number>>>;

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8');

/** Returns, for each identifier, the files with tests that cite it as a tag. */
function citations(): Map<string, Set<string>> {
  const cited = new Map<string, Set<string>>();
  for (const path of globSync('test/**/*.test.ts', { cwd: root }).toSorted())
    for (const [, list = ''] of read(path).matchAll(/\b(?:tags|covers): \[([^\]]*)\]/g))
      for (const [, id = ''] of list.matchAll(/'([BRHM]W?\d+)'/g)) {
        const files = cited.get(id) ?? new Set();
        cited.set(id, files.add(path.slice('test/'.length, -'.test.ts'.length)));
      }
  return cited;
}

/** Returns the cells of each table row that starts with an identifier, without the identifier. */
function rows(document: string): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const line of document.split('\n')) {
    const [, id = '', ...cells] = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    if (/^[BRHM]W?\d+$/.test(id)) found.set(id, cells.slice(0, -1));
  }
  return found;
}

const cited = citations();
const mapped = rows(read('docs/coming-from.md'));
const excused = rows(read('test/faults/README.md'));
const problems: string[] = [];
const isQuiet = process.argv.includes('--quiet');

interface Line {
  readonly status: 'tested' | 'different' | 'excluded' | 'MISSING';
  readonly what: string;
  readonly why: string;
}

function lineOf(id: string): Line {
  const files = [...(cited.get(id) ?? [])];
  const isFault = id.includes('W');
  const [what = '', here] = mapped.get(id)?.map((cell) => cell.replaceAll('\\|', '|')) ?? [];
  const reason = isFault ? excused.get(id)?.[0] : /^Different: (.+)/.exec(here ?? '')?.[1];
  if (!isFault && here === undefined) problems.push(`${id} is not in docs/coming-from.md`);
  if (files.length > 0) {
    const more = files.length > 2 ? ` and ${files.length - 2} more` : '';
    return { status: 'tested', what, why: files.slice(0, 2).join(', ') + more };
  }
  if (reason !== undefined)
    return { status: isFault ? 'excluded' : 'different', what, why: reason };
  problems.push(`${id} is cited by no test, and nobody says why`);
  return { status: 'MISSING', what, why: '' };
}

function clip(text: string, chars: number): string {
  return (text.length > chars ? `${text.slice(0, chars - 1)}…` : text).padEnd(chars);
}

const known = new Set<string>();
for (const [name, counts] of Object.entries(lists)) {
  const ids = Object.entries(counts).flatMap(([letters, count]) =>
    Array.from({ length: count }, (_, index) => `${letters}${index + 1}`),
  );
  const table = ids.map((id) => ({ id, ...lineOf(id) }));
  const tested = table.filter(({ status }) => status === 'tested').length;
  const rest = table.length - tested;
  console.log(
    `${isQuiet ? '' : '\n'}${name}: ${table.length} lines, ${tested} tested, ${rest} with a reason why not`,
  );
  for (const { id, status, what, why } of table) {
    known.add(id);
    const row = [id.padEnd(4), status.padEnd(9), ...(what ? [clip(what, 44)] : []), clip(why, 90)];
    if (!isQuiet) console.log(`  ${row.join(' ').trimEnd()}`);
  }
}
for (const id of cited.keys())
  if (!known.has(id)) problems.push(`${id} is cited, but there is no such line`);

if (problems.length > 0) {
  console.error(`\n${problems.length} problems:\n${problems.join('\n')}`);
  process.exitCode = 1;
}
