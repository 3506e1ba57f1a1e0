// The projects: the quick tests; some of them again with the oldest XState that is allowed; the ones inside web
// frameworks, and pages of Vue and Svelte; the ones on engines; the ones that need a PostgreSQL server; the ones that load
// speech models; and the ones that drive a browser. The heavy ones run
// after the quick ones, a file at a time.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';
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
const withOldestXState = [
  'test/actors/runtime/**/*.test.ts',
  'test/actors/session/read-only-actor.test.ts',
  'test/corpus/**/*.test.ts',
  'test/scenarios/recovery/frozen-stories.test.ts',
  'test/testing/check/**/*.test.ts',
];

const chromium =
  process.env['CHROMIUM_PATH'] ??
  [
    '/usr/bin/chromium',
    '/usr/bin/chromium-browser',
    '/usr/bin/google-chrome',
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  ].find((path) => existsSync(path));

if (chromium === undefined) {
  console.warn('No Chromium here: the browser tests are left out. CHROMIUM_PATH names one.');
}

// Node.js has no condition `module`: some packages have files for bundlers there, which it cannot load.
const serverConditions = defaultServerConditions.filter((condition) => condition !== 'module');

const hasPostgres = findPostgres() !== undefined;

if (!hasPostgres) {
  const missing =
    'No PostgreSQL server here (apt-get install postgresql; POSTGRES_BIN names its programs)';
  // What is promised of it must not go unchecked without anybody noticing.
  if (process.env['CI']) throw new Error(`${missing}: CI must have one`);
  console.warn(`${missing}: the tests of postgresJournal are left out.`);
}

// The frameworks have a package.json of their own, which `npm run test:frameworks` installs first.
const hasFrameworks = existsSync(new URL('./test/frameworks/node_modules', import.meta.url));
if (!hasFrameworks)
  console.warn('The tests inside web frameworks are left out: npm run test:frameworks runs them.');

// So has workerd.
const hasWorkerd = existsSync(new URL('./test/cloudflare/node_modules', import.meta.url));
if (!hasWorkerd)
  console.warn('The tests in a Durable Object are left out: npm run test:cloudflare runs them.');

// So has the Claude Agent SDK, with the program of Claude Code.
const hasClaude = existsSync(new URL('./test/claude/node_modules', import.meta.url));
if (!hasClaude)
  console.warn('The tests with Claude Code are left out: npm run test:claude runs them.');

// So has Codex.
const hasCodex = existsSync(new URL('./test/codex/node_modules', import.meta.url));
if (!hasCodex) console.warn('The tests with Codex are left out: npm run test:codex runs them.');

// So have the engines, with their servers.
const hasEngines = existsSync(new URL('./test/engines/node_modules', import.meta.url));
if (!hasEngines)
  console.warn(
    'The tests on engines (Restate, Temporal) are left out: npm run test:engines runs them.',
  );

// The site of the documents is built before it is looked at.
const hasSite = chromium !== undefined && existsSync(new URL('./docs/site/dist', import.meta.url));
if (!hasSite)
  console.warn('The tests of the site of the documents are left out: npm run test:site runs them.');

export default defineConfig({
  // Examples import the package by its name: here that is its source.
  ssr: { resolve: { conditions: ['offstage-source', ...serverConditions] } },
  test: {
    maxWorkers: 2,
    // A machine may be slow or shared: these end what hangs, and judge nobody's speed.
    testTimeout: 180_000,
    hookTimeout: 60_000,
    reporters: ['default', './scripts/summary-line-reporter.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: [
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
          ],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        resolve: { alias: [{ find: /^xstate$/, replacement: oldestXState }] },
        test: {
          name: 'oldest-xstate',
          include: withOldestXState,
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
