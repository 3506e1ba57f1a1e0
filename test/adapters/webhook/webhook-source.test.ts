// Sends real requests to a real port on this machine; only the clock is simulated.

import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { EventReceipt } from '../../../src/actors/ports/event-source.ts';
import { webhookSource, type WebhookSourceOptions } from '../../../src/adapters/webhook/index.ts';
import { hmac, PATH, SECRET, send, standardHeaders, startHook } from './support/hook.ts';

let hook: Awaited<ReturnType<typeof startHook>>;
const start = async (options: Partial<WebhookSourceOptions> = {}) => {
  hook = await startHook(options);
};
afterEach(() => hook.stop());

const unauthorized = { status: 401, body: { error: 'Unauthorized' } };

describe('a signed request', { tags: ['B76'] }, () => {
  test('becomes an event with type and data; the response is 202 once the event is accepted', async () => {
    await start();
    const reply = await hook.sendSigned({ type: 'order.shipped', order: 7 });
    expect(reply).toMatchObject({ status: 202, body: { accepted: true } });
    expect(hook.emitted).toEqual([
      { source: 'webhook', type: 'order.shipped', data: { type: 'order.shipped', order: 7 } },
    ]);
  });

  test('WEBHOOK-SOURCE-3: gets a response only once its event has been accepted', async () => {
    await start();
    let accept: (receipt: EventReceipt) => void = () => {};
    hook.receipt = new Promise((resolve) => (accept = resolve));
    let isAnswered = false;
    const reply = hook.sendSigned({}).finally(() => (isAnswered = true));
    while (hook.emitted.length === 0) await hook.environment.settle();
    expect(isAnswered).toBe(false);
    accept({ accepted: true, eventId: 'evt_1' });
    expect((await reply).status).toBe(202);
  });

  test('becomes the event that toEvent returns, if any', async () => {
    await start({
      toEvent: ({ body, headers, id }) =>
        headers['x-kind'] === undefined
          ? null
          : {
              source: 'shop',
              type: String(headers['x-kind']),
              data: { body, id },
              priority: 'urgent',
            },
    });
    const at = hook.seconds();
    const headers = {
      ...standardHeaders('[1]', { id: 'a', at, secret: SECRET }),
      'x-kind': 'late',
    };
    expect((await hook.send({ body: '[1]', headers })).status).toBe(202);
    expect(hook.emitted).toEqual([
      { source: 'shop', type: 'late', data: { body: [1], id: 'a' }, priority: 'urgent' },
    ]);
    expect(await hook.sendSigned({}, { id: 'b' })).toMatchObject({
      status: 200,
      body: { accepted: false },
    });
  });

  test.each([
    [{ reason: 'ignored' }, 200, undefined],
    [{ reason: 'full' }, 503, '5'],
    [{ reason: 'stopped' }, 503, '5'],
    [{ reason: 'invalid' }, 422, undefined],
    [{ reason: 'too_large' }, 422, undefined],
  ] as const)(
    "gets the status that matches the service's receipt: %o",
    async (said, status, retryAfter) => {
      await start();
      hook.receipt = { accepted: false, message: 'a secret of ours', ...said };
      const reply = await hook.sendSigned({});
      expect(reply.status).toBe(status);
      expect(reply.headers['retry-after']).toBe(retryAfter);
      expect(JSON.stringify(reply.body)).not.toContain('secret');
    },
  );

  test("gets 422 without the error's message when toEvent throws", async () => {
    await start({
      toEvent: () => {
        throw new Error('no such column');
      },
    });
    const reply = await hook.sendSigned({});
    expect(reply).toMatchObject({ status: 422, body: { error: 'Unprocessable' } });
    expect(hook.errors.map(String)).toEqual(['Error: no such column']);
  });

  test('gets 422 even if toEvent itself throws a parse error', async () => {
    await start({ toEvent: () => JSON.parse('{') as never });
    expect(await hook.sendSigned({})).toMatchObject({
      status: 422,
      body: { error: 'Unprocessable' },
    });
    expect(hook.errors).toEqual([expect.any(SyntaxError)]);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('the log is full');
      },
    ],
    ['rejects', (): unknown => Promise.reject(new Error('the log is full'))],
  ])(
    'gets its answer even if the listener of refusals %s, which is reported',
    async (_how, onRefused) => {
      await start({ onRefused });
      expect(await hook.send({ body: '{}' })).toMatchObject(unauthorized);
      expect(hook.errors.map(String)).toEqual(['Error: the log is full']);
    },
  );
});

