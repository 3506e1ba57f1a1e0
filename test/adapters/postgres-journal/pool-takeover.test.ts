// SESSION-POOL-3, SESSION-POOL-4 on a real server: a process with a pool is killed, and the pool of another process
// takes over its sessions. Hibernated sessions are taken over when they are due, the others at once.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import type { Environment } from '../../../src/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { expireLeases, newSchema, open } from './support.ts';
import { ASK_MS, sleepersOn } from './sleepers.ts';

/** Claims expire when the test decides, however fast the machine is. */
const LEASE_MS = 600_000;

const source = fileURLToPath(new URL('sleepers.ts', import.meta.url));

/** A clock that the test can advance. */
function forwardClock(): Environment & { forward(ms: number): void } {
  const node = nodeEnvironment();
  let ahead = 0;
  return {
    ...node,
    clock: { now: () => node.clock.now() + ahead },
    forward(ms) {
      ahead += ms;
    },
  };
}

test("SESSION-POOL-3, SESSION-POOL-4: resumes a dead process's sessions immediately, or when due if asleep", async () => {
  const schema = newSchema();
  const environment = forwardClock();
  const journal = await open({ schema, leaseMs: LEASE_MS });
  const opened: string[] = [];
  const errors: string[] = [];
  let told: (text: string) => void = () => {};
  const result = new Promise<string>((resolve) => (told = resolve));
  let woken = (): void => {};
  const hasWoken = new Promise<void>((resolve) => (woken = resolve));
  const pool = sleepersOn(journal, {
    environment,
    opened(sessionId) {
      opened.push(sessionId);
      if (sessionId === 'awake') woken();
    },
    said: (_, text) => told(text),
    failed: (where) => errors.push(where),
  });
  await pool.start();
  const child = spawn(
    process.execPath,
    [source, inject('postgresHost'), schema, String(LEASE_MS)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    // While the process is alive, no other process takes its sessions.
    expect(opened).toEqual([]);
    child.kill('SIGKILL');
  }
  await ended;
  expect(lines).toEqual(['ready']);
  await expireLeases(schema);
  await hasWoken;
  expect(opened).toEqual(['awake']);

  environment.forward(ASK_MS + 1);
  expect(await result).toMatch(/^Told: .*did not respond in time/s);
  await pool.close();
  expect(opened).toEqual(['awake', 'asleep']);
  expect(errors).toEqual([]);
});
