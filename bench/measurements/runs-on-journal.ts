// A program has n subagents working at a time, each with 3 steps and 2 tools: wall time for each run, on SQLite and
// in memory.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRuntime, memoryJournal, type Journal } from '../../src/index.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import { runSubagent } from '../../src/actors/subagents/run-subagent.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';
import { collectGarbage } from '../lib/process.ts';
import { INSTRUCTIONS, rawTools, TASK, tripModel } from '../lib/workload.ts';

const WARM_UP_RUNS = 1000;
const RUNS = 3000;

async function wallPerRun(n: number, journal: Journal): Promise<Numbers> {
  const environment = nodeEnvironment();
  const runtime = createRuntime({ environment, journal, maxTotalActive: 10_000 });
  const config = { name: 'planner', instructions: INSTRUCTIONS, tools: rawTools };
  const run = async (count: number): Promise<void> => {
    let left = count;
    const work = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        await runSubagent(config, TASK, { runtime, model: tripModel }).result;
      }
    };
    await Promise.all(Array.from({ length: n }, work));
  };
  await run(WARM_UP_RUNS);
  await collectGarbage();
  const begin = performance.now();
  await run(RUNS);
  return { wall: ((performance.now() - begin) * 1000) / RUNS };
}

async function onSqlite(n: number, synchronous: 'full' | 'normal'): Promise<Numbers> {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-bench-'));
  const path = join(folder, 'journal');
  const journal = sqliteJournal({ path, environment: nodeEnvironment(), synchronous });
  try {
    return await wallPerRun(n, journal);
  } finally {
    journal.close();
    rmSync(folder, { recursive: true });
  }
}

const measurement = (synchronous: 'full' | 'normal'): Measurement => ({
  contenders: {
    offstage: (n) => onSqlite(n, synchronous),
    floor: (n) => wallPerRun(n, memoryJournal()),
  },
  sizes: [10, 100, 1000],
  repetitions: 3,
  lines: [
    {
      figure: `run_on_sqlite_${synchronous}`,
      unit: 'us/run',
      number: 'wall',
      floor: 'floor',
      // At least 60 % of the runs in the same time.
      goal: { ratio: 1 / 0.6 },
    },
  ],
});

export const runsOnSqliteFull = measurement('full');
export const runsOnSqliteNormal = measurement('normal');
