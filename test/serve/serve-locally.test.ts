// An app on this machine: admission, the files that a page may load, routes, the port, and the link.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { connect, type ClientStatus, type SessionClient } from '../../src/client/index.ts';
import { createRuntime, memoryJournal, type TextSession } from '../../src/index.ts';
import { serveLocally, type LocalServer, type ServeLocallyOptions } from '../../src/serve/index.ts';
import { rideSession } from './support/served.ts';

let folder: string;
let session: TextSession;

/** Writes files to a temporary folder. */
function write(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'offstage-page-'));
  session = rideSession();
  write({
    'page/index.html': '<!doctype html><html><head lang="en"><title>A page</title></head></html>',
    'page/main.ts': "import { connect } from 'offstage/client';\nexport const n: number = 1;\n",
    'page/parts/card.js': 'export const card = 1;\n',
    'page/icon.png': '\u0089PNG',
    'page/.env': 'SECRET=1',
    'page/data.json': '{}',
    'secret.ts': 'export const secret = 1;\n',
  });
  return async () => {
    await session.close();
    rmSync(folder, { recursive: true });
  };
});

type Options = Partial<ServeLocallyOptions<TextSession>>;

async function start(options: Options = {}): Promise<LocalServer> {
  const page = { folder: join(folder, 'page') };
  const server = await serveLocally({ session, page, port: 0, ...options });
  onTestFinished(() => server.close());
  return server;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** `fetch` would not send a different `host` header and would normalise the path. */
function ask(
  { port }: LocalServer,
  path: string,
  given: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  const { method = 'GET', headers = {}, body } = given;
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: '127.0.0.1', port, path, method, headers, agent: false },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

const post = (server: LocalServer, path: string, body: string, token = server.token) =>
  ask(server, path, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body });

function visit({ port, token }: Pick<LocalServer, 'port' | 'token'>): SessionClient {
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

test('LOCAL-1, LOCAL-2: opens the inspector only with the link and lets it act on the session', async () => {
  expect((await ask(await start(), '/inspect')).status).toBe(404);
  const journal = memoryJournal();
  const inspected = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  onTestFinished(() => inspected.close());
  await inspected.start();
  const server = await start({ session: inspected, inspector: { journal }, user: 'ann' });
  expect(server.inspectorUrl).toBe(`http://127.0.0.1:${server.port}/inspect#token=${server.token}`);
  expect((await ask(server, '/inspect')).body).toContain('Offstage inspector');
  const path = '/inspect/api/entries?session=ses_1';
  const authorization = `Bearer ${server.token}`;
  expect((await ask(server, path)).status).toBe(401);
  const headers = { authorization, host: 'evil.example' };
  expect((await ask(server, path, { headers })).status).toBe(403);
  const told = await ask(server, path, { headers: { authorization } });
  expect(JSON.parse(told.body)).toMatchObject({ mayAct: true, mayFork: true, maySave: true });
  const done = await ask(server, '/inspect/api/act', {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ session: 'ses_1', frame: { type: 'send', id: 1, text: 'hello' } }),
  });
  expect(JSON.parse(done.body)).toEqual({ ok: true, value: null });
  expect(JSON.stringify(journal.read())).toContain('"by":"ann"');
  await expect(start({ inspector: { journal: {} } as never })).rejects.toThrow(/journal/);
});

