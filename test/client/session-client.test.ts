// A client whose listeners call it back in the middle of its work, on a fake socket.

import { expect, onTestFinished, test } from 'vitest';
import { connect, type ClientStatus, type ConnectOptions } from '../../src/client/index.ts';
import type { SocketLike } from '../../src/client/line.ts';
import { emptySessionState } from '../../src/actors/contracts/session-views.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';

type Listener = (event: never) => void;

/** A client, and the sockets that it opens. */
function clientOfFakes(options: Partial<ConnectOptions> = {}) {
  const environment = simulatedEnvironment();
  const sockets: FakeSocket[] = [];
  class FakeSocket implements SocketLike {
    binaryType = '';
    readyState = 0;
    readonly bufferedAmount = 0;
    readonly sent: { readonly type: string }[] = [];
    readonly #listeners = new Map<string, Listener>();
    constructor() {
      sockets.push(this);
    }
    addEventListener(type: string, listener: Listener): void {
      this.#listeners.set(type, listener);
    }
    send(data: string | Uint8Array): void {
      this.sent.push(JSON.parse(String(data)) as { readonly type: string });
    }
    close(): void {
      this.readyState = 3;
    }
    emit(type: string, event: object = {}): void {
      this.#listeners.get(type)?.(event as never);
    }
    open(): void {
      this.readyState = 1;
      this.emit('open');
    }
    says(frame: object): void {
      this.emit('message', { data: JSON.stringify(frame) });
    }
    welcome(): void {
      if (this.readyState === 0) this.open();
      this.says({
        type: 'welcome',
        v: 1,
        epoch: 'e1',
        seq: 0,
        now: 0,
        memory: 'm1',
        sessionId: 's1',
        user: 'ann',
        role: 'user',
        aliveMs: 15_000,
        hasVoice: false,
        state: emptySessionState,
      });
    }
  }
  const client = connect({
    url: 'http://127.0.0.1/offstage',
    transport: 'websocket',
    WebSocket: FakeSocket,
    environment,
    ...options,
  });
  onTestFinished(() => client.close());
  return {
    client,
    environment,
    sockets,
    status: () => client.status.get().state,
    /** The sockets that are not closed. */
    live: () => sockets.filter(({ readyState }) => readyState < 2),
    /** Waits until the client has opened `count` sockets, and returns the newest one. */
    async socket(count = 1): Promise<FakeSocket> {
      for (let turns = 0; turns < 10 && sockets.length < count; turns += 1) await Promise.resolve();
      const socket = sockets.at(-1);
      if (!socket || sockets.length < count) throw new Error('Expected a socket');
      return socket;
    },
  };
}

test('opens with a welcome frame on an injected socket', async () => {
  const { client, socket, status } = clientOfFakes();
  (await socket()).welcome();
  expect(status()).toBe('open');
  expect(client.status.get()).toMatchObject({ user: 'ann', sessionId: 's1' });
});

const changes = ['connecting', 'open', 'waiting'] as const;
test.each(changes)(
  'SESSION-CLIENT-5: remains closed if a status listener closes it while it is %s',
  async (state) => {
    const { client, environment, socket, status, live } = clientOfFakes();
    const first = await socket();
    const seen: ClientStatus['state'][] = [];
    client.status.subscribe((now) => {
      seen.push(now.state);
      if (now.state === state) client.close();
    });
    first.welcome();
    first.emit('close');
    await environment.advance(60_000);
    expect(status()).toBe('closed');
    expect(seen.at(-1)).toBe('closed');
    expect(live()).toEqual([]);
    expect(environment.pendingTimers).toBe(0);
  },
);

test('SESSION-CLIENT-5: remains closed if a store listener closes it or the server ends the session', async () => {
  const welcomed = clientOfFakes();
  const first = await welcomed.socket();
  welcomed.client.store.subscribe(() => welcomed.client.close());
  first.welcome();
  const dismissed = clientOfFakes();
  const second = await dismissed.socket();
  second.welcome();
  dismissed.client.status.subscribe(({ reason }) => {
    if (reason?.code === 'IDLE') dismissed.client.close();
  });
  second.says({ type: 'bye', code: 'IDLE', message: 'Later', retry: true });
  for (const { status, environment, live } of [welcomed, dismissed]) {
    await environment.advance(60_000);
    expect(status()).toBe('closed');
    expect(live()).toEqual([]);
    expect(environment.pendingTimers).toBe(0);
  }
});

test('SESSION-CLIENT-5: opens only one connection if a listener reconnects immediately', async () => {
  const { client, environment, socket, sockets, status, live } = clientOfFakes();
  const first = await socket();
  first.welcome();
  client.status.subscribe(({ state }) => {
    if (state === 'waiting') client.reconnect();
  });
  first.emit('close');
  (await socket(2)).open();
  await environment.advance(5_000);
  expect(sockets).toHaveLength(2);
  expect(live()).toHaveLength(1);
  expect(status()).toBe('connecting');
});

