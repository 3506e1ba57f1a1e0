// Two processes serve the sessions in one database. A client finds the process that owns its session, and the other
// process after the first one has ended.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, inject, onTestFinished, test } from 'vitest';
import { testClient } from '../../serve/support/served.ts';
import { newSchema } from './support.ts';

/** Short, so that no test waits long. No test asserts this duration. */
const LEASE_MS = 400;
const program = fileURLToPath(new URL('node.ts', import.meta.url));

async function start(schema: string) {
  const args = ['--conditions=offstage-source', program, inject('postgresHost'), schema];
  const child = spawn(process.execPath, [...args, String(LEASE_MS)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, url: line.toString('utf8').trim() };
}

test("P9: redirects a client to its session's process, and to another process after a kill", async () => {
  const schema = newSchema();
  const one = await start(schema);
  const two = await start(schema);
  const ann = testClient({ url: one.url, token: 'ann' });
  await ann.it.send('use book_ride');
  const { requestId } = await ann.question();

  // The second process does not own the session, but knows which process does.
  const bob = testClient({ url: two.url, token: 'bob' });
  await bob.reconnected();
  expect((await bob.question()).requestId).toBe(requestId);

  one.child.kill('SIGKILL');
  await once(one.child, 'close');
  // The dead process's lease has to expire first.
  await bob.status(({ state }) => state !== 'open');
  await bob.reconnected();
  expect((await bob.question()).requestId).toBe(requestId);
  expect(await bob.it.answer(requestId, { optionId: 'economy' })).toMatchObject({ accepted: true });
  const { subagents } = await bob.until((state) =>
    state.subagents.some(({ state: now }) => now === 'completed'),
  );
  expect(subagents).toMatchObject([
    { outcome: { text: 'Your economy ride is booked.', toolLedger: expect.any(Array) } },
  ]);
});
