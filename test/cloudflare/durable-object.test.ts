// A session in a Durable Object, in workerd, and its clients: SESSION-HOST-1 to SESSION-HOST-4, DURABLE-JOURNAL-1 to
// DURABLE-JOURNAL-3. home.test.ts contains the cases that every home for sessions passes, with SIGKILL.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { ConnectOptions, SocketClass } from '../../src/client/index.ts';
import { PING, PONG } from '../../src/client/protocol.ts';
import { testClient, type TestClient } from '../serve/support/served.ts';
import { rideModel } from './support/ride-model.ts';
import { bundle, start } from './support/workerd.js';

const folder = mkdtempSync(join(tmpdir(), 'offstage-cloudflare-'));
const [chats, suite] = [join(folder, 'chats.mjs'), join(folder, 'suite.mjs')];
let model: Awaited<ReturnType<typeof rideModel>>;
let running: Awaited<ReturnType<typeof start>> | null = null;

beforeAll(async () => {
  model = await rideModel();
  await Promise.all([bundle('session-worker.js', chats), bundle('conformance-worker.js', suite)]);
});

afterEach(async () => {
  await running?.kill();
  running = null;
});

afterAll(() => {
  model.close();
  rmSync(folder, { recursive: true, force: true });
});

async function run(worker = chats) {
  const env = { MODEL_URL: model.url, INPUT_TIMEOUT_MS: '600000' };
  running = await start(worker, join(folder, 'objects'), env);
  return running;
}

interface Look {
  readonly bornAt: number;
  readonly isAwake: boolean;
  readonly alarm: number | null;
  readonly entries: number;
  readonly errors: readonly string[];
}

async function ask<T>(path: string): Promise<T> {
  const response = await fetch(new URL(path, running?.url));
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as T;
}

const look = (session: string): Promise<Look> => ask(`look?session=${session}`);

