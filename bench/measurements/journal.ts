// Appends to a journal: n units, each of which waits for its entry before it appends the next one, as commit units
// do. Compares a file with memory; the folder for temporary files must be on a disk.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryJournal, type Journal } from '../../src/index.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { sqliteJournal } from '../../src/adapters/sqlite-journal/index.ts';
import type { Line, Measurement, Numbers } from '../lib/measurement.ts';
import { p50p99 } from '../lib/statistics.ts';

const WARM_UP = 20;
/** The total number of entries; one unit alone waits for the disk each time. */
const ENTRIES = { alone: 500, together: 20_000 };
/** About the size of a model step's entry. */
const TEXT = 'x'.repeat(300);

async function write(journal: Journal, unit: string, from: number, to: number): Promise<number[]> {
  const latencies: number[] = [];
  for (let seq = from; seq < to; seq += 1) {
    const event = { type: 'model.responded', text: TEXT } as { type: string };
    const begin = performance.now();
    await journal.append({
      scope: 'ses_1',
      unit,
      seq,
      at: seq,
      actor: 'subagent',
      definitionVersion: 1,
      event,
    });
    latencies.push(performance.now() - begin);
  }
  return latencies;
}

async function appends(journal: Journal, n: number): Promise<Numbers> {
  const each = Math.ceil((n === 1 ? ENTRIES.alone : ENTRIES.together) / n);
  const units = Array.from({ length: n }, (_, number) => `sub_${number}`);
  await Promise.all(units.map((unit) => write(journal, unit, 1, WARM_UP)));
  const begin = performance.now();
  const latencies = await Promise.all(
    units.map((unit) => write(journal, unit, WARM_UP, WARM_UP + each)),
  );
  const seconds = (performance.now() - begin) / 1000;
  return { rate: (n * each) / seconds, ...p50p99(latencies.flat()) };
}

const memory = (n: number): Promise<Numbers> => appends(memoryJournal(), n);

async function file(synchronous: 'full' | 'normal', n: number): Promise<Numbers> {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-bench-'));
  const path = join(folder, 'journal');
  const journal = sqliteJournal({ path, environment: nodeEnvironment(), synchronous });
  try {
    return await appends(journal, n);
  } finally {
    journal.close();
    rmSync(folder, { recursive: true });
  }
}

const lines = (figure: string): readonly Line[] => [
  { figure: `${figure}_rate`, unit: '1/s', number: 'rate', floor: 'floor', goal: null },
  { figure: `${figure}_p50`, unit: 'ms', number: 'p50', floor: 'floor', goal: null },
  { figure: `${figure}_p99`, unit: 'ms', number: 'p99', floor: 'floor', goal: null },
];

const sizes = [1, 10, 100, 1000];

export const journalFull: Measurement = {
  contenders: { offstage: (n) => file('full', n), floor: memory },
  sizes,
  repetitions: 3,
  lines: lines('journal_full'),
};

export const journalNormal: Measurement = {
  contenders: { offstage: (n) => file('normal', n), floor: memory },
  sizes,
  repetitions: 3,
  lines: lines('journal_normal'),
};
