// Sessions over real sockets: what clients see and do, over a WebSocket and over a stream.

import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { isDeepStrictEqual } from 'node:util';
import { connect as connectTcp, type Socket } from 'node:net';
import fc from 'fast-check';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { tool } from 'ai';
import { WebSocket } from 'ws';
import { z } from 'zod';
import {
  createRuntime,
  memoryJournal,
  type SessionState,
  type TextSession,
} from '../../src/index.ts';
import { createSessionPool } from '../../src/entries/journal.ts';
import { serve, type ServeOptions } from '../../src/serve/index.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { connect, type SocketClass } from '../../src/client/index.ts';
import { scopeInUse } from '../../src/actors/ports/journal-error.ts';
import { calls, say, steps } from '../support/subagent-runs.ts';
import { rideSession, served, testClient, type Served, type TestClient } from './support/served.ts';

function fail(): never {
  throw new Error('Expected it to be there');
}

/** Cuts all connections, as a network failure does. */
function breakable({ http }: Served): () => void {
  const sockets = new Set<Socket>();
  http.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}

describe.each(['websocket', 'stream'] as const)('over a %s', (transport) => {
  test("shows a subagent's question, accepts a button press and then shows the result", async () => {
    const session = rideSession();
    const { client } = await served({
      session: () => session,
      share: ['subagent.ended', 'presence.changed'],
    });
    const ann = client({ transport });
    await ann.it.send('use book_ride');
    const question = await ann.question();
    expect(question.options.map(({ id }) => id)).toEqual(['economy', 'premium']);
    const receipt = await ann.it.answer(question.requestId, { optionId: 'premium' });
    expect(receipt).toEqual({ accepted: true, by: 'ann' });
    await ann.until(({ deliveries }) => deliveries.some(({ kind }) => kind === 'result'));
    const { deliveryId = '' } = ann.state().deliveries.find(({ kind }) => kind === 'result') ?? {};
    await ann.it.shown(deliveryId);
    await ann.until(({ deliveries }) =>
      deliveries.some((each) => each.deliveryId === deliveryId && each.state === 'delivered'),
    );
    await session.idle();
    // Changes arrive in batches.
    await ann.until((state) => isDeepStrictEqual(state, session.store.getSnapshot().context));
    await session.close();
    await ann.status(({ state }) => state === 'closed');
    expect(ann.it.status.get().reason?.code).toBe('SESSION_ENDED');
  });

  test("SESSION-HUB-7: treats an operator's screen as the user's only if the app allows it", async () => {
    const session = rideSession();
    const { client } = await served({
      session: () => session,
      authorize: ({ token }) => ({
        sessionId: 's1',
        user: token ?? '',
        role: token === 'ann' ? 'user' : 'operator',
        ...(token === 'stand-in' && { hears: true }),
      }),
    });
    const [root, standIn] = [
      client({ transport, token: 'root' }),
      client({ transport, token: 'stand-in' }),
    ];
    await root.it.send('use book_ride');
    await root.until(({ questions }) => questions.length > 0);
    const { requestId } = root.state().questions[0] ?? fail();
    await root.it.questionShown(requestId);
    expect(session.store.getSnapshot().context.questions[0]?.state).toBe('presenting');
    // A user who presses the button has seen the question.
    expect(await root.it.answer(requestId, { optionId: 'premium' })).toEqual({
      accepted: true,
      by: 'root',
    });
    await root.until(({ deliveries }) => deliveries.some(({ kind }) => kind === 'result'));
    const { deliveryId } = root.state().deliveries.find(({ kind }) => kind === 'result') ?? fail();
    await root.it.shown(deliveryId);
    const state = () =>
      session.store.getSnapshot().context.deliveries.find((each) => each.deliveryId === deliveryId)
        ?.state;
    expect(state()).not.toBe('delivered');
    await standIn.it.shown(deliveryId);
    await standIn.until(({ deliveries }) =>
      deliveries.some((each) => each.deliveryId === deliveryId && each.state === 'delivered'),
    );
    await session.close();
  });

  test('SESSION-HUB-9: lists who is present, if the app shares it', async () => {
    const session = rideSession();
    const authorize: ServeOptions['authorize'] = ({ token }) => {
      const [user = '', device] = (token ?? '').split('/');
      const role = user === 'eve' ? 'watcher' : 'user';
      return { sessionId: 's1', user, role, ...(device !== undefined && { device }) };
    };
    const { client } = await served({
      session: () => session,
      share: ['presence.changed'],
      authorize,
    });
    const whoIn = ({ present }: SessionState) =>
      present.map(({ by, device, hears }) => `${by} ${device} ${hears}`);
    const sees = (one: TestClient, ...names: string[]) =>
      one.until((state) => isDeepStrictEqual(whoIn(state), names));
    const ann = client({ transport, token: 'ann/phone' });
    await sees(ann, 'ann phone true');
    // Two tabs on one device, and a watcher.
    const tab = client({ transport, token: 'ann/phone' });
    await sees(tab, 'ann phone true');
    const eve = client({ transport, token: 'eve' });
    await sees(ann, 'ann phone true', 'eve undefined false');
    await sees(eve, 'ann phone true', 'eve undefined false');
    tab.it.close();
    const bob = client({ transport, token: 'bob/desk' });
    await sees(ann, 'ann phone true', 'eve undefined false', 'bob desk true');
    bob.it.close();
    await sees(ann, 'ann phone true', 'eve undefined false');
    // Nothing that a client sends states an identity, and a secret of a client is in no list.
    expect(Object.keys(ann.state().present[0] ?? {})).toEqual(['by', 'device', 'since', 'hears']);
    eve.it.close();
    await sees(ann, 'ann phone true');
    await session.close();
  });

  test('SESSION-HUB-9: does not reveal who is present by default', async () => {
    const session = rideSession();
    const { client, errors } = await served({ session: () => session });
    const ann = client({ transport });
    const seen: string[] = [];
    ann.it.events.subscribe(({ type }) => seen.push(type));
    await ann.it.send('hello');
    // The state that this client receives is read while the other client is present.
    const eve = client({ transport, token: 'eve' });
    await eve.until(({ transcript }) => transcript.length > 0);
    expect(session.store.getSnapshot().context.present).toMatchObject([
      { by: 'ann' },
      { by: 'eve', hears: false },
    ]);
    expect([ann.state().present, eve.state().present]).toEqual([[], []]);
    expect(seen).not.toContain('presence.changed');
    expect(errors).toEqual([]);
    await session.close();
  });

  test('shows a question again whenever it is repeated', async () => {
    const session = rideSession();
    const { client } = await served({ session: () => session });
    const ann = client({ transport });
    await ann.it.send('use book_ride');
    const { question, putAgain } = await ann.question();
    expect(putAgain).toBeUndefined();
    for (const times of [2, 3]) {
      await ann.it.send('What were the options?');
      const { questions } = await ann.until(
        (state) => state.questions[0]?.putAgain?.times === times,
      );
      expect(questions[0]).toMatchObject({ question, state: 'open', putAgain: { text: question } });
    }
    await session.close();
  });

  test("keeps a subagent's ledger on the server", async () => {
    const session = rideSession();
    const { client } = await served({ session: () => session });
    const ann = client({ transport });
    await ann.it.send('use book_ride');
    const { requestId } = await ann.question();
    await ann.it.answer(requestId, { text: 'economy' });
    const done = ({ subagents }: ReturnType<typeof ann.state>) =>
      subagents.find(({ state }) => state === 'completed');
    const of = (state: ReturnType<typeof ann.state>) => done(state)?.outcome?.toolLedger;
    await ann.until((state) => done(state) !== undefined);
    expect(of(session.store.getSnapshot().context)).not.toEqual([]);
    expect(of(ann.state())).toEqual([]);
    const late = client({ transport });
    await late.until((state) => done(state) !== undefined);
    expect(of(late.state())).toEqual([]);
    await session.close();
  });

  test('restores a connection that was lost in mid-question, and applies the answer once', async () => {
    const session = rideSession();
    const it = await served({ session: () => session });
    const cut = breakable(it);
    const ann = it.client({ transport });
    await ann.it.send('use book_ride');
    const { requestId } = await ann.question();
    cut();
    await ann.status(({ state }) => state === 'waiting');
    // The answer is given while the connection is down.
    const receipt = ann.it.answer(requestId, { optionId: 'economy' });
    await ann.reconnected();
    expect(await receipt).toEqual({ accepted: true, by: 'ann' });
    expect(ann.state().questions.map((each) => each.requestId)).toEqual([requestId]);
    expect(await ann.it.answer(requestId, { optionId: 'premium' })).toMatchObject({
      accepted: false,
      reason: 'over',
    });
    await session.close();
  });

  test('refuses a client without an identity, which then does not retry', async () => {
    const session = rideSession();
    const { client } = await served({ session: () => session });
    const unauthorized = client({ transport, token: 'nobody' });
    const { reason } = await unauthorized.status(({ state }) => state === 'closed');
    expect(reason?.code).toBe('UNAUTHORIZED');
    await expect(unauthorized.it.send('hello')).rejects.toMatchObject({ code: 'CLIENT_CLOSED' });
    await session.close();
  });

  test('accepts a token with spaces', async () => {
    const session = rideSession();
    const it = await served({
      session: () => session,
      authorize: ({ token }) =>
        token === 'the token of Ann' ? { sessionId: 's1', user: 'ann', role: 'user' } : null,
    });
    const ann = it.client({ transport, token: 'the token of Ann' });
    await ann.status(({ state }) => state === 'open' || state === 'closed');
    expect(ann.it.status.get()).toMatchObject({ state: 'open', user: 'ann' });
    await session.close();
  });

  test('shows everything to an observer but accepts nothing from an observer', async () => {
    const session = rideSession();
    const { client } = await served({ session: () => session });
    const [ann, eve] = [client({ transport }), client({ transport, token: 'eve' })];
    await ann.it.send('use book_ride');
    const { requestId } = await ann.question();
    await eve.until(({ questions }) => questions.some(({ state }) => state === 'open'));
    await expect(eve.it.answer(requestId, { optionId: 'premium' })).rejects.toMatchObject({
      code: 'NOT_ALLOWED',
    });
    await expect(eve.it.send('use book_ride')).rejects.toMatchObject({ code: 'NOT_ALLOWED' });
    expect(eve.it.status.get()).toMatchObject({ user: 'eve', role: 'watcher' });
    expect(session.store.getSnapshot().context.questions[0]?.state).toBe('open');
    await session.close();
  });

  test('SESSION-HUB-6: shows a user only whether that user may answer, even after a reconnect', async () => {
    const ask = {
      script: steps(
        calls(['ask_user', { question: 'Pay?', options: [{ id: 'yes', label: 'Pay' }] }]),
        calls(['ask_user', { question: 'Sure?', options: [{ id: 'sure', label: 'Sure' }] }]),
        say('Paid.'),
      ),
      config: { interactive: true, answerableBy: ['bob', 'the secret manager'] },
    };
    const session = rideSession({ subagents: { ask } });
    const it = await served({ session: () => session });
    const cut = breakable(it);
    const received: string[] = [];
    const recording = (text: unknown): void => void received.push(String(text));
    const [ann, bob, eve, root] = ['ann', 'bob', 'eve', 'root'].map((token) =>
      it.client({ transport, token }),
    ) as [TestClient, TestClient, TestClient, TestClient];
    const may = ({ it: client }: TestClient): unknown =>
      client.store.getSnapshot().context.questions.at(-1)?.mayAnswer;
    const by = ({ it: client }: TestClient): unknown =>
      client.store.getSnapshot().context.questions.at(-1)?.answerableBy;
    for (const each of [ann, bob, eve, root]) {
      await each.status(({ state }) => state === 'open');
      each.it.store.subscribe((snapshot) =>
        each === root ? undefined : recording(JSON.stringify(snapshot)),
      );
    }
    await ann.it.send('use ask');
    const { requestId } = await bob.question();
    for (const each of [ann, eve, root])
      await each.until(({ questions }) => questions.some(({ state }) => state === 'open'));
    expect([ann, bob, eve, root].map(may)).toEqual([false, true, false, false]);
    expect([ann, bob, eve].map(by)).toEqual([undefined, undefined, undefined]);
    expect(by(root)).toEqual(['bob', 'the secret manager']);
    // The server also filters the frames that it stores for returning clients.
    cut();
    for (const each of [ann, bob, eve, root]) await each.status(({ state }) => state === 'waiting');
    await session.answer(requestId, { optionId: 'yes' }, { by: 'bob' });
    for (const each of [ann, bob, eve, root]) await each.reconnected();
    const sure = ({ questions }: SessionState): boolean =>
      questions.some(({ question }) => question === 'Sure?');
    for (const each of [ann, bob, eve, root]) await each.until(sure);
    expect([ann, bob, eve, root].map(may)).toEqual([false, true, false, false]);
    // A client that connects late receives the whole state, which is also filtered.
    const late = it.client({ transport, token: 'bob' });
    await late.until(sure);
    expect([may(late), by(late)]).toEqual([true, undefined]);
    expect(received.length).toBeGreaterThan(0);
    expect(received.join()).not.toContain('the secret manager');
    await session.close();
  });

  test("takes the `by` of an answer from the client's identity, whatever the client sends", async () => {
    const session = rideSession();
    const { client } = await served({ session: () => session });
    const [ann, bob] = [client({ transport }), client({ transport, token: 'bob' })];
    await ann.it.send('use book_ride');
    const { requestId } = await ann.question();
    expect(await bob.it.answer(requestId, { optionId: 'economy' })).toEqual({
      accepted: true,
      by: 'bob',
    });
    await ann.until(({ questions }) => questions[0]?.answeredBy === 'bob');
    await session.close();
  });
});