describe('the page', () => {
  test('PAGE-FILES-2: runs no inline script except its import map and cannot be embedded', async () => {
    const { status: code, headers, body } = await ask(await start(), '/');
    expect(code).toBe(200);
    const policy = String(headers['content-security-policy']);
    expect(policy).toMatch(/^default-src 'none'; script-src 'self' 'sha256-[\w+/=]+';/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    });
    expect(body.match(/<script[^>]*>/g)).toEqual(['<script type="importmap">']);
    expect(body).toContain('<head lang="en"><script type="importmap">{"imports":');
  });

  test.each([
    ['<!doctype html>\n<title>A page</title>', '<!doctype html>\n'],
    ['<!-- <head> -->\n<html lang="en"><body>', '<!-- <head> -->\n<html lang="en">'],
    ['<header>A page</header>', ''],
    ['<!DOCTYPE html><HTML><HEAD class="a">', '<!DOCTYPE html><HTML><HEAD class="a">'],
  ])('puts its import map before all other content: %j', async (html, before) => {
    write({ 'page/index.html': html });
    const { body } = await ask(await start(), '/');
    expect(body.startsWith(`${before}<script type="importmap">`)).toBe(true);
  });

  test('serves scripts without types, images unchanged and text compressed', async () => {
    const server = await start();
    const script = await ask(server, '/main.ts');
    expect(script.headers['content-type']).toBe('text/javascript; charset=utf-8');
    expect(script.body.replaceAll(/ +/g, ' ')).toContain('export const n = 1;');
    expect((await ask(server, '/parts/card.js')).status).toBe(200);
    // The path of an import in TypeScript.
    expect((await ask(server, '/main.js')).body).toBe(script.body);
    expect((await ask(server, '/icon.png')).headers['content-type']).toBe('image/png');
    const client = `/modules/offstage/src/client/session-client.ts`;
    const packed = await ask(server, client, { headers: { 'accept-encoding': 'gzip' } });
    expect(packed.headers['content-encoding']).toBe('gzip');
    expect((await ask(server, client)).headers['content-encoding']).toBe(undefined);
  });

  test("serves every module that it imports by name and that module's imports", async () => {
    write({
      'node_modules/both/package.json': JSON.stringify({
        exports: { '.': { require: './a.cjs', browser: { import: './b.mjs' }, import: './c.mjs' } },
      }),
      'node_modules/both/b.mjs': 'export const b = 1;',
      'node_modules/@old/one/package.json': '{"module":"./m.js","main":"./x.js"}',
      'node_modules/@old/one/m.js': 'export const m = 1;',
      'node_modules/@old/one/deep/d.js': 'export const d = 1;',
    });
    const modules = { both: 'both', old: '@old/one', deep: '@old/one/deep/d.js' };
    const server = await start({ page: { folder: join(folder, 'page'), modules } });
    const { body } = await ask(server, '/');
    const { imports } = JSON.parse(/importmap">(.*?)<\/script>/.exec(body)?.[1] ?? '{}') as {
      imports: Record<string, string>;
    };
    expect(imports).toMatchObject({
      both: '/modules/both/b.mjs',
      old: '/modules/@old/one/m.js',
      deep: '/modules/@old/one/deep/d.js',
    });
    const seen = new Set<string>();
    const look = async (path: string): Promise<void> => {
      if (seen.has(path)) return;
      seen.add(path);
      const file = await ask(server, path);
      expect([path, file.status]).toEqual([path, 200]);
      expect(file.headers['content-type']).toContain('text/javascript');
      for (const [, specifier = ''] of file.body.matchAll(/(?<=[\s}*])from\s*["']([^"'\s]+)["']/g))
        await look(imports[specifier] ?? new URL(specifier, `http://x${path}`).pathname);
    };
    for (const path of Object.values(imports)) await look(path);
    await look('/modules/offstage/src/client/worklet.js');
    expect(seen.size).toBeGreaterThan(10);
  });

  test.each([
    '/../secret.ts',
    '/%2e%2e/secret.ts',
    '/parts/../../secret.ts',
    '/.env',
    '/data.json',
    '//etc/passwd',
    '/parts',
    '/parts/',
    '/nothing.ts',
    '/modules/offstage/package.json',
    '/modules/offstage/src/../package.json',
    '/modules/offstage/../offstage/package.json',
    '/modules/zod/index.js',
    '/modules/../secret.ts',
  ])('PAGE-FILES-1: does not read %s', async (path) => {
    const server = await start();
    expect((await ask(server, path)).status).toBe(404);
    const headers = { authorization: `Bearer ${server.token}` };
    expect((await ask(server, path, { headers })).status).toBe(404);
  });

  test('LOCAL-2: refuses a foreign host name (DNS rebinding)', async () => {
    const server = await start({ routes: { 'GET /news': () => 'news' } });
    for (const path of ['/', '/main.ts', '/news', '/offstage'])
      expect((await ask(server, path, { headers: { host: 'evil.example:80' } })).status).toBe(403);
  });

  test("accepts a handler with its own sockets, for example a bundler's", async () => {
    const server = await start({
      page: (http) => {
        http.on('upgrade', ({ url }, socket) => {
          if (url === '/hot') socket.end('HTTP/1.1 418 Hot\r\n\r\n');
        });
        return (request, response, next) =>
          request.url === '/' ? response.end('from a bundler') : next();
      },
    });
    expect(await ask(server, '/')).toMatchObject({ status: 200, body: 'from a bundler' });
    expect((await ask(server, '/other')).status).toBe(404);
    const headers = { connection: 'upgrade', upgrade: 'websocket' };
    expect((await ask(server, '/hot', { headers })).status).toBe(418);
  });

  test('closes an upgrade that no route accepts', async () => {
    const { port } = await start();
    const socket = connectTcp(port, '127.0.0.1');
    socket.write(
      'GET /other HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    );
    await once(socket.resume(), 'close');
  });
});

