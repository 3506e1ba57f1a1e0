// The three pages of the guide that start with an empty folder. Their files, copied as a reader would copy them, run
// against the packed package without a key or a network.

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { titledSnippets } from '../../scripts/titled-snippets.ts';
import { installPacked } from '../support/packed-package.ts';
import { plugInMicrophone, sayInto } from './support/microphone.ts';
import { launch } from './support/stage.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const house = mkdtempSync(join(tmpdir(), 'offstage-guide-'));
let browser: Browser;

beforeAll(async () => {
  const [launched] = await Promise.all([launch(), installPacked(house)]);
  browser = launched;
}, 180_000);
afterAll(async () => {
  await browser.close();
  rmSync(house, { recursive: true });
});

/** Writes the files from a page of the guide into a folder. */
function folderOf(page: string): string {
  const folder = join(house, page);
  const text = readFileSync(join(root, 'docs/guide', `${page}.md`), 'utf8');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  for (const { title, code } of titledSnippets(text)) {
    mkdirSync(dirname(join(folder, title)), { recursive: true });
    writeFileSync(join(folder, title), code);
  }
  return folder;
}

async function bundlePage(folder: string): Promise<void> {
  const rolldown = join(root, 'node_modules/rolldown/bin/cli.mjs');
  const args = ['page/page.ts', '--file', 'public/page.js', '--platform', 'browser'];
  await run(process.execPath, [rolldown, ...args], { cwd: folder });
}

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return String(port);
}

interface Program {
  readonly child: ChildProcess;
  /** Resolves with the rest of the line that is printed after `before`. */
  printed(before: string): Promise<string>;
  end(signal: NodeJS.Signals): Promise<unknown>;
}

function start(folder: string, file: string, more: Readonly<Record<string, string>> = {}): Program {
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], ...more };
  const child = spawn(process.execPath, [file], { cwd: folder, env });
  let text = '';
  const waiting = new Set<() => void>();
  const hear = (said: string): void => {
    text += said;
    for (const look of waiting) look();
  };
  child.stdout.setEncoding('utf8').on('data', hear);
  child.stderr.setEncoding('utf8').on('data', hear);
  const closed = once(child, 'close').then(([status]) => hear(`\n(ended with ${status})\n`));
  const end = (signal: NodeJS.Signals): Promise<unknown> => {
    child.kill(signal);
    return closed;
  };
  onTestFinished(() => void end('SIGKILL'));
  const printed = (before: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const at = text.indexOf(before);
        const rest = text.slice(at + before.length);
        if (at >= 0 && rest.includes('\n')) resolve(rest.slice(0, rest.indexOf('\n')));
        else if (text.includes('(ended with'))
          reject(new Error(`Expected "${before}" in: ${text}`));
        else return;
        waiting.delete(look);
      };
      waiting.add(look);
      look();
    });
  return { child, printed, end };
}

async function visit(address: string, prepare?: (page: Page) => Promise<void>): Promise<Page> {
  const page = await browser.newPage();
  onTestFinished(() => page.close());
  await prepare?.(page);
  await page.goto(address.trim());
  return page;
}

async function startTalking(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Start talking' }).click();
  await page.getByRole('button', { name: 'Loudspeaker on, microphone on' }).waitFor();
}

/** Repeats the words until the text appears, because a real recogniser listens and sometimes makes errors. */
async function sayUntil(page: Page, words: string, text: string): Promise<void> {
  for (let tries = 0; tries < 4; tries += 1) {
    await sayInto(page, words);
    const isThere = await page
      .getByText(text)
      .first()
      .waitFor({ timeout: 15_000 })
      .then(
        () => true,
        () => false,
      );
    if (isThere) return;
  }
}

async function talkUntilAsked(page: Page): Promise<void> {
  await startTalking(page);
  await sayUntil(page, 'Book me a ride to the airport, please.', 'assistant: Economy or premium?');
}

const USERS = '{"a-long-secret":"ann"}';

test.each(['start-chat', 'start-voice', 'start-actors'])(
  '%s has at most 9,000 characters',
  (page) => {
    expect(readFileSync(join(root, 'docs/guide', `${page}.md`), 'utf8').length).toBeLessThan(9_001);
  },
);

