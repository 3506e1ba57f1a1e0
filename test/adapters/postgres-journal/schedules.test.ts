// SESSION-POOL-3, SESSION-POOL-6 on a real server: one of two pools wakes a session at its scheduled time.

import { expect, test } from 'vitest';
import type { Environment } from '../../../src/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { newSchema, open } from './support.ts';
import { sleepersOn } from './sleepers.ts';

const HOUR = 3_600_000;

test("delivers a sleeping session's scheduled text once, although two pools are running", async () => {
  const schema = newSchema();
  const node = nodeEnvironment();
  let ahead = 0;
  const environment: Environment = { ...node, clock: { now: () => node.clock.now() + ahead } };
  const told: string[] = [];
  const errors: string[] = [];
  let hasTold = (): void => {};
  const telling = new Promise<void>((resolve) => (hasTold = resolve));
  const pools = await Promise.all(
    ['one', 'other'].map(async (name) => {
      const journal = await open({ schema, leaseMs: 600_000, environment });
      const pool = sleepersOn(journal, {
        environment,
        said(_, text) {
          told.push(`${name}: ${text}`);
          hasTold();
        },
        failed: (where) => errors.push(where),
      });
      await pool.start();
      return pool;
    }),
  );
  await pools[0]?.use('asleep', (session) =>
    session.schedule({ key: 'k', at: environment.clock.now() + HOUR, say: 'Pizza' }),
  );
  await expect
    .poll(() => pools.map((pool) => pool.awakeCount), { timeout: 20_000 })
    .toEqual([0, 0]);
  ahead = HOUR;
  await telling;
  // The session is asleep again, and the other pool finds nothing to wake.
  await expect
    .poll(() => pools.map((pool) => pool.awakeCount), { timeout: 20_000 })
    .toEqual([0, 0]);
  ahead = 2 * HOUR;
  await pools[1]?.use('asleep', (session) => {
    expect(session.store.getSnapshot().context.schedules).toEqual([]);
  });
  expect(told).toHaveLength(1);
  expect(told[0]).toContain('Pizza');
  expect(errors).toEqual([]);
  await Promise.all(pools.map((pool) => pool.close()));
});
