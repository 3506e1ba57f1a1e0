// The demo's server around a real session: the files of the page, and what a page asks beside the session. The session
// itself is served by `offstage/serve`, whose tests hold what clients may do.

import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createWorld } from '../../../../examples/voice-demo/agents/world.ts';
import {
  startDemoServer,
  type DemoServer,
  type DemoServerOptions,
} from '../../../../examples/voice-demo/server/demo-server.ts';
import { connect, type ClientStatus, type SessionClient } from '../../../../src/client/index.ts';
import { rideScript } from '../../../support/ride.ts';
import { voiceTalk } from '../../../support/voice-talk.ts';

const about = { transport: 'none', lead: 'rules', subagents: 'rules', speech: 'none' };

let talk: ReturnType<typeof voiceTalk>;
let server: DemoServer;
let log: string[];

function start(options: Partial<DemoServerOptions> = {}): Promise<DemoServer> {
  return startDemoServer({
    session: talk.session,
    world: createWorld(),
    port: 0,
    about,
    log: (line) => log.push(line),
    ...options,
  });
}

beforeEach(async () => {
  talk = voiceTalk({ subagents: { book_ride: { script: rideScript } } });
  log = [];
  server = await start();
});

afterEach(async () => {
  await server.close();
  await talk.close();
});

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** `fetch` would not let us say which host we mean. */
function ask(
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  const { method = 'GET', headers = {}, body } = options;
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: '127.0.0.1', port: server.port, path, method, headers, agent: false },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

function visit({ port, token }: { port: number; token: string }): SessionClient {
  const client = connect({ url: `http://127.0.0.1:${port}/offstage`, token });
  onTestFinished(() => client.close());
  return client;
}

function status(
  client: SessionClient,
  isWanted: (status: ClientStatus) => boolean,
): Promise<ClientStatus> {
  return new Promise((resolve) => {
    if (isWanted(client.status.get())) resolve(client.status.get());
    client.status.subscribe((now) => isWanted(now) && resolve(now));
  });
}

describe('the page', () => {
  test('is served with a strict policy and without inline script but its import map', async () => {
    const { status: code, headers, body } = await ask('/');
    expect(code).toBe(200);
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain('unsafe');
    expect(headers['x-content-type-options']).toBe('nosniff');
    const inline = body.match(/<script(?![^>]*\bsrc=)[^>]*>/g);
    expect(inline).toEqual(['<script type="importmap">']);
  });

  test('every module that it imports by name or path is there, as JavaScript', async () => {
    const { body } = await ask('/');
    const { imports } = JSON.parse(/importmap">(.*?)<\/script>/.exec(body)?.[1] ?? '{}') as {
      imports: Record<string, string>;
    };
    const seen = new Set<string>();
    const look = async (path: string): Promise<void> => {
      if (seen.has(path)) return;
      seen.add(path);
      const file = await ask(path);
      expect([path, file.status]).toEqual([path, 200]);
      expect(file.headers['content-type']).toContain('text/javascript');
      for (const [, specifier = ''] of file.body.matchAll(/(?<![\w-])from\s*["']([^"']+)["']/g)) {
        const found = imports[specifier];
        if (found) await look(found);
        else await look(new URL(specifier, `http://x${path}`).pathname);
      }
    };
    const entries = [...body.matchAll(/<script[^>]*src="([^"]+)"/g)].map(([, src = '']) => src);
    expect(entries.length).toBeGreaterThan(0);
    for (const entry of entries) await look(entry);
    await look('/offstage/src/client/worklet.ts');
    expect(seen.size).toBeGreaterThan(10);
  });

  test.each([
    '/page/../main.ts',
    '/page/%2e%2e/main.ts',
    '/main.ts',
    '/server/demo-server.ts',
    '/page/tsconfig.json',
    '/npm/zod/package.json',
    '/npm/preact/package.json',
    '/offstage/package.json',
    '/offstage/src/../package.json',
    '/page//etc/passwd',
    '/package.json',
  ])('does not serve %s, with or without the token', async (path) => {
    expect((await ask(path)).status).toBe(401);
    const headers = { authorization: `Bearer ${server.token}` };
    expect((await ask(path, { headers })).status).toBe(404);
  });

  test('is not served under a foreign name (DNS rebinding)', async () => {
    const { status: code } = await ask('/', { headers: { host: 'evil.example:80' } });
    expect(code).toBe(403);
  });
});