describe('the link', () => {
  test('admits everyone who holds it as the user', async () => {
    const server = await start({ user: 'ann' });
    expect(server.url).toBe(`http://127.0.0.1:${server.port}/#${server.token}`);
    const client = visit(server);
    expect(await status(client, ({ state }) => state === 'open')).toMatchObject({
      sessionId: session.id,
      user: 'ann',
      role: 'user',
    });
  });

  test.each(['x'.repeat(40), 'short'])('LOCAL-1: refuses a client with %s', async (token) => {
    const server = await start({ routes: { 'GET /news': () => 'news' } });
    const { reason } = await status(visit({ ...server, token }), ({ state }) => state === 'closed');
    expect(reason?.code).toBe('UNAUTHORIZED');
    for (const authorization of [`Bearer ${token}`, ''])
      expect((await ask(server, '/news', { headers: { authorization } })).status).toBe(401);
  });

  test('LOCAL-3: changes at each start, or is kept in a file that only its owner can read', async () => {
    expect((await start()).token).not.toBe((await start()).token);
    const tokenFile = join(folder, 'token');
    const first = await start({ tokenFile });
    expect((await start({ tokenFile })).token).toBe(first.token);
    expect(statSync(tokenFile).mode & 0o077).toBe(0);
    // A token file is replaced if others can read or write it or if it contains an invalid token.
    for (const mode of [0o640, 0o604, 0o622, 0o666]) {
      const before = readFileSync(tokenFile, 'utf8').trim();
      chmodSync(tokenFile, mode);
      expect((await start({ tokenFile })).token).not.toBe(before);
      expect(statSync(tokenFile).mode & 0o077).toBe(0);
    }
    writeFileSync(tokenFile, 'short');
    expect((await start({ tokenFile })).token).toMatch(/^[\w-]{32,}$/);
  });

  test('throws an error that names an unreadable file', async () => {
    await expect(start({ tokenFile: join(folder, 'none', 'token') })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringMatching(/tokenFile: expected a file .*none/) as string,
    });
  });

  test("refuses a pipe as its file and leaves the pipe's mode unchanged", async () => {
    const tokenFile = join(folder, 'pipe');
    execFileSync('mkfifo', ['-m', '644', tokenFile]);
    await expect(start({ tokenFile })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(tokenFile) as string,
    });
    expect(statSync(tokenFile).mode & 0o777).toBe(0o644);
  });
});

