// The project that `offstage create cloudflare` creates: the packed package creates it, the compiler checks it,
// wrangler bundles it, and it runs in workerd, without a key or a network.

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { testClient, type TestClient } from '../serve/support/served.ts';
import { installPacked, tsc } from '../support/packed-package.ts';
import { start } from './support/workerd.js';

const run = promisify(execFile);
const commands = fileURLToPath(new URL('node_modules/.bin', import.meta.url));
const house = mkdtempSync(join(tmpdir(), 'offstage-create-cloudflare-'));
const project = join(house, 'my-chats');
let running: Awaited<ReturnType<typeof start>> | null = null;

beforeAll(async () => {
  await installPacked(house);
  mkdirSync(join(house, 'node_modules', '.bin'));
  for (const name of ['esbuild', 'wrangler'])
    symlinkSync(join(commands, name), join(house, 'node_modules', '.bin', name));
  const offstage = join(house, 'node_modules', 'offstage', 'dist', 'cli', 'offstage.js');
  await run(process.execPath, [offstage, 'create', 'cloudflare', project]);
  await run(process.execPath, [tsc], { cwd: project });
  await run('npm', ['run', 'deploy', '--', '--dry-run', '--outdir', 'bundle'], {
    cwd: project,
    env: {
      PATH: process.env['PATH'],
      HOME: house,
      CI: 'true',
      WRANGLER_SEND_METRICS: 'false',
      WRANGLER_HIDE_BANNER: 'true',
    },
  });
}, 240_000);

afterEach(async () => {
  await running?.kill();
  running = null;
});

afterAll(() => rmSync(house, { recursive: true, force: true }));

async function deployed(env: Readonly<Record<string, string>> = {}) {
  // Each deployment has its own objects, because the objects of an earlier one would call a model once a key is set.
  const objects = mkdtempSync(join(house, 'objects-'));
  running = await start(join(project, 'bundle', 'cloudflare.js'), objects, env);
  return running;
}

const clientOf = (session: string, token: string): TestClient =>
  testClient({
    url: new URL('offstage', running?.url),
    session,
    token,
    transport: 'websocket',
  });

const told = (client: TestClient, words: string) =>
  client.until(({ transcript }) => transcript.some(({ text }) => text.includes(words)));

test('keeps a question and its options when the object is evicted, and books the ride after the answer', async () => {
  const { evict } = await deployed();
  const page = clientOf('ann', '');
  await page.it.send('Book me a ride to the airport.');
  const { requestId, options } = await page.question();
  expect(options.map(({ label }) => label)).toEqual(['Economy', 'Premium']);
  await evict('ann');
  expect(await page.it.answer(requestId, { optionId: 'premium' })).toMatchObject({
    accepted: true,
  });
  await told(page, 'Your premium ride to the airport is booked.');
});

test('allows a paid model only for clients with the token', async () => {
  await deployed({ OPENAI_API_KEY: 'none', ACCESS_TOKEN: 'let-me-in' });
  for (const token of ['', 'let-me-out']) {
    const { reason } = await clientOf('bob', token).status(({ state }) => state === 'closed');
    expect(reason?.code).toBe('UNAUTHORIZED');
  }
  await clientOf('bob', 'let-me-in').status(({ state }) => state === 'open');
});

test('refuses every client if a key is set without a token', async () => {
  await deployed({ OPENAI_API_KEY: 'none' });
  const { reason } = await clientOf('eve', '').status(({ state }) => state === 'closed');
  expect(reason?.code).toBe('UNAUTHORIZED');
});

test('returns 404 for other paths and for a chat without a name', async () => {
  const { url } = await deployed();
  for (const path of ['offstage', 'offstage?session=', 'elsewhere?session=ann'])
    expect((await fetch(new URL(path, url))).status).toBe(404);
});

test('bundles the page for wrangler and names the Worker after the project', () => {
  expect(readFileSync(join(project, 'web', 'index.html'), 'utf8')).toContain('src="/page.js"');
  expect(readFileSync(join(project, 'web', 'page.js'), 'utf8')).toContain('/offstage');
  expect(readFileSync(join(project, 'wrangler.jsonc'), 'utf8')).toContain('"name": "my-chats"');
});

test("pins the versions of the tools to those used in the project's tests", () => {
  const read = (path: string) =>
    JSON.parse(readFileSync(path, 'utf8')) as Record<string, Readonly<Record<string, string>>>;
  const { dependencies = {} } = read(fileURLToPath(new URL('package.json', import.meta.url)));
  const { devDependencies = {} } = read(join(project, 'package.json'));
  for (const name of ['esbuild', 'wrangler'])
    expect(devDependencies[name]).toBe(`^${dependencies[name]}`);
});
