// Sessions that hibernate while a subagent of each waits for the user, on SQLite: the memory and disk space of each,
// and the time until one resumes. The floor must keep the run of `generateText` in memory; its wake only opens the
// file and reads the session's rows.

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createRuntime, type Runtime } from '../../src/index.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { sqliteJournal, type SqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import { askingModel, openDesk, parkBare } from '../lib/desk.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';
import { heapBytes, until } from '../lib/process.ts';
import { p50p99 } from '../lib/statistics.ts';

const WARM_UP = 100;
/** The first wakes that are not counted, because V8 has not yet compiled the code of a wake. */
const FIRST_WOKEN = 500;
const WOKEN = 2500;
const model = askingModel(() => {});

const idOf = (number: number): string => `ses_${number}`;

interface PutAway {
  readonly path: string;
  readonly journal: SqliteJournal;
  readonly runtime: Runtime;
}

/** Hibernates this many sessions. `wake` returns the duration of each wake. */
async function putAway(
  n: number,
  wake: (away: PutAway) => Promise<readonly number[]>,
): Promise<Numbers> {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-bench-'));
  const path = join(folder, 'journal');
  const environment = nodeEnvironment();
  const journal = sqliteJournal({ path, environment, synchronous: 'normal' });
  const runtime = createRuntime({ environment, journal, snapshots: { trim: true } });
  const putAwayFrom = async (from: number, count: number): Promise<void> => {
    for (let number = from; number < from + count; number += 1) {
      const desk = await openDesk(runtime, model, 1, idOf(number));
      await desk.start(1);
      await until(() => desk.open() !== undefined && desk.session.isIdle, 'an idle session');
      await desk.session.hibernate();
    }
  };
  try {
    await putAwayFrom(0, WARM_UP);
    const before = await heapBytes();
    await putAwayFrom(WARM_UP, n);
    const heap = (await heapBytes()) - before;
    const times = await wake({ path, journal, runtime });
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

/** The sessions in the order in which they are woken. */
const wokenOf = (n: number): readonly string[] =>
  Array.from({ length: WOKEN }, (_, woken) => idOf(WARM_UP + ((woken * 7919) % n)));

const offstage = (n: number): Promise<Numbers> =>
  putAway(n, async ({ runtime }) => {
    const times: number[] = [];
    for (const id of wokenOf(n)) {
      const begin = performance.now();
      const { session, open: question } = await openDesk(runtime, model, 1, id);
      times.push(performance.now() - begin);
      if (!question()) throw new Error(`Expected the question of ${id} to be open`);
      await session.hibernate();
    }
    return times;
  });

/** Opens the file and reads the rows of the session. */
function bareWake(path: string, id: string): number {
  const begin = performance.now();
  const database = new DatabaseSync(path, { readOnly: true });
  const rows = database.prepare('select * from entries where scope = ? order by id').all(id);
  database.close();
  const taken = performance.now() - begin;
  if (rows.length === 0) throw new Error(`Expected rows of ${id}`);
  return taken;
}

async function floor(n: number): Promise<Numbers> {
  const kept = [await parkBare(model, WARM_UP)];
  const before = await heapBytes();
  kept.push(await parkBare(model, n));
  const heap = ((await heapBytes()) - before) / n;
  const { wake50 = NaN, wake99 = NaN } = await putAway(n, ({ path, journal }) => {
    journal.close();
    return Promise.resolve(wokenOf(n).map((id) => bareWake(path, id)));
  });
  return { heap, wake50, wake99 };
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
    { figure: 'wake_p50', unit: 'ms', number: 'wake50', floor: 'floor', goal: null },
    { figure: 'wake_p99', unit: 'ms', number: 'wake99', floor: 'floor', goal: { ratio: 5 } },
  ],
};
