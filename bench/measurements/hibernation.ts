// Sessions that are put away while a subagent of each waits for the user, on SQLite: what is left of
// each in memory and on the disk, and how long it takes until one goes on. The floor keeps the
// run of `generateText` in memory, as it must.

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRuntime } from '../../src/index.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import { askingModel, openDesk, parkBare } from '../lib/desk.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';
import { heapBytes, until } from '../lib/process.ts';
import { p50p99 } from '../lib/statistics.ts';

const WARM_UP = 100;
/** Of those that are woken, so many are not counted: V8 has not compiled then what wakes them. */
const FIRST_WOKEN = 500;
const WOKEN = 2500;
const model = askingModel(() => {});

async function offstage(n: number): Promise<Numbers> {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-bench-'));
  const path = join(folder, 'journal');
  const environment = nodeEnvironment();
  const journal = sqliteJournal({ path, environment, synchronous: 'normal' });
  const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });
  const open = (number: number) => openDesk(runtime, model, 1, `ses_${number}`);
  const putAway = async (from: number, count: number): Promise<void> => {
    for (let number = from; number < from + count; number += 1) {
      const desk = await open(number);
      await desk.start(1);
      await until(() => desk.open() !== undefined && desk.session.isIdle, 'an idle session');
      await desk.session.hibernate();
    }
  };
  try {
    await putAway(0, WARM_UP);
    const before = await heapBytes();
    await putAway(WARM_UP, n);
    const heap = (await heapBytes()) - before;
    const times: number[] = [];
    for (let woken = 0; woken < WOKEN; woken += 1) {
      const number = WARM_UP + ((woken * 7919) % n);
      const begin = performance.now();
      const { session, open: question } = await open(number);
      times.push(performance.now() - begin);
      if (!question()) throw new Error(`Expected the question of ses_${number} to be open`);
      await session.hibernate();
    }
    journal.close();
    const { p50: wake50, p99: wake99 } = p50p99(times.slice(FIRST_WOKEN));
    return {
      heap: heap / n,
      disk: statSync(path).size / (n + WARM_UP),
      wake50,
      wake99,
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function floor(n: number): Promise<Numbers> {
  const kept = [await parkBare(model, WARM_UP)];
  const before = await heapBytes();
  kept.push(await parkBare(model, n));
  return { heap: ((await heapBytes()) - before) / n };
}

export const hibernation: Measurement = {
  contenders: { offstage, floor },
  sizes: [1000, 10_000],
  repetitions: 3,
  lines: [
    {
      figure: 'hibernated_heap',
      unit: 'bytes',
      number: 'heap',
      floor: 'floor',
      goal: { value: 64 },
    },
    {
      figure: 'hibernated_disk',
      unit: 'bytes',
      number: 'disk',
      floor: null,
      goal: { value: 1024 },
    },
    { figure: 'wake_p50', unit: 'ms', number: 'wake50', floor: null, goal: null },
    { figure: 'wake_p99', unit: 'ms', number: 'wake99', floor: null, goal: { value: 5 } },
  ],
};