/** Polls until the session has left memory. */
async function asleep(session: string): Promise<Look> {
  for (;;) {
    const found = await look(session);
    if (!found.isAwake) return found;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const clientOf = (session: string, token = 'ann', more: Partial<ConnectOptions> = {}): TestClient =>
  testClient({
    url: new URL('offstage', running?.url),
    session,
    token,
    transport: 'websocket',
    ...more,
  });

/**
 * Connects one client at a time, because workerd never evicts an object whose first two sockets were opened
 * simultaneously.
 */
async function connected(session: string, token: string): Promise<TestClient> {
  const client = clientOf(session, token);
  await client.status(({ state }) => state === 'open');
  return client;
}

const told = (client: TestClient, words: string) =>
  client.until(({ transcript }) => transcript.some(({ text }) => text.includes(words)));

/** Returns the server's status for a request that does not come from the project's client. */
function upgrade(session: string, headers: Record<string, string>, path = 'offstage') {
  const url = new URL(`${path}?session=${session}`, running?.url.replace('http', 'ws'));
  const socket = new WebSocket(url, ['offstage.v1', `offstage.token.${btoa('ann')}`], { headers });
  return new Promise<number>((resolve) => {
    socket.on('error', () => undefined);
    socket.on('unexpected-response', (_, { statusCode = 0 }) => resolve(statusCode));
    socket.on('open', () => resolve(101));
  }).finally(() => socket.terminate());
}

test('DURABLE-JOURNAL-1 DURABLE-JOURNAL-2: passes the journal suite and stores a 5 MB event in pieces', async () => {
  await run(suite);
  const { results, large } = await ask<{
    results: readonly { name: string; result: string }[];
    large: { isSame: boolean; pieces: number; longest: number; left: number };
  }>('x');
  expect(results.filter(({ result }) => result.startsWith('failed'))).toEqual([]);
  expect(results.filter(({ result }) => result === 'ok').length).toBeGreaterThan(40);
  expect(large).toMatchObject({ isSame: true, left: 0 });
  expect(large.pieces).toBeGreaterThan(1);
  expect(large.longest).toBeLessThan(2_000_000);
});

describe('the clients of an object', () => {
  test('DURABLE-JOURNAL-3: keep an open question only in storage, and use its deadline as the alarm', async () => {
    await run();
    const ann = clientOf('a');
    await ann.it.send('Book me a ride');
    const { requestId, options } = await ann.question();
    expect(options.map(({ id }) => id)).toEqual(['economy', 'premium']);
    const sleeping = await asleep('a');
    // The alarm is the question's deadline of ten minutes, not the watchdog for a session in memory.
    expect((sleeping.alarm ?? 0) - Date.now()).toBeGreaterThan(60_000);
    expect(sleeping).toMatchObject({ entries: 1, errors: [] });
    expect(await ann.it.answer(requestId, { optionId: 'premium' })).toEqual({
      accepted: true,
      by: 'ann',
    });
    await told(ann, 'Booked: premium');
    const { deliveryId = '' } = ann.state().deliveries.find(({ kind }) => kind === 'result') ?? {};
    await ann.it.shown(deliveryId);
    await ann.until(({ deliveries }) =>
      deliveries.some((each) => each.deliveryId === deliveryId && each.state === 'delivered'),
    );
    expect(await asleep('a')).toMatchObject({ alarm: null, errors: [] });
  });

  test('receive a reminder when the alarm wakes an evicted object', async () => {
    const { evict } = await run();
    const ann = await connected('r', 'ann');
    await ann.it.send('Remind me of the pizza');
    await told(ann, 'I am on it');
    await asleep('r');
    await evict('r');
    await told(ann, 'Take the pizza out');
    const { schedules } = ann.state();
    expect(schedules).toEqual([]);
    expect(await asleep('r')).toMatchObject({ errors: [] });
  });

  test('SESSION-HOST-1: stay connected when the object is evicted, then answer and receive the result', async () => {
    const { evict } = await run();
    const ann = await connected('b', 'ann');
    const eve = await connected('b', 'eve');
    const states: string[] = [];
    ann.it.status.subscribe(({ state }) => states.push(state));
    await ann.it.send('Book me a ride');
    const { requestId } = await ann.question();
    await eve.until(({ questions }) => questions.some(({ state }) => state === 'open'));
    const before = model.calls.length;
    const { bornAt } = await asleep('b');
    await evict('b');
    const receipt = await ann.it.answer(requestId, { optionId: 'economy' });
    expect(receipt).toEqual({ accepted: true, by: 'ann' });
    await Promise.all([told(ann, 'Booked: economy'), told(eve, 'Booked: economy')]);
    expect((await look('b')).bornAt).toBeGreaterThan(bornAt);
    // The tab kept the same socket.
    expect(states.slice(states.indexOf('open'))).not.toContain('connecting');
    // Only the rider's last step and the report run; nothing is repeated.
    expect(model.calls.slice(before)).toEqual([
      'rider: Booked: economy',
      'lead: Done. Booked: economy',
    ]);
    // After another eviction, the new hub accepts messages and remembers their receipts.
    await asleep('b');
    await evict('b');
    await ann.it.send('hello');
    await told(ann, 'You said: hello');
  });

  test('receive a reply to a ping even while the object is evicted', async () => {
    const { evict } = await run();
    let [pings, pongs] = [0, 0];
    let ponged = (): void => undefined;
    class Counting extends WebSocket {
      override send(data: string): void {
        if (data === PING) pings += 1;
        super.send(data);
      }
      override emit(name: string, ...args: unknown[]): boolean {
        const isPong = name === 'message' && String(args[0]) === PONG;
        if (isPong) pongs += 1;
        const isHeard = super.emit(name, ...args);
        if (isPong) ponged();
        return isHeard;
      }
    }
    const ann = clientOf('c', 'ann', { WebSocket: Counting as unknown as SocketClass });
    await ann.it.send('hello');
    await told(ann, 'You said: hello');
    await asleep('c');
    await evict('c');
    while (pings < 5) {
      await ann.environment.advance(50);
      // The answer comes in real time.
      if (pongs < pings) await new Promise<void>((resolve) => (ponged = resolve));
    }
    expect(ann.it.status.get().state).toBe('open');
    await ann.it.send('again');
    await told(ann, 'You said: again');
  });

  test("SESSION-HOST-4: fail with an invalid token or another session's identity without opening the session", async () => {
    await run();
    for (const token of ['nobody', 'mallory']) {
      const { it, status } = clientOf('e', token);
      const { reason } = await status(({ state }) => state === 'closed');
      expect(reason?.code).toBe('UNAUTHORIZED');
      await expect(it.send('hello')).rejects.toMatchObject({ code: 'CLIENT_CLOSED' });
    }
    expect(await look('e')).toMatchObject({
      isAwake: false,
      entries: 0,
      errors: [expect.stringContaining('expected `authorize` to return the session "e"')],
    });
  });

  test('see everything as observers but cannot act', async () => {
    await run();
    const [ann, bob, eve] = [clientOf('f'), clientOf('f', 'bob'), clientOf('f', 'eve')];
    await ann.it.send('Book me a ride');
    const { requestId } = await ann.question();
    await eve.until(({ questions }) => questions.some(({ state }) => state === 'open'));
    await expect(eve.it.answer(requestId, { optionId: 'premium' })).rejects.toMatchObject({
      code: 'NOT_ALLOWED',
    });
    expect(eve.it.status.get()).toMatchObject({ user: 'eve', role: 'watcher', sessionId: 'f' });
    expect(await bob.it.answer(requestId, { optionId: 'economy' })).toEqual({
      accepted: true,
      by: 'bob',
    });
    expect(await ann.it.answer(requestId, { optionId: 'premium' })).toMatchObject({
      accepted: false,
      reason: 'over',
    });
    await told(eve, 'Booked: economy');
  });

  test('reject foreign pages, other paths, plain requests and large frames', async () => {
    const { url } = await run();
    expect(await upgrade('g', {})).toBe(101);
    expect(await upgrade('g', { origin: new URL(url).origin })).toBe(101);
    expect(await upgrade('g', { origin: 'https://evil.example' })).toBe(403);
    expect((await fetch(new URL('offstage?session=g', url))).status).toBe(426);
    const ann = clientOf('g');
    await ann.it.send('hello');
    const states: string[] = [];
    ann.it.status.subscribe(({ state }) => states.push(state));
    const large = ann.it.send('x'.repeat(4_000)).catch((error: unknown) => error);
    await ann.status(({ state }) => state === 'waiting');
    ann.it.close();
    expect(await large).toMatchObject({ code: 'CLIENT_CLOSED' });
    expect((await look('g')).errors).toEqual([]);
  });

  test('learn that their session was deleted, including its rows and alarm', async () => {
    await run();
    const ann = clientOf('h');
    await ann.it.send('Book me a ride to the xylophone');
    await ann.question();
    const { rows } = await ask<{ rows: unknown[] }>('dump?session=h');
    expect(JSON.stringify(rows)).toContain('xylophone');
    const after = await ask<{ rows: unknown[]; alarm: number | null }>('forget?session=h');
    expect(JSON.stringify(after.rows)).not.toContain('xylophone');
    expect(after).toMatchObject({ rows: [expect.any(Object)], alarm: null });
    const { reason } = await ann.status(({ state }) => state === 'closed');
    expect(reason?.code).toBe('SESSION_ENDED');
    // The next client starts a new session.
    const bob = clientOf('h', 'bob');
    await bob.it.send('hello');
    await told(bob, 'You said: hello');
    expect(bob.state().transcript.map(({ text }) => text)).not.toContain('xylophone');
  });
});
