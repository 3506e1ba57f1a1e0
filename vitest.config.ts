// Three projects: the quick tests, the ones that load speech models, and the ones
// that drive a browser. The heavy ones run after the quick ones, a file at a time.

import { existsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

const speech = 'test/adapters/local-voice/**/*.test.ts';
const browser = 'test/browser/**/*.test.ts';

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

export default defineConfig({
  test: {
    maxWorkers: 2,
    // A machine may be slow or shared: these end what hangs, and judge nobody's speed.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ['default', './scripts/summary-line-reporter.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: [speech, browser],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'speech',
          include: [speech],
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'browser',
          include: chromium === undefined ? [] : [browser],
          env: { CHROMIUM_PATH: chromium },
          fileParallelism: false,
          testTimeout: 120_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
