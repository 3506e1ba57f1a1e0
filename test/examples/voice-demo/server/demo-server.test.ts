import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createWorld } from '../../../../examples/voice-demo/agents/world.ts';
import {
  startDemoServer,
  type DemoServer,
} from '../../../../examples/voice-demo/server/demo-server.ts';
import type { ServerLimits } from '../../../../examples/voice-demo/server/limits.ts';
import { decodeAudioPacket } from '../../../../examples/voice-demo/shared/audio-packet.ts';
import { FakeSession } from '../fake-session.ts';
import { emptyState } from '../../../support/session-state.ts';
import { PageSocket } from '../page-socket.ts';
import { testEnvironment, type TestEnvironment } from '../support.ts';

const about = { transport: 'none', lead: 'rules', subagents: 'rules', speech: 'none' };

let session: FakeSession;
let environment: TestEnvironment;
let server: DemoServer;
let log: string[];

function start(limits: Partial<ServerLimits> = {}, port = 0): Promise<DemoServer> {
  return startDemoServer({
    session,
    world: createWorld(),
    environment,
    port,
    about,
    suggestions: (webhook) => [{ title: 'Order', hint: '', run: webhook }],
    limits,
    log: (line) => log.push(line),
  });
}

async function restart(limits: Partial<ServerLimits>): Promise<void> {
  await server.close();
  server = await start(limits);
}

beforeEach(async () => {
  session = new FakeSession();
  environment = testEnvironment();
  log = [];
  server = await start();
});

