// Two processes on one server: one dies or is stopped, and the other takes over.

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, inject, test } from 'vitest';
import type { JournalEntry } from '../../../src/entries/journal.ts';
import type { PostgresJournal } from '../../../src/adapters/postgres-journal/index.ts';
import { entry, newSchema, open } from './support.ts';

/** Short, so that no test waits long. No test asserts this duration. */
const LEASE_MS = 400;

const writer = fileURLToPath(new URL('writer.ts', import.meta.url));

function start(schema: string) {
  const args = [writer, inject('postgresHost'), schema, String(LEASE_MS)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    ended,
    /** Returns its next line, or undefined when it has exited. */
    async next(): Promise<string | undefined> {
      const { done, value } = await lines.next();
      return done === true ? undefined : value;
    },
  };
}

/** Claims repeatedly, like a process that waits for its turn. */
async function takeOver(journal: PostgresJournal): Promise<void> {
  for (;;)
    try {
      await journal.claim('scope');
      return;
    } catch (error) {
      expect(error).toMatchObject({ code: 'SCOPE_IN_USE' });
    }
}

const seqs = (entries: readonly JournalEntry[]): number[] => entries.map(({ seq }) => seq);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

test('P9: takes over from a killed process without losing a stored entry', async () => {
  const schema = newSchema();
  const journal = await open({ schema, leaseMs: LEASE_MS });
  let kept = 0;
  for (const killAfter of [1, 5, 30]) {
    await journal.release('scope');
    const process = start(schema);
    for (let said = 1; ; said += 1) {
      const line = await process.next();
      if (line === undefined) break;
      kept = Number(line);
      if (said === killAfter) process.child.kill('SIGKILL');
    }
    await process.ended;
    await takeOver(journal);
    const entries = await journal.read({ scope: 'scope' });
    // The entry that was being written may exist although its answer never came.
    expect(entries.length - kept).toBeOneOf([0, 1]);
    expect(seqs(entries)).toEqual(upTo(entries.length));
    await journal.append(entry(entries.length + 1));
  }
});

test('APPEND-QUEUE-3: fences off a stopped process, which cannot write any more when it resumes', async () => {
  const schema = newSchema();
  const journal = await open({ schema, leaseMs: LEASE_MS });
  const process = start(schema);
  await process.next();
  process.child.kill('SIGSTOP');
  await takeOver(journal);
  const found = await journal.read({ scope: 'scope' });
  await journal.append(entry(found.length + 1));
  process.child.kill('SIGCONT');
  let last = '';
  for (let line = await process.next(); line !== undefined; line = await process.next())
    last = line;
  await process.ended;
  // The process exits with the error that its unit would get: FENCED, which must not be retried.
  expect(last).toBe('FENCED false');
  await journal.append(entry(found.length + 2));
  const after = await journal.read({ scope: 'scope' });
  expect(after.slice(found.length)).toEqual([entry(found.length + 1), entry(found.length + 2)]);
  expect(after.slice(0, found.length)).toEqual(found);
});
