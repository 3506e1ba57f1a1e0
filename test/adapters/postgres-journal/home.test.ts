// The suite for homes on two processes that share one database; each of them is killed, stopped and drained.

import { describe, expect, test } from 'vitest';
import { homeConformance, type HomeConformanceSetup } from '../../suites/homes/index.ts';
import { moment, nodeStage, type PlantedFault } from '../../support/homes/stage.ts';
import { connection, newSchema } from './support.ts';

// HOME_SEEDS=50 runs more seeds.
const SEEDS = Number(process.env['HOME_SEEDS'] ?? 3);
/** Short, so that no test waits long, but longer than a loaded machine stalls. No test asserts this duration. */
const LEASE_MS = 1_500;

function setupOf(fault: PlantedFault | null = null): HomeConformanceSetup {
  return {
    name: 'PostgreSQL',
    shows: ['nodes', 'stops', 'drains'],
    seeds: SEEDS,
    moment,
    ...(fault && { patience: 400, seeds: 0 }),
    open: (tell) =>
      nodeStage(tell, {
        nodes: 2,
        store: { connection, schema: newSchema(), leaseMs: LEASE_MS },
        fault,
      }),
  };
}

describe('postgresql: home', () => {
  const cases = homeConformance(setupOf());
  test.each(cases.filter(({ skipped }) => skipped === null))('$name', ({ run }) => run(), 180_000);
});

describe('planted faults', () => {
  test.each<[PlantedFault, string]>([
    ['sends nobody on', 'a node without the session'],
    ['keeps nothing', 'at all nodes'],
    ['keeps nothing', 'a stopped node'],
  ])('detects a home that %s, by the case "%s"', async (fault, name) => {
    const found = homeConformance(setupOf(fault)).find((each) => each.name.includes(name));
    await expect(found?.run()).rejects.toMatchObject({ code: 'NOT_CONFORMANT' });
  });
});