describe('WEBHOOK-SOURCE-1: the signature', () => {
  test('causes the same 401 response when the secret or the body is wrong or the signature is missing', async () => {
    await start();
    const at = hook.seconds();
    const good = standardHeaders('{}', { id: 'a', at, secret: SECRET });
    const replies = [
      await hook.sendSigned({}, { secret: 'another secret, long enough' }),
      await hook.send({ body: '{"a":1}', headers: good }),
      await hook.send({ body: '{}', headers: { ...good, 'webhook-id': 'b' } }),
      await hook.send({ body: '{}', headers: { ...good, 'webhook-timestamp': String(at + 1) } }),
      await hook.send({ body: '{}', headers: { ...good, 'webhook-signature': undefined } }),
      await hook.send({ body: '{}', headers: { ...good, 'webhook-signature': 'v1,' } }),
      await hook.send({ body: '{}', headers: { ...good, 'webhook-signature': 'v1,c2hvcnQ=' } }),
      await hook.send({ body: '{}', headers: { ...good, 'webhook-timestamp': 'soon' } }),
      await hook.send({ body: '{}', headers: { ...good, 'webhook-id': undefined } }),
      // The body is not JSON either, but the signature is checked first.
      await hook.send({ body: '{' }),
    ];
    for (const reply of replies) expect(reply).toMatchObject(unauthorized);
    expect(hook.emitted).toEqual([]);
    expect(new Set(hook.refusals.map(({ reason }) => reason)).size).toBe(2);
  });

  test('passes with any of several secrets, and with any of several signatures', async () => {
    await start({ secret: ['the new secret, long enough', SECRET] });
    expect((await hook.sendSigned({}, { id: 'a' })).status).toBe(202);
    const at = hook.seconds();
    const headers = standardHeaders('{}', { id: 'b', at, secret: SECRET });
    headers['webhook-signature'] = `v1a,x v1,${'A'.repeat(44)} ${headers['webhook-signature']}`;
    expect((await hook.send({ body: '{}', headers })).status).toBe(202);
  });

  test('accepts a Standard Webhooks secret as a base64 key', async () => {
    const key = Buffer.alloc(24, 7);
    await start({ secret: `whsec_${key.toString('base64')}` });
    const at = hook.seconds();
    const headers = standardHeaders('{}', { id: 'a', at, secret: key });
    expect((await hook.send({ body: '{}', headers })).status).toBe(202);
  });

  test("supports Stripe's scheme", async () => {
    await start({ signature: 'stripe' });
    const at = hook.seconds();
    const v1 = hmac(`${at}.{}`, SECRET, 'hex');
    const wrong = 'a'.repeat(64);
    const send_ = (header: string) =>
      hook.send({ body: '{}', headers: { 'stripe-signature': header } });
    expect((await send_(`t=${at},v1=${wrong},v1=${v1},v0=x`)).status).toBe(202);
    expect(await send_(`t=${at},v1=${wrong}`)).toMatchObject(unauthorized);
    expect(await send_(`v1=${v1}`)).toMatchObject(unauthorized);
  });

  test("supports GitHub's scheme", async () => {
    await start({ signature: 'github' });
    const send_ = (header: string) =>
      hook.send({ body: '{}', headers: { 'x-hub-signature-256': header } });
    expect(await send_(hmac('{}', SECRET, 'hex'))).toMatchObject(unauthorized);
    const signature = `sha256=${hmac('{}', SECRET, 'hex')}`;
    expect((await send_(signature)).status).toBe(202);
    // Without a time and a signed delivery id, equal bytes count as the same message.
    expect(await send_(signature)).toMatchObject({ status: 200, body: { duplicate: true } });
  });

  test('supports the configured headers', async () => {
    await start({
      signature: {
        header: 'X-Shop-Signature',
        prefix: 'v0=',
        encoding: 'base64',
        timestampHeader: 'X-Shop-Time',
        idHeader: 'X-Shop-Id',
      },
    });
    const at = hook.seconds();
    const headers = {
      'x-shop-id': 'a',
      'x-shop-time': String(at),
      'x-shop-signature': `v0=${hmac(`a.${at}.{}`, SECRET, 'base64')}`,
    };
    expect((await hook.send({ body: '{}', headers })).status).toBe(202);
    expect(await hook.send({ body: '{}', headers: { ...headers, 'x-shop-id': '' } })).toMatchObject(
      unauthorized,
    );
  });
});