describe('access', () => {
  test('the session, with the token of this start', async () => {
    const { sessionId, role } = await status(visit(server), ({ state }) => state === 'open');
    expect({ sessionId, role }).toEqual({ sessionId: talk.session.id, role: 'user' });
  });

  test.each(['x'.repeat(32), 'short'])('not with %s', async (token) => {
    const { reason } = await status(visit({ ...server, token }), ({ state }) => state === 'closed');
    expect(reason?.code).toBe('UNAUTHORIZED');
    expect(talk.session.isAttached).toBe(false);
  });

  test('each start has a token of its own', async () => {
    const other = await start();
    expect(other.token).not.toBe(server.token);
    await other.close();
  });
});

describe('what a page asks', () => {
  const call = (
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> => {
    const text = typeof body === 'string' ? body : JSON.stringify(body ?? {});
    return ask(path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${server.token}`,
        'content-length': String(Buffer.byteLength(text)),
        ...headers,
      },
      body: text,
    });
  };

  test('DEMO-SERVER-1: nothing without the token', async () => {
    for (const headers of [{ authorization: '' }, { authorization: 'Bearer no' }]) {
      expect((await call('/about', undefined, headers)).status).toBe(401);
      expect((await call('/crash', {}, headers)).status).toBe(401);
      expect((await call('/order', { orderId: '1', status: 'x' }, headers)).status).toBe(401);
    }
    expect(talk.state().deliveries).toEqual([]);
  });

  test('what it talks with', async () => {
    const { status: code, body } = await call('/about');
    expect(code).toBe(200);
    expect(JSON.parse(body)).toEqual({ ...about, canCrash: false });
  });

  test('an order has changed: the user is told, at once if it is urgent', async () => {
    await talk.start();
    const urgent = await call('/order', { orderId: '1042', status: 'on its way', urgent: true });
    expect(urgent.status).toBe(202);
    expect(JSON.parse(urgent.body)).toMatchObject({ orderId: '1042', item: 'an oak desk' });
    await call('/order', { orderId: 'A-7', status: 'lost' });
    await talk.environment.settle();
    expect(
      talk.state().deliveries.map(({ text, priority, label }) => ({ text, priority, label })),
    ).toEqual([
      {
        text: 'Order 1042, an oak desk, is on its way.',
        priority: 'urgent',
        label: 'ORDER UPDATE',
      },
      { text: 'Order 7, your order, is lost.', priority: 'normal', label: 'ORDER UPDATE' },
    ]);
  });

  test.each<[string, unknown, number]>([
    ['no JSON', '{', 400],
    ['a field too few', { orderId: '1' }, 400],
    ['a field too many', { orderId: '1', status: 'x', priority: 'high' }, 400],
    ['too large a body', { orderId: '1', status: 'x'.repeat(5000) }, 413],
  ])('an order with %s is refused', async (_, body, expected) => {
    await talk.start();
    expect((await call('/order', body)).status).toBe(expected);
    expect(talk.state().deliveries).toEqual([]);
  });

  test('its death, if it may', async () => {
    expect((await call('/crash', {})).status).toBe(404);
    await server.close();
    let crashes = 0;
    server = await start({ crash: () => (crashes += 1) });
    expect(JSON.parse((await call('/about')).body)).toMatchObject({ canCrash: true });
    // Nobody answers: the server is gone.
    const asked = call('/crash', {}).catch(() => null);
    await expect.poll(() => crashes).toBe(1);
    await server.close();
    await asked;
  });
});

describe('the port', () => {
  test('falls forward when it is taken', async () => {
    const other = await start({ port: server.port });
    expect(other.port).toBeGreaterThan(server.port);
    expect(other.url).toContain(`:${other.port}/`);
    await other.close();
  });

  test('is free again after close, and all pages are told', async () => {
    const client = visit(server);
    await status(client, ({ state }) => state === 'open');
    const { port } = server;
    await server.close();
    const { reason } = await status(client, ({ state }) => state === 'waiting');
    expect(reason?.code).toBe('SERVER_CLOSING');
    const again = await start({ port });
    expect(again.port).toBe(port);
    await again.close();
  });
});
