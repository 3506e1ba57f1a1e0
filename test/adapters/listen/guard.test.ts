// The invariants of the guard, on a server of its own. `listeners.fuzz.test.ts` attacks every real listener.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import {
  isLoopbackName,
  isSameSecret,
  loopbackHosts,
  targetOf,
} from '../../../src/adapters/listen/access.ts';
import {
  createGuard,
  type GuardOptions,
  type Verdict,
} from '../../../src/adapters/listen/guard.ts';
import { UnauthenticatedPlaces } from '../../../src/adapters/listen/unauthenticated-places.ts';
import { simulatedEnvironment } from '../../../src/testing/index.ts';

const HOST = '127.0.0.1';
const upgradeTo = (target: string, host: string, more: readonly string[] = []): string =>
  [
    `GET ${target} HTTP/1.1`,
    `Host: ${host}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...more,
    '\r\n',
  ].join('\r\n');

/** Starts a server that admits `?key=right`, refuses `?key=wrong` on a WebSocket, and refuses all other requests. */
async function guarded(options: Partial<GuardOptions> = {}) {
  const environment = simulatedEnvironment();
  const errors: unknown[] = [];
  const clients: WebSocket[] = [];
  const guard = await createGuard({
    name: 'The test',
    environment,
    isHost: (host, port) => loopbackHosts(port).includes(host),
    isOrigin: (origin) => origin === 'https://good.example',
    onError: (error) => errors.push(error),
    webSocket: {
      maxMessageBytes: 1024,
      upgrade({ target }): Verdict {
        const key = target.query.get('key');
        if (key === 'throws') throw new Error('no such column');
        if (key === 'wrong') return { type: 'expel', tell: (client) => client.close(3000, 'no') };
        if (key === 'silent') return { type: 'ignore' };
        return key === 'right'
          ? { type: 'open', open: (client) => void clients.push(client) }
          : { type: 'refuse', refusal: { status: 401, message: 'Expected the key' } };
      },
    },
    ...options,
  });
  const { port } = await guard.listen({ port: 0, host: HOST });
  onTestFinished(() => guard.close());
  const dial = async (): Promise<Socket> => {
    const socket = connect({ port, host: HOST, allowHalfOpen: true });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  /** Returns the status line of the response to these bytes. */
  const ask = async (bytes: string): Promise<string> => {
    const socket = await dial();
    socket.write(bytes);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    return answer.toString().split('\r\n', 1)[0] ?? '';
  };
  /** Connects as a legitimate client. */
  const enter = async (): Promise<WebSocket> => {
    const socket = new WebSocket(`ws://${HOST}:${port}/?key=right`);
    await once(socket, 'open');
    onTestFinished(() => socket.terminate());
    return socket;
  };
  /** Waits until this many connections are left, without advancing simulated time. */
  const until = async (connections: number): Promise<void> => {
    while (guard.size.connections !== connections) await environment.settle();
  };
  return { guard, port, environment, errors, clients, dial, ask, enter, until };
}

