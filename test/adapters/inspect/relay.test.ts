// Access to a relay, and the page that it serves.

import { request } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createInspector, type Inspector } from '../../../src/adapters/inspect/index.ts';
import type { RelayTarget } from '../../../src/adapters/inspect/relay.ts';
import { simulatedEnvironment } from '../../../src/testing/doubles/simulated-environment.ts';
import { receive } from './support/receiver.ts';
import { startSession } from './support/ride.ts';

let inspector: Inspector | undefined;

afterEach(async () => {
  await inspector?.stop();
  inspector = undefined;
});

async function relay(target: Omit<RelayTarget, 'mode'> = {}) {
  const environment = simulatedEnvironment();
  inspector = await createInspector({ environment, flushMs: 0, to: { mode: 'relay', ...target } });
  const { host, port } = new URL(inspector.url!);
  return { inspector, host, port: Number(port), streamUrl: inspector.streamUrl! };
}

/** Returns the relay's response to a client that requests the stream: `open`, or an HTTP status. */
function knock(url: string, headers: Record<string, string> = {}): Promise<string> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url, { headers });
    socket.on('open', () => {
      resolve('open');
      socket.close();
    });
    socket.on('unexpected-response', (call, { statusCode }) => {
      resolve(String(statusCode));
      call.destroy();
    });
    socket.on('error', () => {});
  });
}

function get(port: number, path: string, headers: Record<string, string> = {}, method = 'GET') {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: string }>(
    (resolve, reject) => {
      request({ host: '127.0.0.1', port, path, headers, method }, (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (body += chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        );
      })
        .on('error', reject)
        .end();
    },
  );
}

describe('RELAY-2: the stream', () => {
  test('opens only with the token', async () => {
    const { streamUrl } = await relay();
    expect(await knock(streamUrl)).toBe('open');
    expect(await knock(streamUrl.replace(/token=.*/, 'token=guess'))).toBe('401');
    expect(await knock(streamUrl.replace(/\?.*/, ''))).toBe('401');
  });

  test('refuses other web pages, with or without the token', async () => {
    const { streamUrl, host } = await relay({ allowedOrigins: ['https://viewer.example'] });
    expect(await knock(streamUrl, { origin: `http://${host}` })).toBe('open');
    expect(await knock(streamUrl, { origin: 'https://viewer.example' })).toBe('open');
    expect(await knock(streamUrl, { origin: 'https://evil.example' })).toBe('403');
    expect(await knock(streamUrl, { origin: 'null' })).toBe('403');
    expect(await knock(streamUrl, { host: 'evil.example' })).toBe('403');
    expect(await knock(streamUrl.replace('/stream', '/other'))).toBe('404');
  });

  test('uses a new token for each relay unless a token is configured', async () => {
    const token = 'a-token-of-my-own';
    const { streamUrl, inspector: first } = await relay({ token });
    expect(new URL(streamUrl).searchParams.get('token')).toBe(token);
    expect(new URL(first.url!).hash).toBe(`#token=${token}`);
    await first.stop();
    const next = await relay();
    expect(new URL(next.streamUrl).searchParams.get('token')?.length).toBeGreaterThan(5);
    expect(await knock(next.streamUrl.replace(/token=.*/, `token=${token}`))).toBe('401');
  });

  test('RELAY-3: disconnects a viewer that sends too much, without affecting others', async () => {
    const { streamUrl, inspector: own } = await relay();
    const view = receive(streamUrl);
    const loud = new WebSocket(streamUrl);
    const closed = new Promise<number>((resolve) => loud.on('close', resolve));
    loud.on('open', () => loud.send('x'.repeat(2000)));
    loud.on('error', () => {});
    expect(await closed).toBe(1009);
    startSession(own.inspect);
    await view.until(({ ids }) => ids.includes('ses_1'));
  });

  test('admits 16 viewers at a time', async () => {
    const { streamUrl } = await relay();
    const viewers = Array.from({ length: 16 }, () => new WebSocket(streamUrl));
    await Promise.all(viewers.map((socket) => new Promise((open) => socket.on('open', open))));
    expect(await knock(streamUrl)).toBe('503');
    const [first] = viewers;
    await new Promise((resolve) => first!.on('close', resolve).close());
    expect(await knock(streamUrl)).toBe('open');
  });
});

describe('the page', () => {
  test('shows the inspector without the token and with a strict content security policy', async () => {
    const { port, host, inspector: own } = await relay();
    const page = await get(port, '/');
    expect(page.status).toBe(200);
    expect(page.body).toContain('src="https://stately.ai/inspect"');
    const token = new URL(own.url!).hash.slice('#token='.length);
    expect(page.body).not.toContain(token);
    expect(page.headers['referrer-policy']).toBe('no-referrer');
    expect(page.headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; " +
        `connect-src ws://${host}; frame-src https://stately.ai; frame-ancestors 'none'; ` +
        "base-uri 'none'; form-action 'none'",
    );
    expect((await get(port, '/page.js')).headers['content-type']).toMatch('text/javascript');
    expect((await get(port, '/page.css')).headers['content-type']).toMatch('text/css');
    expect((await get(port, '/', {}, 'HEAD')).body).toBe('');
  });

  test('refuses other host names, methods and paths', async () => {
    const { port } = await relay();
    expect((await get(port, '/', { host: 'evil.example' })).status).toBe(403);
    expect((await get(port, '/', {}, 'POST')).status).toBe(405);
    expect((await get(port, '/../package.json')).status).toBe(404);
  });

  test('shows the inspector from `inspectorUrl`', async () => {
    const { port } = await relay({ inspectorUrl: 'http://127.0.0.1:9/"><script>' });
    const { body, headers } = await get(port, '/');
    expect(body).toContain('src="http://127.0.0.1:9/&quot;>&lt;script>"');
    expect(headers['content-security-policy']).toContain('frame-src http://127.0.0.1:9;');
  });
});

describe('RELAY-1: the port', () => {
  test('listens on 127.0.0.1, and becomes free again after `stop`', async () => {
    const { inspector: own, port, streamUrl } = await relay();
    const view = receive(streamUrl);
    startSession(own.inspect);
    await view.until(({ ids }) => ids.includes('ses_1'));
    expect(own.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=/);
    await own.stop();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    expect((server.address() as AddressInfo).port).toBe(port);
    await expect(relay({ port })).rejects.toMatchObject({ code: 'CANNOT_LISTEN' });
    await new Promise((resolve) => server.close(resolve));
  });
});
