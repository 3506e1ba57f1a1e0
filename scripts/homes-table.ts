// The last step of `npm run docs:homes`: writes the table of homes in docs/engines.md from the tests that have just
// run.

import { readFileSync, writeFileSync } from 'node:fs';
import { homeConformance } from '../test/suites/homes/index.ts';

const DOCUMENT = new URL('../docs/engines.md', import.meta.url);
const RESULTS = new URL('../test/support/homes/results.json', import.meta.url);
const BEGINS =
  '<!-- Written by `npm run docs:homes` from what the tests of homes have played. -->\n';
const ENDS = '<!-- The end of that. -->\n';
/** The common prefix of the titles of random kill tests. */
const RANDOM = 'seed ';
/** The columns, each with the name of its test block. */
const HOMES = {
  'SQLite, one process': 'sqlite: home',
  'PostgreSQL, two processes': 'postgresql: home',
  'Durable Object': 'durable object: home',
};

interface Results {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
    }[];
  }[];
}

const { testResults } = JSON.parse(readFileSync(RESULTS, 'utf8')) as Results;
const all = testResults.flatMap(({ assertionResults }) => assertionResults);

/** The runner shortens long titles. */
const isTitleOf = (title: string, name: string): boolean =>
  title.endsWith('…') ? name.startsWith(title.slice(0, -1)) : title === name;

function played(block: string, isIt: (title: string) => boolean): string {
  const own = all.filter(({ ancestorTitles }) => ancestorTitles.includes(block));
  if (own.length === 0) throw new Error(`Expected results of "${block}": was it left out?`);
  const found = own.filter(({ title }) => isIt(title));
  if (found.some(({ status }) => status !== 'passed')) return 'failed';
  if (found.length === 0) return '–';
  return found.length === 1 ? 'yes' : `yes (${found.length})`;
}

const open = (): never => {
  throw new Error('a table needs no stage');
};
const cases = homeConformance({ name: 'a home', shows: [], seeds: 0, moment: open, open });
const row = (name: string, isIt: (title: string) => boolean): string =>
  `| ${[name, ...Object.values(HOMES).map((block) => played(block, isIt))].join(' | ')} |`;
const table = [
  `| case | ${Object.keys(HOMES).join(' | ')} |`,
  '| --- | --- | --- | --- |',
  ...cases.map(({ name }) => row(name, (title) => isTitleOf(title, name))),
  row('processes are killed at random, by seeds', (title) => title.startsWith(RANDOM)),
].join('\n');

const [before = '', rest = ''] = readFileSync(DOCUMENT, 'utf8').split(BEGINS);
const [, after = ''] = rest.split(ENDS);
writeFileSync(DOCUMENT, `${before}${BEGINS}\n${table}\n\n${ENDS}${after}`);