describe('GUARD-1: input from any client', () => {
  test.each(['/\\', 'http://a:99999/', 'http://[/', '//', '/%', '*'])(
    'responds with a 4xx status to an unusual target such as %s',
    async (target) => {
      const { ask, port, errors, enter } = await guarded();
      expect(await ask(upgradeTo(target, `${HOST}:${port}`))).toMatch(/^HTTP\/1\.1 4\d\d /);
      expect(await ask(`GET ${target} HTTP/1.1\r\nHost: ${HOST}:${port}\r\n\r\n`)).toMatch(
        /^HTTP\/1\.1 4\d\d /,
      );
      await enter();
      expect(errors).toEqual([]);
    },
  );

  test('causes a 500 response when a listener throws, but shows the error only to the operator', async () => {
    const { ask, port, errors } = await guarded({
      request: () => Promise.reject(new Error('no such table')),
    });
    const host = `${HOST}:${port}`;
    expect(await ask(upgradeTo('/?key=throws', host))).toContain('500');
    expect(await ask(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).toContain('500');
    expect(errors.map(String)).toEqual(['Error: no such column', 'Error: no such table']);
  });

  test('gets a response even if its bytes are not HTTP', async () => {
    const { ask, port, enter } = await guarded();
    expect(await ask('hello\r\n\r\n')).toBe('HTTP/1.1 400 Bad Request');
    const long = `GET / HTTP/1.1\r\nHost: ${HOST}:${port}\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`;
    expect(await ask(long)).toBe('HTTP/1.1 431 Request Header Fields Too Large');
    await enter();
  });

  test('closes the socket of a refused client that breaks the protocol', async () => {
    const { dial, port, environment, until, enter } = await guarded();
    const socket = await dial();
    socket.write(upgradeTo('/?key=wrong', `${HOST}:${port}`));
    await once(socket, 'data');
    // A frame without a mask.
    socket.write(Buffer.from([0x81, 0x01, 0x41]));
    await environment.advance(1_000);
    await until(0);
    await enter();
  });

  test('does not cause an error when a listener writes after the response has ended', async () => {
    const { ask, port, enter } = await guarded({
      request: ({ response }) => {
        response.end('served');
        response.write('more');
      },
    });
    expect(await ask(`GET / HTTP/1.1\r\nHost: ${HOST}:${port}\r\n\r\n`)).toBe('HTTP/1.1 200 OK');
    await enter();
  });

  test('does not cause an error when a client disconnects before it has been accepted or refused', async () => {
    let decide: (verdict: Verdict) => void = () => {};
    const { dial, port, until, errors, guard } = await guarded({
      webSocket: {
        maxMessageBytes: 1024,
        upgrade: () => new Promise((resolve) => (decide = resolve)),
      },
    });
    const socket = await dial();
    socket.write(upgradeTo('/', `${HOST}:${port}`));
    await until(1);
    socket.resetAndDestroy();
    await until(0);
    decide({ type: 'open', open: () => expect.unreachable() });
    await until(0);
    expect([errors, guard.size.clients]).toEqual([[], 0]);
  });
});

describe('GUARD-2: a refused socket', () => {
  test('closes after an upgrade is refused, even if 300 clients keep their sides open', async () => {
    const { dial, port, until, environment, enter } = await guarded();
    for (let done = 0; done < 300; done += 1) {
      const socket = await dial();
      socket.write(`${upgradeTo('/', `${HOST}:${port}`)}x`);
    }
    await enter();
    await environment.advance(1_000);
    await until(1);
  });

  test('delivers its refusal before it closes', async () => {
    const { ask, port } = await guarded();
    expect(await ask(`${upgradeTo('/', `${HOST}:${port}`)}x`)).toBe('HTTP/1.1 401 Unauthorized');
  });
});

describe('GUARD-3: unknown peers', () => {
  test('lose their sockets at the deadline of each phase, or sooner if they are refused', async () => {
    const { dial, port, until, environment } = await guarded({ authenticationTimeoutMs: 5_000 });
    const host = `${HOST}:${port}`;
    await dial();
    (await dial()).write('GET / HTT');
    (await dial()).write(upgradeTo('/?key=silent', host));
    (await dial()).write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 9\r\n\r\n`);
    (await dial()).write(upgradeTo('/?key=wrong', host));
    await until(5);
    await environment.advance(1_000);
    await until(3);
    await environment.advance(4_000);
    await until(0);
  });

  test('occupy a limited number of places, without blocking a client that has a key', async () => {
    const { dial, guard, environment, enter } = await guarded({ maxUnauthenticated: 4 });
    for (let count = 0; count < 20; count += 1) await dial();
    await enter();
    await environment.settle();
    expect(guard.size.connections).toBeLessThanOrEqual(5);
  });

  test('PLACE-2: removes a peer of the address with the most places first', () => {
    const places = new UnauthenticatedPlaces(3);
    const shed: string[] = [];
    places.take('a', () => shed.push('a1'));
    places.take('b', () => shed.push('b1'));
    const release = places.take('b', () => shed.push('b2'));
    places.take('c', () => shed.push('c1'));
    expect([shed, places.size]).toEqual([['b1'], 3]);
    release();
    release();
    expect(places.size).toBe(2);
    places.take('c', () => shed.push('c2'));
    places.take('d', () => shed.push('d1'));
    expect([shed, places.size]).toEqual([['b1', 'c1'], 3]);
  });
});

describe('GUARD-4: the limit of clients', () => {
  test('counts only clients with a valid key', async () => {
    const { dial, ask, port, enter, guard } = await guarded({ maxClients: 1 });
    const host = `${HOST}:${port}`;
    for (let count = 0; count < 10; count += 1)
      (await dial()).write(upgradeTo('/?key=wrong', host));
    await enter();
    expect(await ask(upgradeTo('/?key=right', host))).toContain('503');
    expect(guard.size.clients).toBe(1);
  });

  test('frees the place of a client that breaks the protocol and never closes', async () => {
    const { dial, port, enter, guard, environment, until } = await guarded({ maxClients: 1 });
    const socket = await dial();
    socket.write(upgradeTo('/?key=right', `${HOST}:${port}`));
    await once(socket, 'data');
    // A frame without a mask.
    socket.write(Buffer.from([0x81, 0x01, 0x41]));
    await once(socket, 'data');
    await environment.advance(1_000);
    await until(0);
    await enter();
    expect(guard.size.clients).toBe(1);
  });

  test('drops a client that does not answer a ping', async () => {
    const { dial, port, environment, until } = await guarded({
      webSocket: {
        maxMessageBytes: 1024,
        keepAliveMs: 1_000,
        upgrade: () => ({ type: 'open', open: () => undefined }),
      },
    });
    const socket = await dial();
    socket.write(upgradeTo('/', `${HOST}:${port}`));
    await once(socket, 'data');
    await environment.advance(2_000);
    await until(0);
  });
});

describe('GUARD-5: foreign host names and web pages', () => {
  test('refuses a foreign host name or origin, however it is spelled', async () => {
    const { ask, port } = await guarded();
    const host = `${HOST}:${port}`;
    const statusOf = async (target: string, of: string, more: readonly string[] = []) =>
      Number((await ask(upgradeTo(target, of, more))).split(' ')[1]);
    expect(await statusOf('/?key=right', host)).toBe(101);
    expect(await statusOf(`http://${host}/?key=right`, host)).toBe(101);
    expect(await statusOf('/?key=right', host, ['Origin: https://good.example'])).toBe(101);
    expect(await statusOf('/?key=right', 'evil.example')).toBe(403);
    expect(await statusOf('http://evil.example/?key=right', host)).toBe(403);
    expect(await statusOf('/?key=right', host, ['Origin: https://evil.example'])).toBe(403);
    expect(await statusOf('/?key=right', host, ['Origin: null'])).toBe(403);
  });

  test('accepts only the names of the loopback interface', () => {
    const names = ['127.0.0.1', 'localhost:80', 'LOCALHOST:8080', '[::1]:1'];
    const others = ['127.0.0.1.evil.example', 'localhost:', '127.0.0.1:1@evil', '', '127.0.0.2'];
    expect(names.filter(isLoopbackName)).toEqual(names);
    expect(others.filter(isLoopbackName)).toEqual([]);
  });

  test('parses any target without throwing', () => {
    expect(targetOf('/a?b=c?d')).toMatchObject({ path: '/a', authority: null });
    expect(targetOf('/a?b=c?d')?.query.get('b')).toBe('c?d');
    expect(targetOf('//a//b')?.path).toBe('/a//b');
    expect(targetOf('http://h:1/a?b')).toMatchObject({ path: '/a', authority: 'h:1' });
    for (const none of ['http://a:99999/', 'http://[/', '*', 'a:1', '', undefined])
      expect(targetOf(none)).toBeNull();
  });

  test('treats only identical secrets as equal', () => {
    expect(isSameSecret('abc', 'abc')).toBe(true);
    for (const other of ['abd', 'ab', 'abcd', '', null])
      expect(isSameSecret(other, 'abc')).toBe(false);
    expect(isSameSecret(null, '')).toBe(false);
  });
});

test('GUARD-6: closes every socket on `close`, and uses code 1001 for clients', async () => {
  const { guard, dial, port, enter } = await guarded();
  const client = await enter();
  await dial();
  (await dial()).write(upgradeTo('/?key=silent', `${HOST}:${port}`));
  const closed = once(client, 'close');
  await guard.close();
  expect(guard.size).toEqual({ connections: 0, clients: 0 });
  expect((await closed)[0]).toBe(1001);
});

describe('GUARD-6: a client that does not respond to the close', () => {
  /** Creates a client that reads but never answers the close. */
  async function deaf(options: Partial<GuardOptions> = {}) {
    const made = await guarded(options);
    const socket = await made.dial();
    socket.write(upgradeTo('/?key=right', `${HOST}:${made.port}`));
    await once(socket, 'data');
    return made;
  }

  test('loses its socket immediately if there is no grace period', async () => {
    const { guard } = await deaf();
    expect(guard.size).toEqual({ connections: 1, clients: 1 });
    const closed = guard.close();
    // No time passes; `ws` gives up only after seconds.
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    expect(guard.size).toEqual({ connections: 0, clients: 0 });
    await closed;
  });

  test('keeps its socket for the grace period, although unknown peers lose theirs immediately', async () => {
    const { guard, dial, until, environment } = await deaf();
    await dial();
    await until(2);
    let isClosed = false;
    const closed = guard.close({ graceMs: 5_000 }).then(() => (isClosed = true));
    await until(1);
    await environment.advance(4_999);
    expect([isClosed, guard.size.clients]).toEqual([false, 1]);
    await environment.advance(1);
    await closed;
    expect(guard.size).toEqual({ connections: 0, clients: 0 });
  });

  test('closes a connection that another server upgrades and hands over after `close`', async () => {
    const { guard } = await guarded();
    const server = createServer();
    const handed = new Promise<void>((resolve) => {
      server.on('upgrade', (request, socket, head) => {
        socket.once('close', resolve);
        void guard.close().then(() => guard.upgrade(request, socket, head));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const socket = connect({ port, host: HOST });
    socket.on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    socket.write(upgradeTo('/?key=right', `${HOST}:${port}`));
    await handed;
    expect(guard.size).toEqual({ connections: 0, clients: 0 });
  });
});

test('GUARD-4: counts a connection as a client only until its request is answered', async () => {
  const counts: number[] = [];
  const made = await guarded({
    request: ({ response, admit }) => {
      admit();
      counts.push(made.guard.size.clients);
      response.end('served');
    },
  });
  const { dial, port, guard, environment } = made;
  const socket = await dial();
  for (let asked = 0; asked < 3; asked += 1) {
    socket.write(`GET / HTTP/1.1\r\nHost: ${HOST}:${port}\r\n\r\n`);
    await once(socket, 'data');
    while (guard.size.clients > 0) await environment.settle();
  }
  expect(counts).toEqual([1, 1, 1]);
  expect(guard.size).toEqual({ connections: 1, clients: 0 });
});
