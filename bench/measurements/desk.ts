// A page of the desk over n sessions, each of which has a question of its own, on SQLite. The floor is `select 1` on
// the same file.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';
import { p50p99 } from '../lib/statistics.ts';

const PAGES = 500;
const BATCH = 1000;

async function measure(n: number, isFloor: boolean): Promise<Numbers> {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-bench-'));
  const path = join(folder, 'journal');
  try {
    const environment = nodeEnvironment();
    const journal = sqliteJournal({ path, environment, synchronous: 'normal' });
    const { desk } = journal;
    if (!desk) throw new Error('Expected a desk');
    const row = (number: number) => ({
      id: 'question q1',
      kind: 'question',
      since: 1_700_000_000_000 + number,
      answerableBy: [`user_${number % 1000}`],
      body: JSON.stringify({ title: 'Which colour?', more: 0 }),
    });
    for (let from = 0; from < n; from += BATCH)
      await Promise.all(
        Array.from({ length: BATCH }, async (_, at) =>
          desk.set(`ses_${from + at}`, [row(from + at)]),
        ),
      );
    let find: (page: number) => unknown = (page) =>
      desk.find({ kinds: ['question'], answerableBy: [`user_${page % 1000}`], limit: 50 });
    let end = (): void => journal.close();
    if (isFloor) {
      journal.close();
      const database = new DatabaseSync(path);
      find = () => database.prepare('select 1').all();
      end = () => database.close();
    }
    const times: number[] = [];
    for (let page = 0; page < PAGES; page += 1) {
      const begin = performance.now();
      await find(page);
      times.push(performance.now() - begin);
    }
    end();
    const { p50, p99 } = p50p99(times);
    return { p50, p99 };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export const desk: Measurement = {
  contenders: { offstage: (n) => measure(n, false), floor: (n) => measure(n, true) },
  sizes: [100_000],
  repetitions: 5,
  lines: [
    { figure: 'desk_page_p50', unit: 'ms', number: 'p50', floor: 'floor', goal: { value: 50 } },
    { figure: 'desk_page_p99', unit: 'ms', number: 'p99', floor: 'floor', goal: null },
  ],
};
