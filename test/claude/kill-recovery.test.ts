// A subagent on the real Claude Code whose process is killed while a question is open (CLAUDE-SESSION-1). In the
// meantime no Claude process runs, and after a restart the answer reaches the same call. After random kills, every
// permission has come from the user, every answer has reached its question, no process is left, and the run ends once.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import {
  KILL_TIMEOUT_MS,
  killProcessesIn,
  playKills,
  processesIn,
  requestsTo,
  SEEDS,
} from '../support/relay-kills.ts';
import { expectHeld } from './support/kill-checks.ts';
import { messagesEndpoint } from './support/messages-endpoint.ts';

const PROGRAM = fileURLToPath(new URL('support/killed-program.ts', import.meta.url));

const marksIn = (folder: string): string => join(folder, 'claude', 'processes');

async function live(folder: string, url: string, killAt: number): Promise<readonly string[]> {
  const program = spawn(process.execPath, [PROGRAM, folder, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let count = 0;
  const marks = marksIn(folder);
  let running: readonly string[] = [];
  createInterface({ input: program.stdout }).on('line', (line) => {
    count += 1;
    if (count !== killAt) return;
    if (line.startsWith('asked') && existsSync(marks)) running = readdirSync(marks);
    program.kill('SIGKILL');
  });
  await new Promise((resolve) => program.once('close', resolve));
  return running;
}

/** The log lines of a life without a kill: start, permission, question, permission. */
test.each([2, 3, 4])('killed at line %i', async (killAt) => {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-test-claude-'));
  const endpoint = await messagesEndpoint();
  onTestFinished(() => {
    endpoint.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  expect(await live(folder, endpoint.url, killAt)).toEqual([]);
  await live(folder, endpoint.url, Infinity);

  const lines = readFileSync(join(folder, 'program.log'), 'utf8').trim().split('\n');
  const [end = '', ...more] = lines.filter((line) => line.startsWith('ended '));
  expect(more).toEqual([]);
  expect(lines.filter((line) => line.startsWith('in-doubt'))).toEqual([]);
  expect(JSON.parse(end.slice('ended '.length))).toMatchObject({
    status: 'completed',
    text: expect.stringMatching(/denied\. Done\.$/) as string,
  });
  // Claude received no new prompt.
  expect(endpoint.prompts.size).toBe(1);
  expect(endpoint.results).toEqual(['permitted. ', 'answer: about Which one?. ', 'denied. ']);
  expect(processesIn(marksIn(folder))).toEqual([]);
});

function isAlive(pid: number): boolean {
  try {
    // A killed process that its parent has not reaped yet is no longer running.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

test.each(SEEDS)('seed %i', { timeout: KILL_TIMEOUT_MS }, async (seed) => {
  const endpoint = await messagesEndpoint();
  onTestFinished(() => endpoint.close());
  const seen = new Set<number>();
  const kills = {
    seed,
    program: PROGRAM,
    args: [endpoint.url],
    // No process runs while a question is open. Claude runs when it calls its model.
    watch: requestsTo(endpoint),
    killAgent(folder: string) {
      for (const pid of killProcessesIn(marksIn(folder))) seen.add(pid);
    },
    afterLife(folder: string) {
      for (const pid of processesIn(marksIn(folder))) seen.add(pid);
    },
  };
  await playKills(kills, (played) => {
    expectHeld(played, endpoint, marksIn(played.folder));
    expect([...seen].filter(isAlive)).toEqual([]);
  });
});