describe('WEBHOOK-SOURCE-2: a message that must be accepted only once', () => {
  test('fails with 401 when its timestamp is too old or in the future', async () => {
    await start({ toleranceMs: 60_000 });
    const now = hook.seconds();
    expect(await hook.sendSigned({}, { at: now - 61 })).toMatchObject(unauthorized);
    expect(await hook.sendSigned({}, { at: now + 61 })).toMatchObject(unauthorized);
    expect((await hook.sendSigned({}, { at: now - 59 })).status).toBe(202);
  });

  test("has an age by the wall clock, although the actors' clock never goes back", async () => {
    await start({ toleranceMs: 60_000 });
    const now = hook.seconds();
    Object.assign(hook.environment.clock, { wall: () => now * 1000 });
    await hook.environment.advance(3_600_000);
    expect((await hook.sendSigned({}, { at: now })).status).toBe(202);
  });

  test('counts as a duplicate when it is repeated, and gets the status 200', async () => {
    await start();
    await hook.sendSigned({ n: 1 });
    expect(await hook.sendSigned({ n: 1 })).toMatchObject({
      status: 200,
      body: { accepted: true, duplicate: true },
    });
    // A sender that retries signs again under the same id.
    await hook.environment.advance(10_000);
    expect(await hook.sendSigned({ n: 1 })).toMatchObject({ body: { duplicate: true } });
    expect(hook.emitted).toHaveLength(1);
  });

  test('counts as a duplicate for as long as its timestamp is accepted', async () => {
    await start({ toleranceMs: 60_000 });
    const at = hook.seconds() + 60;
    expect((await hook.sendSigned({}, { at })).status).toBe(202);
    await hook.environment.advance(119_000);
    expect(await hook.sendSigned({}, { at })).toMatchObject({ body: { duplicate: true } });
    await hook.environment.advance(2_000);
    expect(await hook.sendSigned({}, { at })).toMatchObject(unauthorized);
    expect(hook.emitted).toHaveLength(1);
  });

  test('causes only one event when it arrives twice at the same time', async () => {
    await start();
    const replies = await Promise.all([hook.sendSigned({}), hook.sendSigned({})]);
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 202]));
    expect(hook.emitted).toHaveLength(1);
  });

  test('gets a 503 with retry-after while an identical message is pending', async () => {
    await start();
    let refuse: (receipt: EventReceipt) => void = () => {};
    hook.receipt = new Promise((resolve) => (refuse = resolve));
    const first = hook.sendSigned({});
    while (hook.emitted.length === 0) await hook.environment.settle();
    const again = await hook.sendSigned({});
    expect(again).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    refuse({ accepted: false, reason: 'full', message: 'full' });
    expect((await first).status).toBe(503);
    hook.receipt = { accepted: true, eventId: 'evt_1' };
    expect((await hook.sendSigned({})).status).toBe(202);
    expect(await hook.sendSigned({})).toMatchObject({ body: { duplicate: true } });
    expect(hook.emitted).toHaveLength(2);
  });

  test('succeeds later if it could not be accepted at first', async () => {
    await start();
    hook.receipt = { accepted: false, reason: 'full', message: 'full' };
    expect((await hook.sendSigned({})).status).toBe(503);
    hook.receipt = { accepted: true, eventId: 'evt_1' };
    expect((await hook.sendSigned({})).status).toBe(202);
  });

  test('requires `maxRemembered` to cover all requests within the tolerance', () => {
    const options = { path: PATH, secret: SECRET };
    expect(() => webhookSource({ ...options, rate: { burst: 1, perSecond: 100 } })).toThrow(
      'expected `maxRemembered` to be at least 60001',
    );
  });

  test('remains a duplicate while it is among the latest messages, if the signature has no timestamp', async () => {
    await start({ signature: 'github', maxRemembered: 2 });
    const sendBody = (body: string) =>
      hook.send({
        body,
        headers: { 'x-hub-signature-256': `sha256=${hmac(body, SECRET, 'hex')}` },
      });
    for (const body of ['1', '2', '3']) await sendBody(body);
    expect((await sendBody('3')).status).toBe(200);
    expect((await sendBody('1')).status).toBe(202);
  });
});

