// A subagent on the real Claude Code, whose process is killed while it is asked (CLAUDE-SESSION-1): meanwhile no process
// of Claude runs, and the answer reaches the very call in the next life.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { messagesEndpoint } from './support/messages-endpoint.ts';

const PROGRAM = fileURLToPath(new URL('support/killed-program.ts', import.meta.url));

async function live(folder: string, url: string, killAt: number): Promise<readonly string[]> {
  const program = spawn(process.execPath, [PROGRAM, folder, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let count = 0;
  const marks = join(folder, 'claude', 'processes');
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

/** The lines of a life that is not killed: begun, a permission, a question, a permission. */
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
  // It was never prompted anew.
  expect(endpoint.prompts.size).toBe(1);
  expect(endpoint.results).toEqual(['permitted. ', 'answer: two. ', 'denied. ']);
  expect(readdirSync(join(folder, 'claude', 'processes'))).toEqual([]);
});