test('SESSION-CLIENT-2: sends a message only once if a listener sends it as the client opens', async () => {
  const { client, socket } = clientOfFakes();
  const first = await socket();
  const { unsubscribe } = client.status.subscribe(({ state }) => {
    if (state !== 'open') return;
    unsubscribe();
    client.send('hello').catch(() => undefined);
  });
  first.welcome();
  expect(first.sent.map(({ type }) => type)).toEqual(['hello', 'send']);
});

test('passes the newest value to later listeners if an earlier listener changes it', async () => {
  const { client, socket } = clientOfFakes();
  const first = await socket();
  first.welcome();
  client.status.subscribe(({ state }) => {
    if (state === 'waiting') client.reconnect();
  });
  const seen: ClientStatus['state'][] = [];
  client.status.subscribe(({ state }) => void seen.push(state));
  first.emit('close');
  expect(seen).toEqual(['connecting']);
});

test('delivers values even if `onError` throws, and rethrows that error in a separate task', async () => {
  const later: (() => void)[] = [];
  const { clock, scheduler, ids, random } = simulatedEnvironment();
  const { client, socket, status } = clientOfFakes({
    environment: {
      clock,
      ids,
      random,
      scheduler: {
        yieldThen: (task) => scheduler.yieldThen(task),
        schedule(task, delayMs, options) {
          if (delayMs === 0) later.push(task);
          return delayMs === 0 ? () => undefined : scheduler.schedule(task, delayMs, options);
        },
      },
    },
    onError: () => {
      throw new Error('of onError');
    },
  });
  const first = await socket();
  client.status.subscribe(() => {
    throw new Error('of a listener');
  });
  const seen: ClientStatus['state'][] = [];
  client.status.subscribe(({ state }) => void seen.push(state));
  first.welcome();
  expect(seen).toEqual(['open']);
  expect(status()).toBe('open');
  expect(later).toHaveLength(1);
  expect(later[0]).toThrow('of onError');
});

test('keeps only its latest 50 answers', async () => {
  const { client, socket } = clientOfFakes();
  const first = await socket();
  first.welcome();
  for (let id = 1; id <= 60; id += 1) {
    const answered = client.answer(`q${id}`, { optionId: 'yes' });
    first.says({ type: 'receipt', id, ok: true, value: { accepted: true, by: 'ann' } });
    await answered;
  }
  const ids = [...client.answered.get().keys()];
  expect(ids).toHaveLength(50);
  expect(ids.at(0)).toBe('q11');
  expect(ids.at(-1)).toBe('q60');
});

/** A server that the client reaches through streams; it welcomes each of them. */
function streamsOf() {
  const opened: (AbortSignal | null | undefined)[] = [];
  const welcome = {
    type: 'welcome',
    v: 1,
    epoch: 'e2',
    seq: 0,
    now: 0,
    memory: 'm1',
    sessionId: 's1',
    user: 'ann',
    role: 'user',
    aliveMs: 10_000_000,
    hasVoice: false,
    state: emptySessionState,
  };
  const fetch: typeof globalThis.fetch = (_url, init) => {
    opened.push(init?.signal);
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(`data: ${JSON.stringify(welcome)}\n\n`),
    }).pipeThrough(new TextEncoderStream());
    const headers = { 'content-type': 'text/event-stream' };
    return Promise.resolve(new Response(body, { headers }));
  };
  return { opened, fetch };
}

test('SESSION-CLIENT-6: replaces a fallback stream with the next WebSocket that opens', async () => {
  const { opened, fetch } = streamsOf();
  const it = clientOfFakes({ transport: 'auto', fetch });
  const { client, environment, sockets } = it;
  const changed = (isWanted: (status: ClientStatus) => boolean) =>
    new Promise<void>((resolve) => {
      client.status.subscribe((now) => isWanted(now) && resolve());
      if (isWanted(client.status.get())) resolve();
    });
  const standing = () => [client.status.get().state, client.status.get().transport];
  const first = await it.socket();
  first.welcome();
  first.emit('close');
  await environment.advance(1_000);
  (await it.socket(2)).emit('close');
  await environment.advance(2_000);
  await changed(({ state }) => state === 'open');
  expect(standing()).toEqual(['open', 'stream']);
  // A socket that fails to open changes nothing.
  await environment.advance(5_000);
  (await it.socket(3)).emit('close');
  await environment.advance(9_000);
  expect([sockets.length, ...standing()]).toEqual([3, 'open', 'stream']);
  await environment.advance(1_000);
  const last = await it.socket(4);
  last.open();
  expect(opened.map((signal) => signal?.aborted)).toEqual([true]);
  const said = client.send('hello').catch((error: unknown) => error);
  last.welcome();
  expect(standing()).toEqual(['open', 'websocket']);
  expect(last.sent.map(({ type }) => type)).toEqual(['hello', 'send']);
  client.close();
  expect(await said).toMatchObject({ code: 'CLIENT_CLOSED' });
  expect(environment.pendingTimers).toBe(0);
});
