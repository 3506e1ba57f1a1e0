// A subagent on an ACP agent; its program or the agent's process is killed at random (RELAY-LOOP-1..3, ACP-PROCESS-1).
// No permission is given without the user, no answer reaches another question, and no process is left over.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { sweep } from '../../../src/adapters/agent-process/agent-process.ts';
import { count, linesOf, KILL_TIMEOUT_MS, playKills, SEEDS } from '../../support/relay-kills.ts';

const PROGRAM = fileURLToPath(new URL('support/killed-program.ts', import.meta.url));

function agentsIn(folder: string): readonly number[] {
  const marks = join(folder, 'processes');
  return existsSync(marks) ? readdirSync(marks).map((name) => Number.parseInt(name, 10)) : [];
}

function kill(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The process has exited meanwhile.
  }
}

function isAlive(pid: number): boolean {
  try {
    // A killed process that has not been reaped is no longer running.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

test.each(SEEDS)(
  'completes a run despite random kills of its program and agent (seed %i)',
  { timeout: KILL_TIMEOUT_MS },
  async (seed) => {
    const seen = new Set<number>();
    const kills = {
      seed,
      program: PROGRAM,
      killAgent(folder: string) {
        for (const pid of agentsIn(folder)) kill(pid);
      },
      afterLife(folder: string) {
        for (const pid of agentsIn(folder)) seen.add(pid);
      },
    };
    await playKills(kills, ({ folder, told, outcome }) => {
      const heard = linesOf(join(folder, 'agent.log'));
      // The last turn contains a denial, whatever came before.
      expect(outcome).toMatchObject({ status: 'completed' });
      expect(outcome.text.trimEnd()).toMatch(/Done\.$/);
      // Only the user gives permissions, and each is used once.
      const given = heard.filter(({ what }) => what === 'permitted');
      expect(given.every(({ detail }) => detail === 'Edit')).toBe(true);
      expect(given.length).toBeLessThanOrEqual(count(told, 'approved'));
      // Each answer reached its question.
      for (const { detail } of heard.filter(({ what }) => what === 'answer')) {
        const [question = '', answer = ''] = detail.split(' => ');
        expect(answer).toBe(`about ${question}`);
      }
      expect(count(heard, 'answer')).toBeGreaterThanOrEqual(2);
      // No process is left running.
      sweep(join(folder, 'processes'));
      expect(agentsIn(folder)).toEqual([]);
      expect([...seen].filter(isAlive)).toEqual([]);
    });
  },
);