describe('the routes', () => {
  test('parse JSON and answer with JSON or a response', async () => {
    const told: unknown[] = [];
    const server = await start({
      routes: {
        'POST /order': (body) => ({ got: told.push(body) }),
        'POST /quiet': () => undefined,
        'POST /refused': () => Response.json({ error: 'no' }, { status: 422 }),
      },
    });
    expect(await post(server, '/order', '{"a":1}')).toMatchObject({
      status: 200,
      body: '{"got":1}',
    });
    expect((await post(server, '/order', '')).status).toBe(200);
    expect(told).toEqual([{ a: 1 }, null]);
    expect(await post(server, '/quiet', '{}')).toMatchObject({ status: 200, body: 'null' });
    expect(await post(server, '/refused', '{}')).toMatchObject({
      status: 422,
      body: '{"error":"no"}',
    });
    // A different method is a different route.
    expect((await ask(server, '/order')).status).toBe(404);
  });

  test('refuse invalid or oversized JSON and survive an error in the app', async () => {
    const errors: unknown[] = [];
    const server = await start({
      routes: {
        'POST /order': () => {
          throw new Error('its own words');
        },
        'POST /odd': () => 1n,
      },
      onError: (error) => errors.push(error),
    });
    expect((await post(server, '/order', '{')).status).toBe(400);
    expect((await post(server, '/order', `"${'x'.repeat(70_000)}"`)).status).toBe(413);
    expect(errors).toEqual([]);
    const { status: code, body } = await post(server, '/order', '{}');
    expect(code).toBe(500);
    expect(body).not.toContain('its own words');
    expect((await post(server, '/odd', '{}')).status).toBe(500);
    expect(errors).toHaveLength(2);
    expect((await ask(server, '/')).status).toBe(200);
  });
});

describe('the port', () => {
  test('increases until an unused port is found', async () => {
    const first = await start();
    expect((await start({ port: first.port })).port).toBeGreaterThan(first.port);
  });

  test('throws an error if no port is free', async () => {
    const blocker = createServer();
    blocker.on('error', () => undefined);
    blocker.listen(65_535, '127.0.0.1');
    onTestFinished(() => void blocker.close());
    await expect(start({ port: 65_535 })).rejects.toMatchObject({ code: 'NO_FREE_PORT' });
  });

  test('closes every page and releases the port', async () => {
    const server = await start();
    const client = visit(server);
    await status(client, ({ state }) => state === 'open');
    await server.close();
    await server.close();
    const { reason } = await status(client, ({ state }) => state === 'waiting');
    expect(reason?.code).toBe('SERVER_CLOSING');
    const again = await start({ port: server.port });
    expect(again.port).toBe(server.port);
  });
});

test.each<[string, object, RegExp]>([
  [
    'no folder',
    { page: { folder: '/nowhere' } },
    /page: expected a folder with a file index\.html, got \/nowhere/,
  ],
  ['no session', { session: { id: 's1' } }, /`session`: expected a session/],
  ['no page', { page: 7 }, /`page`: expected a folder with its modules, or a function/],
  [
    'a name that is no route',
    { routes: { '/order': () => 1 } },
    /expected names of GET or POST and a path/,
  ],
  ['a route that is none', { routes: { 'GET /a': 1 } }, /expected a function/],
  ['a port', { port: 70_000 }, /`port`/],
  ['hosts', { hosts: ['*'] }, /`hosts`/],
  ['who may connect', { authorize: () => null }, /`authorize`/],
  ['limits of serve', { limits: { clients: 0 } }, /limits/],
])('INVALID_OPTION: %s', async (_, options, words) => {
  await expect(start(options)).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    message: expect.stringMatching(words) as string,
  });
});

test.each([
  ['not-installed', 'MISSING_DEPENDENCY', /npm install not-installed/],
  ['../secret', 'MISSING_DEPENDENCY', /"\.\.\/secret", which is not installed/],
  ['offstage/none', 'INVALID_OPTION', /does not export/],
])(
  'throws an error that names a module that the page cannot load: %s',
  async (module, code, words) => {
    const page = { folder: join(folder, 'page'), modules: { it: module } };
    await expect(start({ page })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(words) as string,
    });
  },
);
