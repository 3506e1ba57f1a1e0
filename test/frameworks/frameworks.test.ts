// Runs offstage/serve inside third-party apps, with both ways to connect a client, and checks that the app's routes
// still work.

import { describe, expect, test } from 'vitest';
import { rideSession, served } from '../serve/support/served.ts';
import { hosts } from './hosts.js';

describe.each(Object.keys(hosts))('%s', (host) => {
  const inHost = async (session: ReturnType<typeof rideSession>) =>
    served({ session: () => session }, { mount: (web) => hosts[host]!(web) });

  test.each(['websocket', 'stream'] as const)('answers a question over a %s', async (transport) => {
    const session = rideSession();
    const { client, errors } = await inHost(session);
    const ann = client({ transport });
    await ann.it.send('use book_ride');
    const { requestId } = await ann.question();
    expect(await ann.it.answer(requestId, { optionId: 'premium' })).toEqual({
      accepted: true,
      by: 'ann',
    });
    await ann.until(({ deliveries }) => deliveries.some(({ kind }) => kind === 'result'));
    expect(ann.it.status.get().transport).toBe(transport);
    await session.close();
    await ann.status(({ state }) => state === 'closed');
    expect(errors).toEqual([]);
  });

  test('answers a client that has a wrong token with UNAUTHORIZED', async () => {
    const session = rideSession();
    const { client } = await inHost(session);
    for (const transport of ['websocket', 'stream'] as const) {
      const unauthorized = client({ transport, token: 'wrong' });
      const { reason } = await unauthorized.status(({ state }) => state === 'closed');
      expect(reason?.code).toBe('UNAUTHORIZED');
    }
    await session.close();
  });

  test("does not affect the app's own pages and forms", async () => {
    const session = rideSession();
    const { url } = await inHost(session);
    expect(await (await fetch(new URL('/', url))).text()).toBe('the page');
    const form = await fetch(new URL('/form', url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"a":1}',
    });
    expect(await form.json()).toEqual({ a: 1 });
    expect((await fetch(new URL('/nothing', url))).status).toBe(404);
    await session.close();
  });

  test('makes its clients wait for the next server when the host closes', async () => {
    const session = rideSession();
    const it = await inHost(session);
    const ann = it.client({ transport: 'stream' });
    await ann.status(({ state }) => state === 'open');
    await it.stop();
    await ann.status(({ state }) => state === 'waiting');
    await session.close();
  });
});
