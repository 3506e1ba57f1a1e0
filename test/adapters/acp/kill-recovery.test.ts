// A subagent on an ACP agent, whose process or whose agent's process is killed at random (RELAY-MIND-1..3,
// ACP-PROCESS-1): no permission that nobody gave, no answer to another question, no process left over.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { sweep } from '../../../src/adapters/agent-process/agent-process.ts';
import { mulberry32 } from '../../../src/testing/doubles/chance.ts';

const PROGRAM = fileURLToPath(new URL('support/killed-program.ts', import.meta.url));
/** `npm run kills` plays 50. */
const SEEDS = Number(process.env['KILL_SEEDS'] ?? 5);
const MAX_LIVES = 8;
/** Lines of a life that is not killed, and some more. */
const LINES = 10;

interface Line {
  readonly what: string;
  readonly detail: string;
}

function linesOf(path: string): readonly Line[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => {
      const [what = '', ...detail] = line.split(' ');
      return { what, detail: detail.join(' ') };
    });
}

/** Plays one life. Kills the program, or its agent, after this many lines. */
async function live(folder: string, killAt: number, victim: 'program' | 'agent'): Promise<void> {
  const program = spawn(process.execPath, [PROGRAM, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let count = 0;
  createInterface({ input: program.stdout }).on('line', () => {
    count += 1;
    if (count !== killAt) return;
    if (victim === 'program') program.kill('SIGKILL');
    else for (const pid of agentsIn(folder)) kill(pid);
  });
  await new Promise((resolve) => program.once('close', resolve));
}

function agentsIn(folder: string): readonly number[] {
  const marks = join(folder, 'processes');
  return existsSync(marks) ? readdirSync(marks).map((name) => Number.parseInt(name, 10)) : [];
}

function kill(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

function isAlive(pid: number): boolean {
  try {
    // A process that was killed, and not yet waited for, is no longer running.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

test.each(Array.from({ length: SEEDS }, (_, at) => at + 1))('seed %i', async (seed) => {
  const random = mulberry32(seed);
  const folder = mkdtempSync(join(tmpdir(), 'offstage-test-kill-'));
  const seen = new Set<number>();
  try {
    const log = join(folder, 'program.log');
    for (let life = 1; !linesOf(log).some(({ what }) => what === 'ended'); life += 1) {
      expect(life).toBeLessThanOrEqual(MAX_LIVES);
      const killAt = life < MAX_LIVES / 2 ? 1 + Math.floor(random.next() * LINES) : Infinity;
      await live(folder, killAt, random.next() < 0.5 ? 'program' : 'agent');
      for (const pid of agentsIn(folder)) seen.add(pid);
    }
    const told = linesOf(log);
    const heard = linesOf(join(folder, 'agent.log'));
    const count = (lines: readonly Line[], what: string): number =>
      lines.filter((line) => line.what === what).length;
    const ends = told.filter(({ what }) => what === 'ended');
    expect(ends).toHaveLength(1);
    const outcome = JSON.parse(ends[0]?.detail ?? '{}') as { status: string; text: string };
    // A denial in the last turn, whatever came before.
    expect(outcome).toMatchObject({ status: 'completed' });
    expect(outcome.text.trimEnd()).toMatch(/Done\.$/);
    // Nobody but the user gives a permission, and each is used once.
    const given = heard.filter(({ what }) => what === 'permitted');
    expect(given.every(({ detail }) => detail === 'Edit')).toBe(true);
    expect(given.length).toBeLessThanOrEqual(count(told, 'approved'));
    // Each answer went to its question.
    for (const { detail } of heard.filter(({ what }) => what === 'answer')) {
      const [question = '', answer = ''] = detail.split(' => ');
      expect(answer).toBe(`about ${question}`);
    }
    expect(count(heard, 'answer')).toBeGreaterThanOrEqual(2);
    // Nothing is left running.
    sweep(join(folder, 'processes'));
    expect(agentsIn(folder)).toEqual([]);
    expect([...seen].filter(isAlive)).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