afterEach(async () => {
  await server.close();
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

describe('the page', () => {
  test('is served with a strict policy and without inline script but its import map', async () => {
    const { status, headers, body } = await ask('/');
    expect(status).toBe(200);
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
    const visit = async (path: string): Promise<void> => {
      if (seen.has(path)) return;
      seen.add(path);
      const file = await ask(path);
      expect([path, file.status]).toEqual([path, 200]);
      expect(file.headers['content-type']).toContain('text/javascript');
      for (const [, specifier = ''] of file.body.matchAll(/(?<![\w-])from\s*["']([^"']+)["']/g)) {
        const found = imports[specifier];
        if (found) await visit(found);
        else await visit(new URL(specifier, `http://x${path}`).pathname);
      }
    };
    const entries = [...body.matchAll(/<script[^>]*src="([^"]+)"/g)].map(([, src = '']) => src);
    expect(entries.length).toBeGreaterThan(0);
    for (const entry of entries) await visit(entry);
    await visit('/page/audio/capture-worklet.ts');
    await visit('/page/audio/playback-worklet.ts');
    expect(seen.size).toBeGreaterThan(10);
  });

  test.each([
    '/page/../main.ts',
    '/page/%2e%2e/main.ts',
    '/main.ts',
    '/server/gate.ts',
    '/page/tsconfig.json',
    '/vendor/zod/package.json',
    '/page//etc/passwd',
    '/package.json',
  ])('does not serve %s', async (path) => {
    expect((await ask(path)).status).toBe(404);
  });

  test('is not served under a foreign name (DNS rebinding)', async () => {
    const { status } = await ask('/', { headers: { host: 'evil.example:80' } });
    expect(status).toBe(403);
  });

  test('does not answer other methods', async () => {
    expect((await ask('/', { method: 'DELETE' })).status).toBe(405);
  });

  test('says whether a token is the right one', async () => {
    const check = async (token: string): Promise<number> =>
      (await ask('/token', { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await check(server.token)).toBe(204);
    expect(await check('wrong')).toBe(401);
    expect(await check(`${server.token}x`)).toBe(401);
    expect((await ask('/token')).status).toBe(401);
  });
});

describe('access', () => {
  test('its own page with the token', async () => {
    const page = await PageSocket.open(server);
    expect(page.socket.protocol).toBe('offstage-demo');
  });

  test('its own page under the name localhost', async () => {
    const origin = `http://localhost:${server.port}`;
    const host = `localhost:${server.port}`;
    expect(await PageSocket.dial(server, { origin, host })).toBeInstanceOf(PageSocket);
  });

  test.each<[string, Parameters<typeof PageSocket.dial>[1]]>([
    ['the page of another site', { origin: 'https://evil.example' }],
    ['another port of this machine', { origin: 'http://127.0.0.1:1' }],
    ['a client without an origin', { origin: null }],
    ['a wrong token', { token: 'x'.repeat(32) }],
    ['a token that begins with ours', { token: 'short' }],
    ['no token', { protocols: ['offstage-demo'] }],
    ['a foreign host name', { host: 'evil.example' }],
  ])('not %s', async (_, options) => {
    expect(await PageSocket.dial(server, options)).toBe(403);
  });

  test('not at another path', async () => {
    expect(await PageSocket.dial(server, { path: '/other' })).toBe(404);
  });

  test('not more pages than allowed', async () => {
    await restart({ maxClients: 1 });
    await PageSocket.open(server);
    expect(await PageSocket.dial(server)).toBe(503);
  });

  test('each start has a token of its own', async () => {
    const other = await start();
    expect(other.token).not.toBe(server.token);
    await other.close();
  });
});

describe('messages of a page', () => {
  test('CLIENT-HUB-1: the session begins with the first page that can play, and once', async () => {
    const first = await PageSocket.open(server);
    expect(session.names).toEqual([]);
    first.send({ type: 'client.attach' });
    await first.next('voice.owner');
    const second = await PageSocket.open(server);
    second.send({ type: 'client.attach' });
    await second.next('voice.owner');
    expect(session.names).toEqual(['attach', 'start', 'detach', 'attach']);
  });

  test('text that is typed during the start is sent after it', async () => {
    const begun = session.holdStart();
    const page = await PageSocket.open(server);
    page.send({ type: 'client.attach' });
    page.send({ type: 'text.send', text: 'early' });
    page.send({ type: 'question.shown', requestId: 'q' });
    await session.until(() => session.names.includes('questionShown'));
    expect(session.names).not.toContain('sendText');
    begun();
    await session.until(() => session.names.includes('sendText'));
  });

  test('a session that does not begin is reported', async () => {
    session.failure = new Error('no such key');
    const page = await PageSocket.open(server);
    page.send({ type: 'client.attach' });
    await page.next('voice.owner');
    await session.until(() => session.names.includes('start'));
    await Promise.resolve();
    expect(log).toEqual(['The session did not begin: no such key']);
  });

  test('every message reaches the session', async () => {
    const page = await PageSocket.open(server);
    page.send({ type: 'client.attach' });
    page.send({ type: 'text.send', text: '  hello ' });
    page.send({ type: 'question.shown', requestId: 'q1' });
    page.send({ type: 'delivery.shown', deliveryId: 'd1' });
    page.send({ type: 'delivery.dismiss', deliveryId: 'd2' });
    page.send({ type: 'subagent.cancel', subagentId: 's1' });
    page.send({ type: 'playout.report', itemId: 'i1', playedMs: 120 });
    await session.until(() => session.names.includes('playout'));
    await session.until(() => session.names.includes('sendText'));
    expect(session.calls).toEqual(
      expect.arrayContaining([
        ['sendText', 'hello'],
        ['questionShown', 'q1'],
        ['shown', 'd1'],
        ['dismiss', 'd2'],
        ['cancel', 's1', 'the user pressed Stop'],
        ['playout', { itemId: 'i1', playedMs: 120 }],
      ]),
    );
    expect(session.calls).toHaveLength(8);
  });

  test.each([{ optionId: 'economy' }, { text: 'economy' }, { approved: false }])(
    'the answer %j gets a receipt',
    async (answer) => {
      session.receipt = { accepted: false, reason: 'over' };
      const page = await PageSocket.open(server);
      page.send({ type: 'question.answer', requestId: 'q1', answer });
      expect(await page.next('answer.receipt')).toMatchObject({
        requestId: 'q1',
        receipt: { accepted: false, reason: 'over' },
      });
      expect(session.calls).toEqual([['answer', 'q1', answer]]);
    },
  );

  test.each([
    'hello',
    '{}',
    '{"type":"client.attach","extra":1}',
    '{"type":"text.send","text":""}',
    `{"type":"text.send","text":"${'x'.repeat(2001)}"}`,
    '{"type":"question.answer","requestId":"q","answer":{}}',
    '{"type":"playout.report","itemId":"i","playedMs":-1}',
    '{"type":"microphone.open","sampleRateHz":4000}',
    '{"type":"xstate.init"}',
    '[]',
    'null',
    '\u0000',
  ])(
    'CLIENT-CONNECTION-1: %j is answered with what was expected, and nothing happens',
    async (rubbish) => {
      const page = await PageSocket.open(server);
      page.send(rubbish);
      const { code, message } = await page.next('client.error');
      expect(code).toBe('INVALID_MESSAGE');
      expect(message).toContain('Expected a message of the protocol');
      expect(session.calls).toEqual([]);
    },
  );

  test('CLIENT-CONNECTION-1: too much rubbish closes that connection and no other', async () => {
    await restart({ mistakes: { burst: 3, perSecond: 0 } });
    const [good, bad] = [await PageSocket.open(server), await PageSocket.open(server)];
    for (let count = 0; count < 10; count++) bad.send('rubbish');
    expect(await bad.closed).toBe(1008);
    good.send({ type: 'text.send', text: 'still here' });
    await session.until(() => session.names.includes('sendText'));
  });

  test('CLIENT-CONNECTION-1: mistakes are forgiven with time', async () => {
    await restart({ mistakes: { burst: 1, perSecond: 1 } });
    const page = await PageSocket.open(server);
    for (let count = 0; count < 5; count++) {
      page.send('rubbish');
      await page.next('client.error');
      environment.advance(1000);
    }
    expect(page.socket.readyState).toBe(page.socket.OPEN);
  });

  test('a flood of messages is refused beyond the rate', async () => {
    await restart({ messages: { burst: 5, perSecond: 1 } });
    const page = await PageSocket.open(server);
    for (let count = 0; count < 6; count++) page.send({ type: 'text.send', text: `${count}` });
    expect((await page.next('client.error')).code).toBe('RATE_LIMITED');
    expect(session.calls).toHaveLength(5);
    environment.advance(1000);
    page.send({ type: 'text.send', text: 'later' });
    await session.until(() => session.calls.length === 6);
  });

  test('an oversized frame closes the connection', async () => {
    const page = await PageSocket.open(server);
    page.send(JSON.stringify({ type: 'text.send', text: 'x'.repeat(20_000) }));
    expect(await page.closed).toBe(1009);
    expect(session.calls).toEqual([]);
  });

  test('CLIENT-CONNECTION-2: a session that throws is answered, not fatal', async () => {
    session.failure = new Error('it is closed');
    const page = await PageSocket.open(server);
    page.send({ type: 'text.send', text: 'hello' });
    expect(await page.next('client.error')).toMatchObject({
      code: 'FAILED',
      message: 'it is closed',
    });
  });
});

describe('sound of the user', () => {
  const frame = (samples: number): Uint8Array => new Uint8Array(samples * 2).fill(1);
  const speaking = async (): Promise<PageSocket> => {
    const page = await PageSocket.open(server);
    page.send({ type: 'client.attach' });
    page.send({ type: 'microphone.open', sampleRateHz: 24_000 });
    return page;
  };

  test('reaches the session with its rate, as little-endian samples', async () => {
    const page = await speaking();
    page.sendAudio(Uint8Array.of(0x34, 0x12, 0xff, 0xff));
    await session.until(() => session.heard.length > 0);
    const [heard] = session.heard;
    expect(heard?.sampleRateHz).toBe(24_000);
    expect([...(heard?.samples ?? [])]).toEqual([0x1234, -1]);
  });

  test('before `microphone.open` is refused', async () => {
    const page = await PageSocket.open(server);
    page.sendAudio(frame(480));
    expect((await page.next('client.error')).code).toBe('UNEXPECTED_AUDIO');
  });

  test.each([1, 481 * 2 + 1, 9_602])('of %i bytes is refused', async (bytes) => {
    const page = await speaking();
    page.sendAudio(new Uint8Array(bytes));
    expect((await page.next('client.error')).code).toBe('INVALID_AUDIO');
    expect(session.heard).toEqual([]);
  });

  test('faster than real time is refused', async () => {
    await restart({ audioSeconds: { burst: 0.11, perSecond: 1 } });
    const page = await speaking();
    for (let count = 0; count < 6; count++) page.sendAudio(frame(480));
    expect((await page.next('client.error')).code).toBe('RATE_LIMITED');
    expect(session.heard).toHaveLength(5);
  });

  test('CLIENT-HUB-3: of a page that does not own the voice is not heard', async () => {
    const first = await speaking();
    const second = await speaking();
    await second.next('voice.owner');
    first.sendAudio(frame(480));
    first.send({ type: 'playout.report', itemId: 'i', playedMs: 1 });
    first.send({ type: 'text.send', text: 'after the sound' });
    await session.until(() => session.names.includes('sendText'));
    expect(session.heard).toEqual([]);
    expect(session.names).not.toContain('playout');
  });
});

describe('messages to a page', () => {
  test('all that there is, first', async () => {
    session.state = {
      ...emptyState,
      transcript: [{ id: 'u1', role: 'user', text: 'Hi', final: true, at: 1 }],
    };
    const page = await PageSocket.dial(server);
    if (typeof page === 'number') throw new Error('refused');
    expect(await page.next('welcome')).toMatchObject({
      now: environment.clock.now(),
      state: session.state,
      about,
      suggestions: [{ run: server.webhook }],
    });
  });

  test('CLIENT-HUB-4: the arguments of calls that were made before it came', async () => {
    session.events.next({
      type: 'tool.called',
      callId: 'c1',
      name: 'book_ride',
      input: { destination: 'the airport' },
    });
    const page = await PageSocket.dial(server);
    if (typeof page === 'number') throw new Error('refused');
    expect((await page.next('welcome')).calls).toEqual([
      { callId: 'c1', input: { destination: 'the airport' } },
    ]);
  });

  test('every event, on every page', async () => {
    const pages = [await PageSocket.open(server), await PageSocket.open(server)];
    session.events.next({ type: 'floor.changed', floor: 'user' });
    for (const page of pages)
      expect((await page.next('session.event')).event).toEqual({
        type: 'floor.changed',
        floor: 'user',
      });
  });

  test('speech, named once for each item, on the page that owns the voice only', async () => {
    const [other, owner] = [await PageSocket.open(server), await PageSocket.open(server)];
    owner.send({ type: 'client.attach' });
    await owner.next('voice.owner');
    const frame = (itemId: string, value: number) => ({
      itemId,
      samples: Int16Array.of(value, -value),
      sampleRateHz: 24_000,
    });
    session.audioOut.next(frame('a', 7));
    session.audioOut.next(frame('a', 8));
    session.audioOut.next(frame('b', 9));
    expect(await owner.next('audio.item')).toMatchObject({ ref: 1, itemId: 'a' });
    expect(decodeAudioPacket(await owner.nextAudio())).toEqual({
      ref: 1,
      samples: Int16Array.of(7, -7),
    });
    expect(decodeAudioPacket(await owner.nextAudio()).ref).toBe(1);
    expect(await owner.next('audio.item')).toMatchObject({ ref: 2, itemId: 'b' });
    expect(decodeAudioPacket(await owner.nextAudio()).ref).toBe(2);
    session.events.next({ type: 'floor.changed', floor: 'nobody' });
    await other.next('session.event');
    expect(other.received).toEqual([]);
  });

  test('CLIENT-CONNECTION-3: a page that takes nothing is closed before memory grows', async () => {
    await restart({ maxUnsentBytes: 100_000 });
    const page = await PageSocket.open(server);
    page.send({ type: 'client.attach' });
    await page.next('voice.owner');
    page.socket.pause();
    const frame = { itemId: 'a', samples: new Int16Array(24_000), sampleRateHz: 24_000 };
    // The socket's own buffers take some before it counts as unsent.
    for (let count = 0; count < 400; count++) session.audioOut.next(frame);
    page.socket.resume();
    expect(await page.closed).toBe(1013);
  });

  test('a page that shows no sign of life is dropped', async () => {
    const page = await PageSocket.open(server);
    page.send({ type: 'client.attach' });
    await page.next('voice.owner');
    page.socket.pause();
    environment.advance(15_000);
    environment.advance(15_000);
    await session.until(() => session.names.includes('detach'));
  });
});

describe('the voice moves', () => {
  test('CLIENT-HUB-2: to the page that came last, and back when it leaves', async () => {
    const first = await PageSocket.open(server);
    first.send({ type: 'client.attach' });
    expect((await first.next('voice.owner')).own).toBe(true);
    const second = await PageSocket.open(server);
    second.send({ type: 'client.attach' });
    expect((await second.next('voice.owner')).own).toBe(true);
    expect((await first.next('voice.owner')).own).toBe(false);
    second.socket.close();
    expect((await first.next('voice.owner')).own).toBe(true);
    expect(session.names.filter((name) => name !== 'start')).toEqual([
      'attach',
      'detach',
      'attach',
      'detach',
      'attach',
    ]);
  });

  test('CLIENT-HUB-1: when the last page leaves, the session has no client', async () => {
    const page = await PageSocket.open(server);
    page.send({ type: 'client.attach' });
    await page.next('voice.owner');
    page.socket.close();
    await session.until(() => session.names.includes('detach'));
  });

  test('asking again changes nothing', async () => {
    const page = await PageSocket.open(server);
    page.send({ type: 'client.attach' });
    page.send({ type: 'client.attach' });
    page.send({ type: 'text.send', text: 'x' });
    await session.until(() => session.names.includes('sendText'));
    expect(session.names).toEqual(['attach', 'start', 'sendText']);
  });
});

describe('the webhook', () => {
  const call = (body: unknown, headers: Record<string, string> = {}, method = 'POST') =>
    ask('/webhook/order', {
      method,
      headers: {
        authorization: `Bearer ${server.token}`,
        'content-type': 'application/json',
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });

  test('tells the user, at once if it is urgent', async () => {
    const { status, body } = await call({ orderId: '1042', status: 'on its way', urgent: true });
    expect(status).toBe(202);
    expect(JSON.parse(body)).toMatchObject({ accepted: true, order: { orderId: '1042' } });
    await call({ orderId: 'A-7', status: 'lost' });
    expect(session.calls).toEqual([
      [
        'notifyBackground',
        'Order 1042, an oak desk, is on its way.',
        { priority: 'urgent', label: 'ORDER UPDATE' },
      ],
      [
        'notifyBackground',
        'Order 7, your order, is lost.',
        { priority: 'normal', label: 'ORDER UPDATE' },
      ],
    ]);
  });

  test('the printed command is the one that works', async () => {
    const [, url = ''] = /POST (\S+)/.exec(server.webhook) ?? [];
    const headers = Object.fromEntries(
      [...server.webhook.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, name, value]) => [
        name,
        value,
      ]),
    ) as Record<string, string>;
    const [, body = ''] = /-d '([^']+)'/.exec(server.webhook) ?? [];
    expect(new URL(url).port).toBe(String(server.port));
    const { status } = await ask(new URL(url).pathname, { method: 'POST', headers, body });
    expect(status).toBe(202);
  });

  test.each<[string, unknown, Record<string, string>, number]>([
    ['without the token', { orderId: '1', status: 'x' }, { authorization: '' }, 401],
    ['with a wrong token', { orderId: '1', status: 'x' }, { authorization: 'Bearer no' }, 401],
    ['from another site', { orderId: '1', status: 'x' }, { origin: 'https://evil.example' }, 403],
    ['as a form', 'orderId=1', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['with no JSON', '{', {}, 400],
    ['with a field too few', { orderId: '1' }, {}, 400],
    ['with a field too many', { orderId: '1', status: 'x', priority: 'high' }, {}, 400],
    ['with too large a body', { orderId: '1', status: 'x'.repeat(5000) }, {}, 413],
  ])('%s is refused', async (_, body, headers, expected) => {
    const { status } = await call(body, headers);
    expect(status).toBe(expected);
    expect(session.calls).toEqual([]);
  });

  test('is not answered to GET', async () => {
    expect((await call('', {}, 'GET')).status).toBe(405);
  });

  test('is limited in rate', async () => {
    await restart({ webhooks: { burst: 1, perSecond: 1 } });
    const statuses = [];
    for (let count = 0; count < 2; count++)
      statuses.push((await call({ orderId: '1', status: 'x' })).status);
    expect(statuses).toEqual([202, 429]);
  });
});

describe('the port', () => {
  test('falls forward when it is taken', async () => {
    const other = await start({}, server.port);
    expect(other.port).toBeGreaterThan(server.port);
    expect(other.url).toContain(`:${other.port}/`);
    await other.close();
  });

  test('is free again after close, and all pages are told', async () => {
    const page = await PageSocket.open(server);
    page.send({ type: 'client.attach' });
    await page.next('voice.owner');
    const { port } = server;
    await server.close();
    expect(await page.closed).toBe(1001);
    expect(session.names.at(-1)).toBe('detach');
    const again = await start({}, port);
    expect(again.port).toBe(port);
    await again.close();
  });
});