describe('the shape of a request', () => {
  test.each([
    ['another path', { path: '/other' }, 404],
    ['another method', { method: 'GET' }, 405],
    ['no content type', { headers: { 'content-type': undefined } }, 415],
    ['a form', { headers: { 'content-type': 'application/x-www-form-urlencoded' } }, 415],
    ['a compressed body', { headers: { 'content-encoding': 'gzip' } }, 415],
    ['too large a body', { body: 'x'.repeat(101) }, 413],
    [
      'too large a body in chunks',
      {
        body: 'x'.repeat(101),
        headers: {
          'transfer-encoding': 'chunked',
          ...standardHeaders('', { id: 'a', at: 1_700_000_000, secret: SECRET }),
        },
      },
      413,
    ],
  ])('leads to an error status: %s', async (_what, sent, status) => {
    await start({ maxBytes: 100 });
    const reply = await hook.send(sent);
    expect(reply.status).toBe(status);
    expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(reply.headers['allow']).toBe(status === 405 ? 'POST' : undefined);
    expect(hook.emitted).toEqual([]);
  });

  test('allows any JSON value, and responds with 400 to signed text that is not JSON', async () => {
    await start();
    const at = hook.seconds();
    const headers = {
      ...standardHeaders('{}', { id: 'a', at, secret: SECRET }),
      'content-type': 'application/cloudevents+json; charset=utf-8',
    };
    expect((await hook.send({ path: `${PATH}?from=shop`, body: '{}', headers })).status).toBe(202);
    expect(await hook.sendSigned('{', { id: 'b' })).toMatchObject({
      status: 400,
      body: { error: 'Expected JSON' },
    });
  });
});

describe('WEBHOOK-SOURCE-4: the limits of a source', () => {
  test('refuse excess signed requests with 429, without counting unsigned requests', async () => {
    await start({ rate: { burst: 2, perSecond: 1 } });
    for (let n = 0; n < 5; n++) await hook.send({ body: '{}' });
    const statusOf = async (id: string) => (await hook.sendSigned({}, { id })).status;
    expect([await statusOf('a'), await statusOf('b'), await statusOf('c')]).toEqual([
      202, 202, 429,
    ]);
    // A replay does not produce an event either.
    expect(await statusOf('a')).toBe(200);
    await hook.environment.advance(1_000);
    expect(await statusOf('c')).toBe(202);
  });

  /** Sends the head of a request and part of its body, and waits for the response. */
  const dribble = () => {
    const headers = {
      'content-type': 'application/json',
      'content-length': '10',
      ...standardHeaders('', { id: 'slow', at: hook.seconds(), secret: SECRET }),
    };
    const request = httpRequest(hook.source.url ?? '', { method: 'POST', agent: false, headers });
    const answered = new Promise<number>((resolve, reject) => {
      request.on('response', (response) => resolve(response.statusCode ?? 0));
      request.on('error', reject);
    });
    request.write('{');
    return { answered, request };
  };
  /** Waits until the server has started to read them. */
  const read = async (timers: number): Promise<void> => {
    while (hook.environment.pendingTimers < timers) await hook.environment.settle();
  };

  test('respond with 408 to a body that does not arrive', async () => {
    await start({ bodyTimeoutMs: 5_000 });
    const { answered, request } = dribble();
    await read(1);
    await hook.environment.advance(5_000);
    expect(await answered).toBe(408);
    request.destroy();
  });

  test('drop the slowest body when another one arrives, and respond to its sender with 503', async () => {
    await start({ maxConcurrent: 1 });
    const { answered, request } = dribble();
    await read(1);
    expect((await hook.sendSigned({})).status).toBe(202);
    expect(await answered).toBe(503);
    request.destroy();
  });

  test('serve other senders regardless of the number of slow bodies', async () => {
    await start({ maxConcurrent: 50 });
    const slow = Array.from({ length: 120 }, () => dribble());
    for (const { answered } of slow) answered.catch(() => undefined);
    await read(50);
    expect((await hook.sendSigned({})).status).toBe(202);
    for (const { request } of slow) request.destroy();
  });

  test('respond with 503 to excess simultaneous signed messages, until one has been accepted', async () => {
    await start({ maxConcurrent: 1 });
    let accept: (receipt: EventReceipt) => void = () => {};
    hook.receipt = new Promise((resolve) => (accept = resolve));
    const first = hook.sendSigned({}, { id: 'a' });
    while (hook.emitted.length === 0) await hook.environment.settle();
    expect((await hook.sendSigned({}, { id: 'b' })).status).toBe(503);
    accept({ accepted: true, eventId: 'evt_1' });
    expect((await first).status).toBe(202);
    hook.receipt = { accepted: true, eventId: 'evt_2' };
    expect((await hook.sendSigned({}, { id: 'b' })).status).toBe(202);
  });

  test('WEBHOOK-SOURCE-5: respond to pending requests when stopped, and free the port', async () => {
    await start();
    const { answered } = dribble();
    await read(1);
    const { port } = new URL(hook.source.url ?? '');
    await hook.stop();
    expect(await answered).toBe(503);
    expect(hook.source.url).toBeNull();
    await expect(send(`http://127.0.0.1:${port}${PATH}`, {})).rejects.toThrow('ECONNREFUSED');
    expect(hook.environment.pendingTimers).toBe(0);
  });
});