test('sends the whole state if a frame was missed', async () => {
  const session = rideSession();
  const node = nodeEnvironment();
  const aliveMs = 60_000;
  let beat = fail as () => void;
  const { client } = await served({
    session: () => session,
    limits: { aliveMs },
    environment: {
      ...node,
      scheduler: {
        ...node.scheduler,
        schedule(task, delayMs, options) {
          if (delayMs !== aliveMs || options?.isBackground !== true)
            return node.scheduler.schedule(task, delayMs, options);
          beat = task;
          return () => {};
        },
      },
    },
  });
  let lost = 0;
  let welcomes = 0;
  class Lossy extends WebSocket {
    override emit(name: string, ...args: unknown[]): boolean {
      if (name === 'message') {
        const text = String(args[0]);
        if (text.includes('"type":"welcome"')) welcomes += 1;
        if (text.startsWith('{"type":"events"') && lost++ === 2) {
          // The server may have nothing to send before this client has sent something.
          setImmediate(beat);
          return false;
        }
      }
      return super.emit(name, ...args);
    }
  }
  const ann = client({ WebSocket: Lossy as unknown as SocketClass });
  await ann.it.send('use book_ride');
  const { requestId } = await ann.question();
  await ann.it.answer(requestId, { optionId: 'premium' });
  await ann.until(({ subagents }) => subagents.some(({ state }) => state === 'completed'));
  await session.idle();
  await ann.it.send('bye');
  await session.idle();
  await ann.until(({ transcript }) => transcript.at(-1)?.text === 'You said: bye');
  expect(welcomes).toBe(2);
  const { transcript } = session.store.getSnapshot().context;
  await ann.until((state) => isDeepStrictEqual(state.transcript, transcript));
  await session.close();
});

