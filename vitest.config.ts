// The projects. `npm test` runs `unit` and `apart`, the quick tests; `npm run test:long` runs `long` and `oldest-xstate`; each other
// project has the command of its name, `npm run test:browser` for instance. scripts/test-suites.ts says what is where.
// `npx vitest run PATH` runs a part of all projects that can run on this machine; the heavy ones come last, a file at a
// time.

import { existsSync, globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { longTests, testsWithOldestXState } from './scripts/test-suites.ts';
import { findPostgres } from './test/support/postgres/find-postgres.ts';

const postgres = 'test/adapters/postgres-journal/**/*.test.ts';
const speech = 'test/adapters/local-voice/**/*.test.ts';
const rooms = 'test/dialogues/rooms.test.ts';
const browser = 'test/browser/**/*.test.ts';
const frameworks = 'test/frameworks/**/*.test.ts';
const engines = 'test/engines/**/*.test.ts';
const cloudflare = 'test/cloudflare/**/*.test.ts';
const site = 'test/site/**/*.test.ts';
const claude = 'test/claude/**/*.test.ts';
const codex = 'test/codex/**/*.test.ts';

// `package.json` allows a range of XState: what stands on it runs at both ends.
const oldestXState = fileURLToPath(import.meta.resolve('xstate-oldest'));

const chromium =
  process.env['CHROMIUM_PATH'] ??
  [
    '/usr/bin/chromium',
    '/usr/bin/chromium-browser',
    '/usr/bin/google-chrome',
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  ].find((path) => existsSync(path));

// Node.js has no condition `module`: some packages have files for bundlers there, which it cannot load.
const serverConditions = defaultServerConditions.filter((condition) => condition !== 'module');

// Where its program or its packages are missing, a project has no files: its own command then fails.
const hasPostgres = findPostgres() !== undefined;
if (!hasPostgres && process.env['npm_lifecycle_event'] === 'test:postgres')
  console.error(
    'No PostgreSQL server here: apt-get install postgresql, or name its programs in POSTGRES_BIN.',
  );
if (chromium === undefined && process.env['npm_lifecycle_event'] === 'test:browser')
  console.error('No Chromium here: install it, or name it in CHROMIUM_PATH.');
const isThere = (path: string): boolean => existsSync(new URL(path, import.meta.url));
const hasFrameworks = isThere('./test/frameworks/node_modules');
const hasWorkerd = isThere('./test/cloudflare/node_modules');
const hasClaude = isThere('./test/claude/node_modules');
const hasCodex = isThere('./test/codex/node_modules');
const hasEngines = isThere('./test/engines/node_modules');
const hasSite = chromium !== undefined && isThere('./docs/site/dist');

// What changes what a process shares (its modules, globals, environment, listeners, answer languages) has a process of
// its own. All other quick tests share one, so that each module is loaded once: most files would take longer to load
// than to run.
const CHANGES_ITS_PROCESS =
  /\baddAnswerLanguage\b|\bvi\.(?:mock|doMock|stub|spyOn|resetModules|useFake)|\bprocess\.(?:env\b.*\] =|on\(|chdir)|\bglobalThis\.\w+ = |\bReflect\.deleteProperty/;
const cwd = fileURLToPath(new URL('.', import.meta.url));
const apart = globSync('test/**/*.test.ts', { cwd, exclude: ['**/node_modules/**'] }).filter(
  (path) => CHANGES_ITS_PROCESS.test(readFileSync(new URL(path, import.meta.url), 'utf8')),
);
const notQuick = [
  ...longTests,
  postgres,
  speech,
  rooms,
  browser,
  frameworks,
  engines,
  cloudflare,
  site,
  claude,
  codex,
];

// Without the durations of an earlier run, as in CI, the longest files would not begin first.
const ranks = new Map(
  longTests
    .flatMap((pattern) => globSync(pattern, { cwd }))
    .map((path, rank) => [cwd + path, rank]),
);
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification): number => ranks.get(moduleId) ?? ranks.size;
    // oxlint-disable-next-line unicorn/no-array-sort -- files of a run, sorted by vitest
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

export default defineConfig({
  // Examples import the package by its name: here that is its source.
  ssr: { resolve: { conditions: ['offstage-source', ...serverConditions] } },
  test: {
    maxWorkers: 2,
    // Tags are the lines of docs/coming-from.md; scripts/coverage-inventory.ts knows which there are.
    strictTags: false,
    // A sequencer of one's own would take the place of `--sequence.shuffle.files`.
    sequence: process.argv.some((it) => it.startsWith('--sequence.shuffle'))
      ? {}
      : { sequencer: LongestFirst },
    // A machine may be slow or shared: these end what hangs, and judge nobody's speed.
    testTimeout: 180_000,
    hookTimeout: 60_000,
    // The programs that tests start compile each module once.
    env: {
      NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/code', import.meta.url)),
    },
    reporters: ['default', './scripts/summary-line-reporter.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: [...notQuick, ...apart],
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'apart',
          include: apart,
          exclude: notQuick,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'long',
          include: [...longTests],
          exclude: ['**/node_modules/**', postgres, speech, browser],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        resolve: { alias: [{ find: /^xstate$/, replacement: oldestXState }] },
        test: {
          name: 'oldest-xstate',
          include: [...testsWithOldestXState],
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'frameworks',
          include: hasFrameworks ? [frameworks] : [],
          // Pages are looked at in a browser.
          exclude: [
            '**/node_modules/**',
            ...(chromium === undefined ? ['test/frameworks/pages.test.ts'] : []),
          ],
          env: { CHROMIUM_PATH: chromium },
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'cloudflare',
          include: hasWorkerd ? [cloudflare] : [],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'site',
          include: hasSite ? [site] : [],
          env: { CHROMIUM_PATH: chromium },
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'claude',
          include: hasClaude ? [claude] : [],
          // Each stretch of its work is a process of some hundred megabytes.
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'codex',
          include: hasCodex ? [codex] : [],
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 180_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'engines',
          include: hasEngines ? [engines] : [],
          fileParallelism: false,
          // Servers are killed, and started again.
          testTimeout: 240_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: hasPostgres ? [postgres] : [],
          globalSetup: hasPostgres ? ['test/support/postgres/global-setup.ts'] : [],
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'speech',
          include: [speech, rooms],
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: 'browser',
          include: chromium === undefined ? [] : [browser],
          env: { CHROMIUM_PATH: chromium },
          fileParallelism: false,
          // They listen to every word, and a word may have to be said again.
          testTimeout: 300_000,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
