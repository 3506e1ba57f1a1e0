// The last step of `npm run test:engines`: compares the table at the end of docs/engines.md with the cases that the
// engine tests have just run. `-- --write` writes the table. Without Temporal's server (no Java, no Maven), its column
// stays unchanged.

import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { restateJobs } from '../src/adapters/restate/index.ts';
import { temporalJobs } from '../src/adapters/temporal/index.ts';
import { localJobs, type Jobs } from '../src/entries/jobs.ts';
import { jobsConformance } from '../test/suites/jobs/index.ts';
import { runsConformance } from '../test/suites/runs/index.ts';
import { jobsScenes } from '../test/suites/jobs/cases.ts';

const DOCUMENT = new URL('../docs/engines.md', import.meta.url);
const RESULTS = new URL('../test/engines/results.json', import.meta.url);
const BEGINS =
  '<!-- Written by `npm run docs:engines` from what the tests on engines have played. -->\n';
/** The common prefix of the titles of random kill tests. */
const RANDOM = 'seed ';
const ENGINES = ['Restate', 'Temporal'] as const;
const COLUMNS = ['in process', ...ENGINES] as const;

interface Results {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[];
      readonly title: string;
      readonly status: string;
    }[];
  }[];
}

const open = (): never => {
  throw new Error('a table needs no stage');
};

/** The cases of the two suites, and those that the unit tests run in process. */
export const suites = {
  'steps as jobs': {
    title: 'conformance',
    cases: jobsConformance({ name: 'in process', shows: ['job_hangs'], open }),
  },
  'whole runs': {
    title: 'whole runs',
    cases: runsConformance({
      name: 'in process',
      shows: ['program_dies'],
      isEngine: false,
      open,
    }),
  },
};

/** The engines, with the abilities that they declare. */
const engines: Readonly<Record<(typeof COLUMNS)[number], Jobs>> = {
  'in process': localJobs({ handler: { do: open } }),
  Restate: restateJobs({ ingress: 'http://127.0.0.1:1', admin: 'http://127.0.0.1:1' }),
  Temporal: temporalJobs({ client: { workflow: { start: open, getHandle: open } } }),
};

/** Tells whether the engine has the abilities that a case needs; without them, the case checks nothing. */
export function hasAbilityFor(column: (typeof COLUMNS)[number], name: string): boolean {
  const { keepsResults, forget } = engines[column];
  const needs = jobsScenes.find((scene) => scene.name === name)?.needs ?? [];
  return (
    (keepsResults || !needs.includes('keepsResults')) &&
    (forget !== undefined || !needs.includes('forgets'))
  );
}

type Played = (engine: string, suite: string, name: string) => string;

function playedIn({ testResults }: Results): Played {
  const all = testResults.flatMap(({ assertionResults }) => assertionResults);
  return (engine, suite, name) => {
    const { title } = suites[suite as keyof typeof suites];
    const block = `${engine.toLowerCase()}: ${title}`;
    const own = all.filter(({ ancestorTitles }) => ancestorTitles.includes(block));
    const found = own.filter(({ title: one }) => isTitleOf(one, name));
    if (found.some(({ status }) => status !== 'passed')) return 'failed';
    if (found.length === 0) return own.length === 0 ? '?' : '–';
    return name === RANDOM ? `yes (${found.length})` : 'yes';
  };
}

/** The runner shortens long titles. Random kill tests have a number after their name. */
function isTitleOf(title: string, name: string): boolean {
  if (title.endsWith('…')) return name.startsWith(title.slice(0, -1));
  return name === RANDOM ? title.startsWith(RANDOM) : title === name;
}

/** The names of cases are sentences, which may contain a bar. */
const cell = (text: string): string => text.replaceAll('|', String.raw`\|`);

function tableOf(played: Played): string {
  return Object.entries(suites)
    .map(([suite, { cases }]) => {
      const rows = cases.map(({ name, skipped }) => {
        const inProcess = skipped === null && hasAbilityFor('in process', name) ? 'yes' : '–';
        const on = ENGINES.map((engine) =>
          hasAbilityFor(engine, name) ? played(engine, suite, name) : '–',
        );
        return `| ${[cell(name), inProcess, ...on].join(' | ')} |`;
      });
      const kills = ENGINES.map((engine) => played(engine, suite, RANDOM));
      rows.push(`| processes are killed at random, by seeds | – | ${kills.join(' | ')} |`);
      return `| ${suite} | ${COLUMNS.join(' | ')} |\n| --- | --- | --- | --- |\n${rows.join('\n')}\n`;
    })
    .join('\n');
}

/** The lines of the table in the document. */
export function written(): string {
  const [, table = ''] = readFileSync(DOCUMENT, 'utf8').split(BEGINS);
  return table.trim();
}

const cellsOf = (line: string): string[] => line.split(' | ').map((one) => one.trim());

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const results = JSON.parse(readFileSync(RESULTS, 'utf8')) as Results;
  const table = tableOf(playedIn(results)).trim();
  if (process.argv.includes('--write')) {
    const [before = ''] = readFileSync(DOCUMENT, 'utf8').split(BEGINS);
    writeFileSync(DOCUMENT, `${before}${BEGINS}\n${table}\n`);
  } else {
    const is = written().split('\n').filter(Boolean);
    const wanted = table.split('\n').filter(Boolean);
    const plain = (text: string): string => text.replaceAll(/[\s|-]+/gu, ' ');
    const isSame = (one: string, other = ''): boolean => {
      const others = cellsOf(other);
      return cellsOf(one).every((text, at) => {
        const isUnknown = text.startsWith('?');
        // A different number of seeds does not count as a different ability.
        const bare = (value = ''): string => plain(value.replace(/ \(\d+\)/u, ''));
        return isUnknown || bare(text) === bare(others[at]);
      });
    };
    const differs = wanted.findIndex((line, at) => !isSame(line, is[at]));
    if (differs !== -1 || is.length !== wanted.length) {
      process.stderr.write(
        `docs/engines.md says another thing than what was played: npm run docs:engines\n  played: ${wanted[differs] ?? ''}\n  says:   ${is[differs] ?? ''}\n`,
      );
      process.exitCode = 1;
    }
  }
}
