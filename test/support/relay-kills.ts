// Random kills of a program with a subagent on a third-party agent (`relay-life.ts`), each with its own seed.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'vitest';
import { mulberry32 } from '../../src/testing/doubles/chance.ts';

/** The seeds of a test. `npm run kills` plays 50. */
export const SEEDS: readonly number[] = Array.from(
  { length: Number(process.env['KILL_SEEDS'] ?? 5) },
  (_, at) => at + 1,
);

/** Each life loads a program, so eight lives take minutes on a busy machine. */
export const KILL_TIMEOUT_MS = 300_000;

const MAX_LIVES = 8;
/** More lines than a life that is not killed prints. */
const LINES = 10;

export interface Line {
  readonly what: string;
  readonly detail: string;
}

/** Reads the lines that a program or an agent has written. */
export function linesOf(path: string): readonly Line[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => {
      const [what = '', ...detail] = line.split(' ');
      return { what, detail: detail.join(' ') };
    });
}

export function count(lines: readonly Line[], what: string): number {
  return lines.filter((line) => line.what === what).length;
}

/** Returns the processes of an agent, which are found by the markers that `agent-process` leaves in a folder. */
export function processesIn(marks: string): readonly number[] {
  return existsSync(marks) ? readdirSync(marks).map((name) => Number.parseInt(name, 10)) : [];
}

/** Kills these processes and their process groups. Returns them. */
export function killProcessesIn(marks: string): readonly number[] {
  const found = processesIn(marks);
  for (const pid of found)
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // The process has ended in the meantime.
    }
  return found;
}

/** Counts each request from an agent to its model's endpoint as a moment. */
export function requestsTo(endpoint: { onRequest: () => void }): NonNullable<Kills['watch']> {
  return (moment) => {
    endpoint.onRequest = moment;
    return () => {
      endpoint.onRequest = () => {};
    };
  };
}

export interface Kills {
  readonly seed: number;
  /** The program, and the arguments that follow the folder. */
  readonly program: string;
  readonly args?: readonly string[];
  /** Ends the agent instead of the program. If absent, only the program is killed. */
  readonly killAgent?: (folder: string) => void;
  /** Watches for moments other than the program's lines. Returns a function that stops watching. @defaultValue none */
  readonly watch?: (moment: () => void) => () => void;
  /** Called after each life. */
  readonly afterLife?: (folder: string) => void;
}

export interface Played {
  readonly folder: string;
  readonly told: readonly Line[];
  readonly outcome: { readonly status: string; readonly text: string };
}

/**
 * Plays lives until one of them reaches the end, with the result delivered exactly once. After `check`, removes
 * everything that the lives have left behind.
 */
export async function playKills(
  { seed, program, args = [], killAgent, watch, afterLife }: Kills,
  check: (played: Played) => void | Promise<void>,
): Promise<void> {
  const random = mulberry32(seed);
  const folder = mkdtempSync(join(tmpdir(), 'offstage-test-kill-'));
  const log = join(folder, 'program.log');
  try {
    for (let life = 1; count(linesOf(log), 'ended') === 0; life += 1) {
      expect(life).toBeLessThanOrEqual(MAX_LIVES);
      const killAt = life < MAX_LIVES / 2 ? 1 + Math.floor(random.next() * LINES) : Infinity;
      const isAgent = random.next() < 0.5 && killAgent !== undefined;
      const instead = isAgent ? () => killAgent(folder) : null;
      await live([program, folder, ...args], killAt, instead, watch);
      afterLife?.(folder);
    }
    const told = linesOf(log);
    const ends = told.filter(({ what }) => what === 'ended');
    expect(ends).toHaveLength(1);
    const outcome = JSON.parse(ends[0]?.detail ?? '{}') as Played['outcome'];
    await check({ folder, told, outcome });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function live(
  command: readonly string[],
  killAt: number,
  instead: (() => void) | null,
  watch: Kills['watch'] = () => () => {},
): Promise<void> {
  const program = spawn(process.execPath, [...command], { stdio: ['ignore', 'pipe', 'inherit'] });
  let moments = 0;
  const moment = (): void => {
    moments += 1;
    if (moments !== killAt) return;
    if (instead) instead();
    else program.kill('SIGKILL');
  };
  const stop = watch(moment);
  createInterface({ input: program.stdout }).on('line', moment);
  await new Promise((resolve) => program.once('close', resolve));
  stop();
}
