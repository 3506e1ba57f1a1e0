// Random apps: each seed has a different configuration, and the promises hold for each one.

import { expect, test } from 'vitest';
import { simulate } from '../../../src/testing/index.ts';
import { anyApp } from './support/any-app.ts';

const from = Number(process.env['ANY_APP_FROM'] ?? 1);
const count = Number(process.env['ANY_APP_SEEDS'] ?? 100);

test('P1 to P10: hold for an app with any configuration', { timeout: 600_000 }, async () => {
  const { runs, work } = await simulate({ app: anyApp, seeds: { from, count } });
  expect(runs).toBe(count);
  expect(work.questions).toBeGreaterThan(0.3 * runs);
  expect(work.effects).toBeGreaterThan(0.1 * runs);
});