test('does not resend a message that a restarted server has lost', async () => {
  const session = rideSession();
  await session.start();
  const said: string[] = [];
  // The server stops before the session has received the message.
  const stuck = new Proxy(session, {
    get: (target, name) => {
      if (name === 'sendText')
        return (text: string) => {
          said.push(text);
          return new Promise<void>(() => undefined);
        };
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const first = await served({ session: () => stuck });
  const port = Number(new URL(first.url).port);
  const ann = first.client({ transport: 'websocket' });
  await ann.status(({ state }) => state === 'open');
  const sending = ann.it.send('use book_ride');
  const shown = ann.it.shown('no such delivery');
  await shown;
  expect(said).toEqual(['use book_ride']);
  await first.stop();
  const second = await served({ session: () => session }, { port });
  await Promise.all([
    ann.reconnected(),
    expect(sending).rejects.toMatchObject({ code: 'FATE_UNKNOWN' }),
  ]);
  await ann.it.send('hello');
  expect(said).toEqual(['use book_ride']);
  await session.close();
  await second.stop();
});

test('disconnects a client that never reads, gives the reason and still serves other clients', async () => {
  const session = rideSession();
  await session.start();
  const it = await served({
    session: () => session,
    limits: { maxUnsentBytes: 20_000, resumeBytes: 1_000 },
  });
  const slow = new WebSocket(it.url.replace('http', 'ws'), ['offstage.v1', tokenOf('bob')]);
  await once(slow, 'open');
  slow.send(JSON.stringify({ type: 'hello', v: 1, client: 'slow' }));
  await once(slow, 'message');
  slow.pause();
  const ann = it.client();
  await ann.status(({ state }) => state === 'open');
  const isCut = () => it.errors.some(({ error }) => String(error).includes('TOO_SLOW'));
  let notices = 0;
  while (!isCut()) {
    const id = session.notifyBackground('x'.repeat(100_000));
    notices += 1;
    await ann.until(({ deliveries }) => deliveries.some(({ deliveryId }) => deliveryId === id));
    session.dismiss(id);
    if (notices > 5_000) throw new Error('Expected the slow client to be cut off');
  }
  expect(it.web.size.clients).toBe(1);
  await ann.it.send('hello');
  slow.terminate();
  await session.close();
});

test('detaches a client that disconnects while it is catching up on missed frames', async () => {
  const session = rideSession();
  await session.start();
  const it = await served({
    session: () => session,
    limits: { maxUnsentBytes: 200_000, resumeBytes: 40_000_000, clientsPerUser: 2 },
  });
  const hello = { type: 'hello', v: 1, client: 'back' };
  const protocols = ['offstage.v1', tokenOf('bob')];
  const url = it.url.replace('http', 'ws');
  const first = new WebSocket(url, protocols);
  await once(first, 'open');
  first.send(JSON.stringify(hello));
  const [welcome] = (await once(first, 'message')) as [Buffer];
  const { epoch, seq } = JSON.parse(String(welcome)) as { epoch: string; seq: number };
  first.terminate();
  const ann = it.client();
  await ann.status(({ state }) => state === 'open');
  for (let notice = 0; notice < 100; notice += 1) {
    const id = session.notifyBackground('x'.repeat(100_000));
    await ann.until(({ deliveries }) => deliveries.some(({ deliveryId }) => deliveryId === id));
    session.dismiss(id);
  }
  const isCut = (times: number): boolean =>
    it.errors.filter(({ error }) => String(error).includes('TOO_SLOW')).length === times;
  // More connections than one user may have.
  for (let times = 1; times <= 3; times += 1) {
    const again = new WebSocket(url, protocols);
    await once(again, 'open');
    again.send(JSON.stringify({ ...hello, after: { epoch, seq } }));
    again.pause();
    await vi.waitFor(() => expect(isCut(times)).toBe(true));
    again.terminate();
  }
  await session.close();
});

test('ignores hostile frames and disconnects a client that sends too many of them', async () => {
  const session = rideSession();
  const it = await served({ session: () => session });
  const ann = it.client();
  await ann.status(({ state }) => state === 'open');
  const url = it.url.replace('http', 'ws');
  const value = fc.oneof(
    fc.json(),
    fc.string(),
    fc.jsonValue().map((each) => JSON.stringify({ type: 'hello', v: 1, client: each })),
    fc
      .record({
        type: fc.constantFrom(
          'send',
          'answer',
          'cancel',
          'message',
          'shown',
          'playout',
          'voice.take',
          'microphone',
          'resync',
          'hello',
          '__proto__',
        ),
        id: fc.oneof(fc.integer(), fc.double(), fc.string()),
        text: fc.jsonValue(),
        requestId: fc.jsonValue(),
        answer: fc.jsonValue(),
        sampleRateHz: fc.double(),
      })
      .map((each) => JSON.stringify(each)),
    fc.uint8Array({ maxLength: 200 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(value, { maxLength: 40 }), fc.boolean(), async (frames, greets) => {
      const enemy = new WebSocket(url, ['offstage.v1', tokenOf('bob')]);
      enemy.on('error', () => undefined);
      await once(enemy, 'open');
      if (greets) enemy.send(JSON.stringify({ type: 'hello', v: 1, client: 'enemy' }));
      for (const frame of frames) enemy.send(frame);
      enemy.close();
      await once(enemy, 'close');
    }),
    { numRuns: 60, seed: 5 },
  );
  await ann.it.send('hello');
  const enemy = new WebSocket(url, ['offstage.v1', tokenOf('bob')]);
  await once(enemy, 'open');
  enemy.send(JSON.stringify({ type: 'hello', v: 1, client: 'enemy' }));
  for (let mistake = 0; mistake < 30; mistake++) enemy.send('{}');
  const [code, reason] = (await once(enemy, 'close')) as [number, Buffer];
  expect([code, reason.toString()]).toEqual([1008, 'TOO_MANY_MISTAKES']);
  await session.close();
});

test('answers messages above the rate limit with a refusal', async () => {
  const session = rideSession();
  const { client } = await served({
    session: () => session,
    limits: { messages: { burst: 3, perSecond: 0.001 } },
  });
  const ann = client();
  const sent = await Promise.allSettled([1, 2, 3, 4, 5].map((each) => ann.it.send(`${each}`)));
  expect(sent.map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'fulfilled',
    'rejected',
    'rejected',
  ]);
  expect(sent[4]).toMatchObject({ reason: { code: 'RATE_LIMITED' } });
  await session.close();
});

test('redirects a client to the node that is running its session', async () => {
  const session = rideSession();
  const there = await served({ session: () => session });
  const here = await served({ session: () => null, locate: () => there.url });
  const ann = here.client();
  await ann.reconnected();
  await ann.it.send('hello');
  expect([here.web.size.clients, there.web.size.clients]).toEqual([0, 1]);
  await session.close();
});

describe('a session that another process is running', () => {
  const holder = { name: 'node 2', address: 'http://10.0.0.2:3000' };
  const inUse = (): never => {
    throw scopeInUse('s_1', holder, 'its lease ends in 9 s');
  };

  test('redirects to the address that `locate` returns for the holder', async () => {
    const session = rideSession();
    const there = await served({ session: () => session });
    const asked: unknown[] = [];
    const here = await served({
      session: inUse,
      locate: (sessionId, by) => {
        asked.push([sessionId, by]);
        return by && there.url;
      },
    });
    const ann = here.client();
    await ann.reconnected();
    await ann.it.send('hello');
    expect(asked.slice(0, 2)).toEqual([
      [expect.any(String), null],
      [expect.any(String), holder],
    ]);
    expect([here.web.size.clients, there.web.size.clients]).toEqual([0, 1]);
    await session.close();
  });

  test.each<[string, Partial<ServeOptions>]>([
    ['without `locate`', {}],
    ['where that does not know it', { locate: () => null }],
  ])('keeps its clients waiting %s', async (_what, options) => {
    const errors: unknown[] = [];
    const session = rideSession();
    let isFree = false;
    const here = await served({
      ...options,
      session: () => (isFree ? session : inUse()),
      onError: (error) => errors.push(error),
    });
    const ann = here.client();
    await ann.status(({ reason }) => reason?.code === 'SESSION_ELSEWHERE');
    expect(errors[0]).toMatchObject({ code: 'SCOPE_IN_USE' });
    isFree = true;
    await ann.reconnected();
    await ann.it.send('hello');
    await session.close();
  });

  test.each(['10.0.0.2:3000', '/offstage', 'javascript:alert(1)', 'file:///etc', 5])(
    'reports the invalid address %o, and lets clients wait',
    async (address) => {
      const errors: unknown[] = [];
      const here = await served({
        session: inUse,
        locate: (_, by) => by && (address as string),
        onError: (error) => errors.push(error),
      });
      const ann = here.client();
      await ann.status(({ reason }) => reason?.code === 'SESSION_UNAVAILABLE');
      expect(errors[0]).toMatchObject({ code: 'INVALID_ADDRESS' });
    },
  );
});

test.each([
  ['https://app.example.com/offstage', 'http://10.0.0.2/offstage', 'DETOUR_REFUSED'],
  ['wss://app.example.com/offstage', 'ws://app.example.com/offstage', 'DETOUR_REFUSED'],
  ['https://app.example.com/offstage', 'javascript:alert(1)', 'DETOUR_REFUSED'],
  ['http://localhost/offstage', 'file:///etc/passwd', 'DETOUR_REFUSED'],
  ['https://app.example.com/offstage', 'https://two.example.com/offstage', 'MOVED'],
  ['http://localhost/offstage', 'https://two.example.com/offstage', 'MOVED'],
])('a client of %s that is redirected to %s: %s', async (url, to, code) => {
  const tried: string[] = [];
  class Socket {
    readonly readyState = 1;
    readonly bufferedAmount = 0;
    binaryType = '';
    constructor(address: URL) {
      tried.push(address.host);
    }
    addEventListener(type: string, listener: (event: never) => void): void {
      const bye = { type: 'bye', code: 'MOVED', message: 'There', retry: true, url: to };
      if (type === 'message' && tried.length === 1)
        queueMicrotask(() => listener({ data: JSON.stringify(bye) } as never));
    }
    send(): void {}
    close(): void {}
  }
  const client = connect({ url, transport: 'websocket', WebSocket: Socket });
  onTestFinished(() => client.close());
  const told = await new Promise<string | undefined>((resolve) => {
    client.status.subscribe(({ reason }) => {
      if (reason !== null) resolve(reason.code);
    });
  });
  expect(told).toBe(code);
  expect(client.status.get().state === 'closed').toBe(code === 'DETOUR_REFUSED');
  if (code === 'DETOUR_REFUSED') expect(tried).toHaveLength(1);
});

test("hibernates a pool's sessions without connected clients", async () => {
  const runtime = createRuntime({ journal: memoryJournal() });
  const pool = createSessionPool({
    runtime,
    idleMs: 1,
    open: (sessionId) => rideSession({ sessionId, runtime }),
  });
  await pool.start();
  const it = await served({
    pool,
    authorize: ({ sessionId }) => ({ sessionId: sessionId ?? '', user: 'ann', role: 'user' }),
    limits: { resumeMs: 1 },
  });
  const [one, two] = [it.client({ session: 's_1' }), it.client({ session: 's_2' })];
  await one.it.send('use book_ride');
  await two.it.send('hello');
  await one.question();
  expect(one.it.status.get().sessionId).toBe('s_1');
  expect(two.state().questions).toEqual([]);
  expect(pool.awakeCount).toBe(2);
  two.it.close();
  one.it.close();
  const isAsleep = async (): Promise<void> => {
    while (pool.awakeCount > 0 || it.web.size.sessions > 0)
      await new Promise((resolve) => setImmediate(resolve));
  };
  await isAsleep();
  const again = it.client({ session: 's_1' });
  const { requestId } = await again.question();
  expect(await again.it.answer(requestId, { optionId: 'economy' })).toMatchObject({
    accepted: true,
  });
  await it.stop();
  await pool.close();
});

test('releases the clients of an idle session before a deployment without waiting for open tabs', async () => {
  const runtime = createRuntime({ journal: memoryJournal() });
  const { promise: slow, resolve: finish } = Promise.withResolvers<void>();
  const config = {
    tools: {
      dig: tool({
        description: 'Digs',
        inputSchema: z.object({}),
        execute: async () => {
          await slow;
          return 'dug';
        },
      }),
    },
  };
  const dig = { script: steps(calls(['dig', {}]), say('It is dug.')), config };
  const pool = createSessionPool({
    runtime,
    open: (sessionId) => rideSession({ sessionId, runtime, subagents: { dig } }),
  });
  const it = await served({
    pool,
    authorize: ({ sessionId }) => ({ sessionId: sessionId ?? '', user: 'ann', role: 'user' }),
  });
  const [waits, busy] = [it.client({ session: 'waits' }), it.client({ session: 'busy' })];
  await waits.it.send('use book_ride');
  await waits.question();
  await busy.it.send('use dig');
  await busy.until(({ subagents }) => subagents.some(({ state }) => state === 'running'));
  // The drain time is far longer than the test, so the pool cannot have waited for a tab that stayed open.
  const drained = pool.drain({ withinMs: 600_000 });
  const { reason } = await waits.status(({ state }) => state === 'waiting');
  expect(reason?.code).toBe('SERVER_CLOSING');
  expect(busy.it.status.get().state).toBe('open');
  const late = it.client({ session: 'late' });
  expect((await late.status(({ state }) => state === 'waiting')).reason?.code).toBe(
    'SERVER_CLOSING',
  );
  finish();
  await busy.until(({ transcript }) => transcript.some(({ text }) => text.includes('It is dug.')));
  expect((await busy.status(({ state }) => state === 'waiting')).reason?.code).toBe(
    'SERVER_CLOSING',
  );
  await drained;
  expect(it.errors).toEqual([]);
});

test('refuses foreign origins, host names and paths', async () => {
  const session = rideSession();
  const it = await served({ session: () => session, origins: ['https://app.example'] });
  const get = (headers: Record<string, string>, path = '/offstage') =>
    it.web.fetch(new Request(`http://127.0.0.1${path}`, { headers }));
  const statusOf = async (headers: Record<string, string>, path?: string) =>
    (await get({ authorization: 'Bearer ann', ...headers }, path)).status;
  expect(await statusOf({}, '/other')).toBe(404);
  expect(await statusOf({ origin: 'https://evil.example' })).toBe(403);
  expect(await statusOf({ host: 'evil.example' })).toBe(403);
  expect(await statusOf({ authorization: 'Bearer nobody', origin: 'https://app.example' })).toBe(
    401,
  );
  const allowed = await get({
    authorization: 'Bearer ann',
    host: 'app.example',
    origin: 'https://app.example',
  });
  expect(allowed.headers.get('access-control-allow-origin')).toBe('https://app.example');
  await allowed.body?.cancel();
  const post = (body: string, headers: Record<string, string> = {}) =>
    it.web.fetch(
      new Request('http://127.0.0.1/offstage', {
        method: 'POST',
        body,
        headers: { authorization: 'Bearer ann', 'content-type': 'application/json', ...headers },
      }),
    );
  expect((await post('{}')).status).toBe(400);
  expect((await post('{}', { 'content-type': 'text/plain' })).status).toBe(415);
  expect((await post('x'.repeat(100_000))).status).toBe(413);
  expect((await post('{"client":"another","frames":[]}')).status).toBe(409);
  const enemy = new WebSocket(it.url.replace('http', 'ws'), ['offstage.v1', tokenOf('ann')], {
    origin: 'https://evil.example',
  });
  // A page cannot read the status of an upgrade, so the server opens the socket and sends only the reason.
  const [[frame], [code, reason]] = (await Promise.all([
    once(enemy, 'message'),
    once(enemy, 'close'),
  ])) as [[Buffer], [number, Buffer]];
  expect(JSON.parse(String(frame))).toEqual({
    type: 'bye',
    code: 'ORIGIN_REFUSED',
    message: 'Expected an Origin that may connect (`origins`), got "https://evil.example"',
    retry: false,
  });
  expect([code, String(reason)]).toEqual([1008, 'ORIGIN_REFUSED']);
  // Each refusal is reported once, on both transports.
  expect(it.errors.map(({ error }) => (error as { code?: unknown }).code)).toEqual([
    'ORIGIN_REFUSED',
    'HOST_REFUSED',
    'ORIGIN_REFUSED',
  ]);
  await session.close();
});

test('survives a client that resets its connection during authorization', async () => {
  const session = rideSession();
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<null>();
  const it = await served({
    session: () => session,
    authorize: () => {
      asked.resolve();
      return answer.promise;
    },
  });
  const socket = connectTcp({ port: Number(new URL(it.url).port), host: '127.0.0.1' });
  socket.on('error', () => undefined);
  socket.write(
    'GET /offstage HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
      'Sec-WebSocket-Protocol: offstage.v1\r\n\r\n',
  );
  await asked.promise;
  socket.resetAndDestroy();
  await once(socket, 'close');
  answer.resolve(null);
  expect(it.web.size.clients).toBe(0);
  await session.close();
});

test('leaves other paths to the app when mounted as a handler', async () => {
  const session = rideSession();
  const { createServer } = await import('node:http');
  const it = await served(
    { session: () => session },
    {
      mount: (web) =>
        createServer((request, response) =>
          // Express removes the mount path from the URL and expects the handler to call `next`.
          web.handle(Object.assign(request, { originalUrl: request.url, url: '/' }), response, () =>
            response.end('the app'),
          ),
        ),
    },
  );
  const origin = new URL(it.url).origin;
  expect(await (await fetch(`${origin}/page`)).text()).toBe('the app');
  const ann = it.client({ transport: 'stream' });
  await ann.it.send('hello');
  await session.close();
});

test.each([
  ['an unknown option', { pol: {} }, /unknown option `pol`; did you mean `pool`/],
  [
    'neither pool nor session',
    { pool: undefined, session: undefined },
    /either `pool` or `session`/,
  ],
  ['both', { pool: { use: () => undefined }, session: () => null }, /either `pool` or `session`/],
  ['an origin with a path', { origins: ['https://a.example/x'] }, /expected an origin/],
  ['a path without a slash', { path: 'offstage' }, /expected a path/],
  ['a limit of nothing', { limits: { clients: 0 } }, /clients/],
  ['an event that does not exist', { share: ['tool.caled'] }, /share/],
])('serve refuses %s', (_what, wrong, message) => {
  const options = { session: () => null, authorize: () => null, ...wrong };
  expect(() => serve(options as unknown as ServeOptions)).toThrow(message);
});

test.each([
  ['no session', { user: 'ann' }],
  [
    'a device of a megabyte',
    { sessionId: 's1', user: 'ann', role: 'user', device: 'x'.repeat(1_000_000) },
  ],
])('refuses the client and reports the error if `authorize` returns %s', async (_, identity) => {
  const session = rideSession();
  const it = await served({
    session: () => session,
    authorize: (() => identity) as unknown as ServeOptions['authorize'],
  });
  const response = await it.web.fetch(new Request('http://127.0.0.1/offstage'));
  expect(response.status).toBe(500);
  expect(it.errors).toMatchObject([{ error: { code: 'INVALID_IDENTITY' } }]);
  await session.close();
});

test('retries with increasing delays while the server is unreachable', async () => {
  const session = rideSession();
  const gone = await served({ session: () => session });
  await gone.stop();
  const ann = testClient({ url: gone.url, token: 'ann' });
  const delays: number[] = [];
  for (let attempt = 0; attempt < 6; attempt++) {
    const { retryAt } = await ann.status(({ state }) => state === 'waiting');
    delays.push((retryAt ?? 0) - ann.environment.clock.now());
    await ann.environment.advance(delays.at(-1) ?? 0);
    await ann.status(({ state, retryAt: next }) => state === 'waiting' && next !== retryAt);
  }
  expect(delays.at(-1)).toBeGreaterThan(4 * (delays[0] ?? 0));
  // With longer delays, a client would still be waiting long after the lease of a killed process has expired.
  expect(Math.max(...delays)).toBeLessThanOrEqual(6250);
  onTestFinished(() => session.close());
});

function tokenOf(token: string): string {
  return `offstage.token.${Buffer.from(token).toString('base64url')}`;
}

test('connects a waiting client immediately on request', async () => {
  const session = rideSession();
  onTestFinished(() => session.close());
  const first = await served({ session: () => session });
  const ann = first.client();
  await ann.status(({ state }) => state === 'open');
  await first.stop();
  await ann.status(({ state }) => state === 'waiting');
  await served({ session: () => session }, { port: Number(new URL(first.url).port) });
  // The client's timers do not run.
  ann.it.reconnect();
  await ann.status(({ state }) => state === 'open');
  ann.it.reconnect();
  expect(ann.it.status.get().state).toBe('open');
});

test('shows in the transcript who sent each message', async () => {
  const session = rideSession({ sessionId: 's1' });
  const it = await served({ session: () => session });
  const ann = it.client();
  await ann.it.send('hello');
  await it.client({ token: 'bob' }).it.send('good morning');
  await session.idle();
  const { transcript } = await ann.until(
    (state) => state.transcript.filter(({ role }) => role === 'user').length === 2,
  );
  const said = transcript.filter(({ role }) => role === 'user');
  expect(said.map(({ by, text }) => [by, text])).toEqual([
    ['ann', 'hello'],
    ['bob', 'good morning'],
  ]);
  await session.close();
});

describe('a client whose server is mounted incorrectly', () => {
  const mounted = (before: (request: IncomingMessage) => Promise<unknown>, path = '/offstage') =>
    served(
      { session: () => session },
      {
        mount: (web) =>
          createServer((request, response) => {
            void before(request).then(() => {
              if (request.url?.startsWith(path)) return web.handle(request, response);
              response.end('<!doctype html>');
            });
          }),
      },
    );
  let session: TextSession;
  beforeEach(() => {
    session = rideSession({ sessionId: 's1' });
    return () => session.close();
  });

  test('reports that a body parser ran first and retries with increasing delays', async () => {
    const it = await mounted((request) => textOf(request));
    const ann = it.client({ transport: 'stream' });
    ann.it.send('hello').catch(() => undefined);
    const delays: number[] = [];
    for (let count = 0; count < 4; count += 1) {
      const { reason, retryAt } = await ann.status(({ state }) => state === 'waiting');
      expect(reason).toMatchObject({
        code: 'BODY_CONSUMED',
        message: expect.stringContaining('put the handler before any body parser') as string,
      });
      delays.push((retryAt ?? 0) - ann.environment.clock.now());
      ann.it.reconnect();
    }
    expect(delays.map((delayMs) => Math.round(Math.log2(delayMs / 500)))).toEqual([0, 1, 2, 3]);
  });

  test.each([
    ['/', '404', `(404): Nothing is here`],
    ['/elsewhere', 'a page', 'Expected a stream of events from http://127.0.0.1'],
  ])('says that %s answers with %s', async (path, _what, message) => {
    const it = await mounted(() => Promise.resolve(), path);
    const ann = it.client({ transport: 'stream', url: it.url.replace('offstage', 'other') });
    const { reason } = await ann.status(({ state }) => state === 'waiting');
    expect(reason).toMatchObject({
      code: 'CONNECT_FAILED',
      message: expect.stringContaining(message) as string,
    });
  });
});
