// Who may look at sessions and act in them, and what leaves.

import { request as ask } from 'node:http';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { memoryJournal, createRuntime } from '../../src/index.ts';
import { inspector } from '../../src/inspector/index.ts';
import { rideSession } from '../serve/support/served.ts';
import { mounted, TOKEN } from './support.ts';

const SECRET = 'the words of a user';

async function lived() {
  const journal = memoryJournal();
  const session = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  await session.start();
  await session.sendText(SECRET);
  await session.idle();
  return { journal, session };
}

/** Asks with headers that `fetch` does not let one set. */
async function statusOf(
  port: number,
  path: string,
  headers: Readonly<Record<string, string>>,
  method = 'GET',
): Promise<number | undefined> {
  const asked = ask({ port, host: '127.0.0.1', path, method, headers });
  asked.end();
  const [answer] = (await once(asked, 'response')) as [{ statusCode?: number; resume(): void }];
  answer.resume();
  return answer.statusCode;
}

test('INSPECTOR-1: nothing leaves without the token, under a foreign name, or for a foreign page', async () => {
  const { journal, session } = await lived();
  const { port } = await mounted({ journal });
  const host = `127.0.0.1:${port}`;
  const authorization = `Bearer ${TOKEN}`;
  const path = '/inspect/api/entries?session=ses_1';
  expect(await statusOf(port, path, { host, authorization })).toBe(200);
  expect(await statusOf(port, path, { host })).toBe(401);
  expect(await statusOf(port, path, { host, authorization: `${authorization}x` })).toBe(401);
  expect(await statusOf(port, `${path}&token=${encodeURIComponent(TOKEN)}`, { host })).toBe(401);
  expect(await statusOf(port, path, { host: 'evil.example', authorization })).toBe(403);
  const origin = 'http://evil.example';
  expect(await statusOf(port, path, { host, authorization, origin })).toBe(403);
  expect(await statusOf(port, path, { host, authorization, origin: 'null' })).toBe(403);
  const act = { host, authorization, origin, 'content-type': 'application/json' };
  expect(await statusOf(port, '/inspect/api/act', act, 'POST')).toBe(403);
  expect(await statusOf(port, '/inspect', { host }, 'PUT')).toBe(405);
  expect(await statusOf(port, '/inspect', { host })).toBe(200);
  expect(await statusOf(port, '/elsewhere', { host })).toBe(404);
  await session.close();
});

test('INSPECTED-2: words leave only if the app says so', async () => {
  const { journal, session } = await lived();
  const hidden = await mounted({ journal });
  const count = journal.read({ scope: 'ses_1' }).length;
  const all = async ({ ask: get }: Awaited<ReturnType<typeof mounted>>) => {
    const texts = [await (await get('entries?session=ses_1')).text()];
    for (let entry = 1; entry <= count; entry += 1)
      for (const id of ['session', 'outbox', 'interaction'])
        texts.push(await (await get(`at?session=ses_1&entry=${entry}&id=${id}`)).text());
    return texts.join('\n');
  };
  expect(await all(hidden)).not.toContain(SECRET);
  expect(await all(await mounted({ journal, redact: false }))).toContain(SECRET);
  await session.close();
});

test('INSPECTOR-2: without `act` nothing is done; with it, by the frames of a client and under a name', async () => {
  const { journal, session } = await lived();
  const post = (page: Awaited<ReturnType<typeof mounted>>, body: unknown) =>
    page.ask('act', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const frame = { type: 'send', id: 1, text: 'hello' };
  const looks = await mounted({ journal });
  expect(await (await post(looks, { session: 'ses_1', frame })).json()).toMatchObject({
    ok: false,
    code: 'NOT_ALLOWED',
  });
  const acts = await mounted({
    journal,
    user: 'ann',
    act: (id) => (id === 'ses_1' ? session : null),
  });
  expect(await (await post(acts, { session: 'ses_1', frame })).json()).toEqual({
    ok: true,
    value: null,
  });
  expect(await (await post(acts, { session: 'other', frame })).json()).toMatchObject({
    code: 'SESSION_UNKNOWN',
  });
  const answer = { type: 'answer', id: 2, requestId: 'q', answer: { approved: true } };
  expect(await (await post(acts, { session: 'ses_1', frame: answer })).json()).toMatchObject({
    ok: true,
    value: { accepted: false, reason: 'unknown' },
  });
  for (const wrong of [
    null,
    7,
    {},
    { frame: { type: 'voice.take' } },
    { frame: { ...frame, text: 1 } },
  ])
    expect((await post(acts, wrong)).status).toBe(400);
  expect((await acts.ask('act', { method: 'POST', body: 'x' })).status).toBe(415);
  const said = JSON.stringify(journal.read({ scope: 'ses_1' }));
  expect(said).toContain('"by":"ann"');
  await session.close();
});

test('a journal that fails is told, and does not end the process', async () => {
  const { ask: get, errors } = await mounted({
    journal: {
      append() {},
      read: () => {
        throw new Error('the disk of ann');
      },
    },
  });
  const answer = await get('entries?session=ses_1');
  expect(answer.status).toBe(500);
  expect(await answer.text()).not.toContain('ann');
  expect(errors).toHaveLength(1);
  expect(await (await get('sessions')).json()).toEqual([]);
  expect((await get('at?session=ses_1')).status).toBe(500);
});

test('wrong options are refused by name', () => {
  const journal = memoryJournal();
  expect(() => inspector({ journal, token: 'short' })).toThrow(/token/);
  expect(() => inspector({ journal, token: TOKEN, path: '/"><script>' })).toThrow(/path/);
  expect(() => inspector({ journal, token: TOKEN, password: 'x' } as never)).toThrow(/password/);
});
