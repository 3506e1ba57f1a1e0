// SERVE-4: one user's share of a server, over all sessions and connections, and the response of a full server.

import { once } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { createRuntime, memoryJournal } from '../../src/index.ts';
import { createSessionPool } from '../../src/entries/journal.ts';
import type { ServeOptions } from '../../src/serve/index.ts';
import { rideSession, served } from './support/served.ts';

const perSession: ServeOptions['authorize'] = ({ sessionId, token }) =>
  token === null ? null : { sessionId: sessionId ?? 's1', user: token, role: 'user' };

/** Sessions by id. */
function sessions() {
  const all = new Map<string, ReturnType<typeof rideSession>>();
  onTestFinished(async () => {
    for (const session of all.values()) await session.close();
  });
  return (sessionId: string) => {
    const session = all.get(sessionId) ?? rideSession({ sessionId });
    all.set(sessionId, session);
    return session;
  };
}

/** A user's socket and its first frame. */
async function socketOf(url: string, user: string, hello?: object) {
  const token = `offstage.token.${Buffer.from(user).toString('base64url')}`;
  const socket = new WebSocket(url.replace('http', 'ws'), ['offstage.v1', token]);
  onTestFinished(() => socket.terminate());
  const frames: Record<string, unknown>[] = [];
  const first = once(socket, 'message');
  socket.on('message', (data: Buffer) => {
    frames.push(JSON.parse(String(data)) as Record<string, unknown>);
  });
  await once(socket, 'open');
  if (hello) socket.send(JSON.stringify(hello));
  return { socket, frames, first };
}

const hello = (client: string) => ({ type: 'hello', v: 1, client });

describe("one user's connections", () => {
  test('count from the upgrade on, before any `hello` and across all sessions', async () => {
    const it = await served({
      session: sessions(),
      authorize: perSession,
      limits: { clientsPerUser: 2 },
    });
    await socketOf(it.url, 'ann');
    await socketOf(`${it.url}?session=s2`, 'ann');
    const third = await socketOf(`${it.url}?session=s3`, 'ann');
    await third.first;
    expect(third.frames[0]).toMatchObject({ type: 'bye', code: 'TOO_MANY_CLIENTS', retry: true });
    const stream = await it.web.fetch(
      new Request(`${it.url}?v=1&client=c1`, { headers: { authorization: 'Bearer ann' } }),
    );
    expect([stream.status, stream.headers.get('retry-after')]).toEqual([429, '5']);
    expect(await stream.json()).toMatchObject({ error: { code: 'TOO_MANY_CLIENTS' } });
    const bob = it.client({ token: 'bob' });
    await bob.status(({ state }) => state === 'open');
  });

  test('end the oldest stream when another one opens, but let the ended stream return', async () => {
    const it = await served({
      session: sessions(),
      authorize: perSession,
      limits: { streamsPerUser: 2 },
    });
    const open = async (): Promise<ReturnType<typeof it.client>> => {
      const client = it.client({ transport: 'stream' });
      await client.status(({ state }) => state === 'open');
      return client;
    };
    const [first, second] = [await open(), await open()];
    await open();
    const { reason } = await first.status(({ state }) => state === 'waiting');
    expect(reason?.code).toBe('TOO_MANY_STREAMS');
    expect(second.it.status.get().state).toBe('open');
    expect(it.web.size.clients).toBe(2);
  });
});

test('give the stream of a hidden page to other pages, and reopen it when the page is shown', async () => {
  const page = Object.assign(new EventTarget(), { visibilityState: 'hidden' });
  vi.stubGlobal('document', page);
  onTestFinished(() => void vi.unstubAllGlobals());
  const it = await served({
    session: sessions(),
    authorize: perSession,
    limits: { streamsPerUser: 1 },
  });
  const hidden = it.client({ transport: 'stream' });
  await hidden.status(({ state }) => state === 'open');
  const other = it.client({ transport: 'stream' });
  await other.status(({ state }) => state === 'open');
  const { retryAt } = await hidden.status(({ state }) => state === 'waiting');
  expect(retryAt).toBeNull();
  await hidden.environment.advance(600_000);
  expect(hidden.it.status.get().state).toBe('waiting');
  page.visibilityState = 'visible';
  page.dispatchEvent(new Event('visibilitychange'));
  await hidden.status(({ state }) => state === 'open');
});

