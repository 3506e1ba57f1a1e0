// The suite for homes in a Durable Object: workerd is killed, and objects are evicted.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { homeConformance, type HomeConformanceSetup } from '../suites/homes/index.ts';
import { moment, tellServer } from '../support/homes/stage.ts';
import { bundle, start } from './support/workerd.js';

// HOME_SEEDS=50 runs more seeds.
const SEEDS = Number(process.env['HOME_SEEDS'] ?? 3);
const folder = mkdtempSync(join(tmpdir(), 'offstage-cloudflare-'));
const worker = join(folder, 'home.mjs');
let objects = 0;

beforeAll(() => bundle('home-worker.js', worker));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function setupOf(fault: string | null = null): HomeConformanceSetup {
  return {
    name: 'Durable Object',
    shows: ['evicts'],
    seeds: SEEDS,
    moment,
    ...(fault !== null && { patience: 400, seeds: 0 }),
    async open(tell) {
      const told = await tellServer(tell);
      objects += 1;
      const own = join(folder, `objects-${objects}`);
      const env = { TELL_URL: told.url, ...(fault !== null && { FAULT: fault }) };
      let running: Awaited<ReturnType<typeof start>> | null = await start(worker, own, env);
      const { url } = running;
      return {
        url: () => new URL('offstage', url).href,
        async kill() {
          await running?.kill();
          running = null;
        },
        async start() {
          running = await start(worker, own, env, Number(new URL(url).port));
        },
        async isAwake(session) {
          return (await (await fetch(new URL(`?session=${session}`, url))).text()) === 'true';
        },
        evict: async (session) => running?.evict(session),
        async close() {
          await running?.kill();
          told.close();
        },
      };
    },
  };
}

describe('durable object: home', () => {
  const cases = homeConformance(setupOf());
  test.each(cases.filter(({ skipped }) => skipped === null))('$name', ({ run }) => run(), 180_000);
});

describe('planted faults', () => {
  test.each([
    ['never looks', 'a model call during'],
    ['never looks', 'while everything was dead'],
    ['forgets its tabs', 'an open tab'],
  ])('detects %s with "%s"', async (fault, name) => {
    const found = homeConformance(setupOf(fault)).find((each) => each.name.includes(name));
    await expect(found?.run()).rejects.toMatchObject({ code: 'NOT_CONFORMANT' });
  });
});
