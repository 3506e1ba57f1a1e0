// The suite of homes, run against a process that is killed and a journal in a file. Faults that are planted in that
// process prove that the cases can fail.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { homeConformance, type HomeConformanceSetup } from './index.ts';
import { moment, nodeStage, type PlantedFault } from '../../support/homes/stage.ts';

// Set HOME_SEEDS=50 for a long run.
const SEEDS = Number(process.env['HOME_SEEDS'] ?? 3);

function setupOf(fault: PlantedFault | null = null): HomeConformanceSetup {
  return {
    name: 'SQLite',
    shows: ['drains'],
    seeds: SEEDS,
    moment,
    ...(fault && { patience: 400, seeds: 0 }),
    open(tell) {
      const folder = mkdtempSync(join(tmpdir(), 'offstage-home-'));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      return nodeStage(tell, { nodes: 1, store: { path: join(folder, 'journal') }, fault });
    },
  };
}

describe('sqlite: home', () => {
  const cases = homeConformance(setupOf());
  test.each(cases.filter(({ skipped }) => skipped === null))('$name', ({ run }) => run(), 180_000);
});

describe('a planted fault in a home', () => {
  test.each<[PlantedFault, string]>([
    ['keeps nothing', 'is asleep'],
    ['keeps nothing', 'in memory'],
    ['keeps nothing', 'more than 2 MB'],
    ['never looks', 'a model call during'],
    ['stores no time', 'while it sleeps'],
    ['stores no time', 'to send a result'],
    ['never looks', 'while everything was dead'],
    ['cuts what is long', 'more than 2 MB'],
    ['closes sessions', 'before a deploy'],
  ])('fails a case: %s, "%s"', async (fault, name) => {
    const found = homeConformance(setupOf(fault)).find((each) => each.name.includes(name));
    await expect(found?.run()).rejects.toMatchObject({ code: 'NOT_CONFORMANT' });
  });
});