describe("one user's rate limits", () => {
  test("apply to all of a user's connections, including new ones", async () => {
    const it = await served({
      session: sessions(),
      authorize: perSession,
      limits: { messages: { burst: 3, perSecond: 0.001 } },
    });
    const outcomes: unknown[] = [];
    for (const session of ['s1', 's2', 's1']) {
      const { it: ann } = it.client({ session });
      for (const text of ['one', 'two'])
        outcomes.push(
          await ann.send(text).then(
            () => 'taken',
            (error: unknown) => (error as { code?: unknown }).code,
          ),
        );
      ann.close();
    }
    const refused = 'RATE_LIMITED';
    expect(outcomes).toEqual(['taken', 'taken', 'taken', refused, refused, refused]);
    await expect(it.client({ token: 'bob' }).it.send('hello')).resolves.toBeUndefined();
  });

  test('apply to requests for the whole state and disconnect a client that sends too many', async () => {
    const it = await served({
      session: sessions(),
      authorize: perSession,
      limits: { welcomes: { burst: 3, perSecond: 0.001 } },
    });
    const { socket, frames } = await socketOf(it.url, 'ann', hello('c1'));
    for (let count = 0; count < 10; count += 1) socket.send('{"type":"resync"}');
    await once(socket, 'close');
    expect(frames.map(({ type }) => type)).toEqual(['welcome', 'welcome', 'welcome', 'bye']);
    expect(frames.at(-1)).toMatchObject({ code: 'RATE_LIMITED', retry: true });
  });
});

describe('a stream', () => {
  test.each([
    ['?v=1', 'no name'],
    ['?v=1&client=', 'an empty name'],
    [`?v=1&client=${'x'.repeat(8_000)}`, 'a long name'],
    ['?v=1&client=c1&epoch=e', 'half a position'],
    ['?v=1&client=c1&epoch=e&seq=-1', 'a position before the first'],
  ])('refuses the query %s: %s', async (query) => {
    const it = await served({ session: sessions(), authorize: perSession });
    const response = await it.web.fetch(
      new Request(`${it.url}${query}`, { headers: { authorization: 'Bearer ann' } }),
    );
    expect(response.status).toBe(400);
    expect(it.web.size.clients).toBe(0);
  });

  test('accepts POSTs only from its own user and session, even if a stream shares its client name', async () => {
    const session = sessions();
    const it = await served({ session, authorize: perSession });
    const open = async (user: string, id: string) => {
      const response = await it.web.fetch(
        new Request(`${it.url}?session=${id}&v=1&client=same`, {
          headers: { authorization: `Bearer ${user}` },
        }),
      );
      onTestFinished(() => response.body?.cancel());
      return response.status;
    };
    expect(await open('ann', 's1')).toBe(200);
    expect(await open('bob', 's1')).toBe(200);
    expect(await open('ann', 's2')).toBe(200);
    expect(it.web.size.clients).toBe(3);
    const posted = await it.web.fetch(
      new Request(`${it.url}?session=s1`, {
        method: 'POST',
        headers: { authorization: 'Bearer ann', 'content-type': 'application/json' },
        body: JSON.stringify({
          client: 'same',
          frames: [{ type: 'send', id: 1, text: 'of ann' }],
        }),
      }),
    );
    expect(posted.status).toBe(202);
    await session('s1').idle();
    const said = (id: string) =>
      session(id)
        .store.getSnapshot()
        .context.transcript.filter(({ role }) => role === 'user')
        .map(({ text }) => text);
    expect([said('s1'), said('s2')]).toEqual([['of ann'], []]);
  });
});

test('makes a client wait, with a reason, while the pool is full', async () => {
  const runtime = createRuntime({ journal: memoryJournal() });
  const pool = createSessionPool({
    runtime,
    maxAwake: 1,
    maxBusy: 1,
    open: (sessionId) => rideSession({ sessionId, runtime }),
  });
  onTestFinished(() => pool.close());
  const it = await served({ pool, authorize: perSession });
  const ann = it.client({ token: 'ann', session: 's1' });
  await ann.status(({ state }) => state === 'open');
  const bob = it.client({ token: 'bob', session: 's2' });
  const { reason } = await bob.status(({ state }) => state === 'waiting');
  expect(reason?.code).toBe('OVERLOADED');
  expect(it.errors).toMatchObject([{ error: { code: 'POOL_FULL' } }]);
  ann.it.close();
  await bob.reconnected();
  expect(bob.it.status.get()).toMatchObject({ state: 'open', sessionId: 's2' });
});
