// A session with n subagents that wait for the user, on SQLite: the time to resume it in a new process (here: on a
// journal that was closed and opened again), and the disk space of each subagent. The floor reads the same entries
// and does nothing with them.

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRuntime } from '../../src/index.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import { askingModel, openDesk } from '../lib/desk.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';

const SESSION = 'ses_desk';
const model = askingModel(() => {});

async function onJournal(n: number, measure: (path: string) => Promise<number>): Promise<Numbers> {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-bench-'));
  const path = join(folder, 'journal');
  const environment = nodeEnvironment();
  try {
    const journal = sqliteJournal({ path, environment, synchronous: 'normal' });
    const desk = await openDesk(createRuntime({ environment, journal }), model, n, SESSION);
    await desk.start(n);
    await desk.session.suspend();
    journal.close();
    const bytes = statSync(path).size / n;
    return { ms: await measure(path), bytes };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const offstage = (n: number): Promise<Numbers> =>
  onJournal(n, async (path) => {
    const environment = nodeEnvironment();
    const journal = sqliteJournal({ path, environment, synchronous: 'normal' });
    const runtime = createRuntime({ environment, journal });
    const begin = performance.now();
    const desk = await openDesk(runtime, model, n, SESSION);
    const ms = performance.now() - begin;
    const waiting = desk.session.subagents.activeCount;
    if (waiting !== n) throw new Error(`Expected ${n} subagents to go on, got ${waiting}`);
    return ms;
  });

const floor = (n: number): Promise<Numbers> =>
  onJournal(n, async (path) => {
    const journal = sqliteJournal({ path, environment: nodeEnvironment(), synchronous: 'normal' });
    const begin = performance.now();
    const entries = journal.read({ scope: SESSION });
    const ms = performance.now() - begin;
    if (entries.length < n) throw new Error(`Expected more than ${n} entries`);
    return Promise.resolve(ms);
  });

export const recovery: Measurement = {
  contenders: { offstage, floor },
  sizes: [1, 100, 1000, 10_000],
  repetitions: 3,
  lines: [
    { figure: 'recovery', unit: 'ms', number: 'ms', floor: 'floor', goal: { value: 3000 } },
    { figure: 'recovery_disk', unit: 'bytes', number: 'bytes', floor: null, goal: null },
  ],
};