test('serves a chat on this machine and on a server that is killed during a question', async () => {
  const folder = folderOf('start-chat');
  const local = await visit(await start(folder, 'local.ts').printed('Open '));
  await local.getByRole('button', { name: 'Send' }).click();
  await local.getByRole('button', { name: 'Premium' }).click();
  await local.getByText('Your premium ride is booked.').waitFor();

  await bundlePage(folder);
  const env = { USERS, PORT: await freePort() };
  const killed = start(folder, 'server.ts', env);
  await killed.printed('Listening on');
  const page = await visit(`http://localhost:${env.PORT}/#a-long-secret`);
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('button', { name: 'Economy' }).waitFor();
  await killed.end('SIGKILL');
  const next = start(folder, 'server.ts', env);
  await next.printed('Listening on');
  const again = await visit(`http://localhost:${env.PORT}/#a-long-secret`);
  await again.getByRole('button', { name: 'Economy' }).click();
  await again.getByText('Your economy ride is booked.').waitFor();
  await next.end('SIGTERM');
  expect(next.child.exitCode).toBe(0);
});

test('serves a voice agent on this machine and on a server that is killed during a question', async () => {
  const folder = folderOf('start-voice');
  const local = await visit(await start(folder, 'local.ts').printed('Open '), plugInMicrophone);
  await talkUntilAsked(local);
  await local.getByRole('button', { name: 'Premium' }).click();
  await local.getByText('Your premium ride is booked.').waitFor();

  await bundlePage(folder);
  copyFileSync(
    join(house, 'node_modules/offstage/dist/client/worklet.js'),
    join(folder, 'public/worklet.js'),
  );
  const env = { USERS, PORT: await freePort() };
  const killed = start(folder, 'server.ts', env);
  await killed.printed('Listening on');
  const page = await visit(`http://localhost:${env.PORT}/#a-long-secret`, plugInMicrophone);
  await talkUntilAsked(page);
  await killed.end('SIGKILL');
  await page.close();
  const next = start(folder, 'server.ts', env);
  await next.printed('Listening on');
  const again = await visit(`http://localhost:${env.PORT}/#a-long-secret`, plugInMicrophone);
  await startTalking(again);
  const said = async (): Promise<readonly string[]> =>
    (await again.locator('#transcript').innerText())
      .split('\n')
      .filter((line) => line.startsWith('assistant: '));
  await expect
    .poll(said, { timeout: 20_000 })
    .toEqual([
      'assistant: I am looking for a ride.',
      'assistant: Economy or premium?',
      'assistant: Economy or premium?',
    ]);
  await sayUntil(again, 'Premium.', 'Your premium ride is booked.');
  await again.getByText('Your premium ride is booked.').waitFor();
  await next.end('SIGTERM');
  expect(next.child.exitCode).toBe(0);
});

test("runs the actors of an app's own machine in the terminal, and on a server killed during a question", async () => {
  const folder = folderOf('start-actors');
  const terminal = start(folder, 'terminal.ts');
  terminal.child.stdin?.end('by the river\n');
  await terminal.printed("booked: 'Booked: a hotel by the river'");

  const env = { PORT: await freePort() };
  const at = `http://localhost:${env.PORT}/trips/1`;
  interface Seen {
    readonly booked: string | null;
    readonly questions: readonly { readonly requestId: string }[];
  }
  const seen = async (): Promise<Seen> => (await (await fetch(at)).json()) as Seen;
  const killed = start(folder, 'server.ts', env);
  await killed.printed('Listening on');
  await fetch(at, { method: 'POST', body: '{"task":"A hotel in Lisbon"}' });
  await expect.poll(seen, { timeout: 20_000 }).toMatchObject({ questions: [{}] });
  await killed.end('SIGKILL');
  const next = start(folder, 'server.ts', env);
  await next.printed('Listening on');
  await expect.poll(seen, { timeout: 20_000 }).toMatchObject({ questions: [{}] });
  const [question] = (await seen()).questions;
  const answer = async (requestId = ''): Promise<number> => {
    const body = JSON.stringify({ requestId, text: 'by the river' });
    return (await fetch(`${at}/answer`, { method: 'POST', body })).status;
  };
  expect(await answer('another')).toBe(409);
  expect(await answer(question?.requestId)).toBe(200);
  await expect
    .poll(async () => (await seen()).booked, { timeout: 20_000 })
    .toBe('Booked: a hotel by the river');
  expect(await answer(question?.requestId)).toBe(409);
  await next.end('SIGTERM');
  expect(next.child.exitCode).toBe(0);
});
