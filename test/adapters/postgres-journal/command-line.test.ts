// The `offstage` commands on a journal in PostgreSQL.

import { expect, test } from 'vitest';
import type { Command } from '../../../src/cli/command/command.ts';
import { replayFor } from '../../../src/cli/replay/replay.ts';
import { sessions } from '../../../src/cli/sessions/sessions.ts';
import { createRuntime } from '../../../src/index.ts';
import { rideSession } from '../../serve/support/served.ts';
import { ask, connection, expireLeases, newSchema, open } from './support.ts';

const address = (): string => {
  const { host, user, database } = connection;
  return `postgres://${user}@/${database}?host=${encodeURIComponent(host)}`;
};

async function run(command: Command, ...args: readonly string[]) {
  let printed = '';
  let complained = '';
  const status = await command.run(
    args,
    (text) => void (printed += text),
    (text) => void (complained += text),
  );
  return { status, printed, complained };
}

const replay = (...args: readonly string[]) => run(replayFor(null), ...args);

test('SOURCE-1: refuses a database without a journal, and creates no tables in it', async () => {
  const { status, complained } = await replay(address());
  expect(status).toBe(2);
  expect(complained).toContain('Expected the tables of a journal in the schema offstage');
  expect(await ask(`select 1 from pg_namespace where nspname = 'offstage'`)).toEqual([]);
});

test('replays a running session from the database URL', async () => {
  const schema = newSchema();
  const journal = await open({ schema });
  const session = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  await session.start();
  const listed = await replay(address(), '--schema', schema);
  expect(listed).toMatchObject({ status: 0, complained: '' });
  expect(listed.printed).toContain('1 session');
  expect(listed.printed).not.toContain('host=');
  const told = await replay(address(), '--schema', schema, '--session', 'ses_1');
  expect(told.printed).toContain('transport.ready');
  await session.close();
});

test('SESSIONS-2: names the live process that holds a session, and opens the session after it dies', async () => {
  const schema = newSchema();
  const journal = await open({ schema, address: 'http://10.0.0.7:3000' });
  const session = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  await session.start();
  await session.sendText('use book_ride');
  const question = () => session.store.getSnapshot().context.questions[0];
  await expect.poll(() => question()?.state).toBe('presenting');
  const { requestId = '' } = question() ?? {};
  const at = ['--journal', address(), '--schema', schema, '--session', 'ses_1'];
  const answer = () =>
    run(sessions, 'answer', requestId, '--option', 'premium', '--by', 'ann', ...at);
  const before = await journal.read();
  const refused = await answer();
  expect(refused).toMatchObject({ status: 1, printed: '' });
  expect(refused.complained).toContain('ses_1 is in use by');
  expect(refused.complained).toContain('--url http://10.0.0.7:3000');
  expect(await journal.read()).toEqual(before);
  expect((await run(sessions, 'show', ...at)).printed).toContain('Economy or Premium?');

  await expireLeases(schema);
  await journal.close();
  expect(await answer()).toEqual({
    status: 0,
    printed: `${requestId}: answered as ann\n`,
    complained: '',
  });
  const later = await open({ schema });
  const next = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal: later }) });
  await next.start();
  await expect
    .poll(() => next.subagents.list()[0]?.outcome?.text)
    .toBe('Your premium ride is booked.');
  await next.close();
});
