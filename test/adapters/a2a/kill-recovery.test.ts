// A subagent on a hosted agent, whose process is killed at each of its lines (RELAY-MIND-1..3, A2A-SESSION-1): the task
// goes on at the agent, is found by its id, and gets each answer once.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { agentServer } from './support/agent-server.ts';

const PROGRAM = fileURLToPath(new URL('support/killed-program.ts', import.meta.url));
/** Of the lines of a life that is not killed: begun, four questions, an approval and a denial. */
const LINES = [1, 2, 3, 5, 7];

async function live(folder: string, url: string, killAt: number): Promise<void> {
  const program = spawn(process.execPath, [PROGRAM, folder, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let count = 0;
  createInterface({ input: program.stdout }).on('line', () => {
    count += 1;
    if (count === killAt) program.kill('SIGKILL');
  });
  await new Promise((resolve) => program.once('close', resolve));
}

test.each(LINES)('killed at line %i, and at line 2', async (killAt) => {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-test-a2a-'));
  const server = await agentServer();
  onTestFinished(() => {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const ends = (): readonly string[] =>
    readFileSync(join(folder, 'program.log'), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('ended '));
  for (const at of [killAt, 2, Infinity]) {
    await live(folder, server.url, at);
    if (ends().length > 0) break;
  }

  expect(ends()).toHaveLength(1);
  const outcome = JSON.parse(ends()[0]?.slice('ended '.length) ?? '') as object;
  expect(outcome).toMatchObject({ status: 'completed' });
  // One task, and each answer once, to its question.
  const [prompt, ...answers] = server.told;
  expect(prompt).toContain('acts:');
  expect(answers).toEqual([
    'Permitted, for this request only.',
    'about First question?',
    'about Second question?',
    expect.stringMatching(/^Not permitted\./),
  ]);
  expect((outcome as { readonly text: string }).text).toMatch(/denied\. Done\.$/);
});