describe('the listener', () => {
  test('accepts only connections from this machine by default', async () => {
    await start();
    expect(hook.source.url).toMatch(new RegExp(`^http://127\\.0\\.0\\.1:\\d+${PATH}$`));
  });

  test('fails to start on a port that is in use', { tags: ['B77'] }, async () => {
    await start();
    const port = Number(new URL(hook.source.url ?? '').port);
    const second = webhookSource({ path: PATH, secret: SECRET, listen: { port } });
    await expect(hook.begin(second)).rejects.toThrow('EADDRINUSE');
  });

  test('starts again after a stop, and still recognises duplicates', async () => {
    await start();
    await hook.sendSigned({});
    await hook.stop();
    await hook.begin();
    expect(await hook.sendSigned({})).toMatchObject({ body: { duplicate: true } });
  });

  test('serves only one service, and continues to serve it if a second one tries to start', async () => {
    await start();
    const other = new AbortController();
    await expect(hook.begin(hook.source, other)).rejects.toThrow('got one for two');
    other.abort();
    await hook.source.stop?.();
    expect((await hook.sendSigned({})).status).toBe(202);
  });

  describe("a source on the app's server", () => {
    let server: Server;
    afterEach(
      () =>
        new Promise<void>((resolve) => {
          server.close(() => resolve());
        }),
    );
    const serve = async (before: (request: NodeJS.ReadableStream) => Promise<void>) => {
      hook = await startHook({ listen: undefined });
      server = createServer((request, response) => {
        void before(request).then(() => hook.source.handler(request, response));
      });
      await new Promise<void>((resolve) => {
        server.listen(0, '127.0.0.1', resolve);
      });
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`;
    };
    const signed = () => ({
      body: '{}',
      headers: standardHeaders('{}', { id: 'a', at: hook.seconds(), secret: SECRET }),
    });

    test('responds through its handler, and with 503 once it has been stopped', async () => {
      const url = await serve(() => Promise.resolve());
      expect(hook.source.url).toBeNull();
      expect((await send(url, signed())).status).toBe(202);
      await hook.stop();
      expect((await send(url, signed())).status).toBe(503);
    });

    test.each([
      [
        'read',
        async (request: NodeJS.ReadableStream) => {
          for await (const _ of request) void _;
        },
      ],
      [
        'decoded',
        async (request: NodeJS.ReadableStream) => {
          request.setEncoding('utf8');
        },
      ],
    ])('reports a body that was already %s as a mistake of the app', async (_, before) => {
      const url = await serve(before);
      expect(await send(url, signed())).toMatchObject({
        status: 500,
        body: { error: 'Internal error' },
      });
      expect(String(hook.errors[0])).toContain('before any body parser');
    });
  });
});

test('treats an option set to undefined as missing', () => {
  const none = { name: undefined, signature: undefined, maxBytes: undefined, rate: undefined };
  expect(webhookSource({ path: PATH, secret: SECRET, ...none }).name).toBe('webhook');
});

describe('options', () => {
  test.each([
    ['a short secret', { secret: 'short' }, 'at least 16 bytes'],
    ['no secret', { secret: [] }, 'secret'],
    ['a path without a slash', { path: 'orders' }, 'begins with'],
    ['an unknown scheme', { signature: 'md5' }, 'signature'],
    ['an unknown option', { port: 80 }, 'port'],
  ])('refuses %s', async (_what, options, message) => {
    await start();
    let refused: unknown;
    try {
      webhookSource({ path: PATH, secret: SECRET, ...options } as WebhookSourceOptions);
    } catch (error) {
      refused = error;
    }
    expect(String(refused)).toContain(message);
    expect(String(refused)).not.toContain(SECRET);
  });
});
