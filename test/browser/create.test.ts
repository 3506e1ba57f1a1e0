// The projects that `offstage create` creates: the packed package creates them, and they run against it without a key
// or a network, with the npm packages of this repository.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { plugInMicrophone, sayInto } from './support/microphone.ts';
import { launch } from './support/stage.ts';
import { installPacked, tsc } from '../support/packed-package.ts';

const run = promisify(execFile);
/** The parent folder of all projects. Node.js and the compiler find the packages in it. */
const house = mkdtempSync(join(tmpdir(), 'offstage-create-'));
let browser: Browser;

beforeAll(async () => {
  const [launched] = await Promise.all([launch(), installPacked(house)]);
  browser = launched;
}, 180_000);
afterAll(async () => {
  await browser.close();
  rmSync(house, { recursive: true });
});

interface Project {
  /** Resolves with the text that is printed after `before`. */
  printed(before: string): Promise<string>;
  type(line: string): void;
}

/** Creates a project, checks its types and starts it. */
async function start(template: string): Promise<Project> {
  const command = join(house, 'node_modules', 'offstage', 'dist', 'cli', 'offstage.js');
  const folder = join(house, template);
  await run(process.execPath, [command, 'create', template, folder]);
  await run(process.execPath, [tsc], { cwd: folder });
  // The same as `npm start`, except that the voice packages are already installed.
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], PORT: '0' };
  const child = spawn(process.execPath, [`${template}.ts`], { cwd: folder, env });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'close');
  });
  let text = '';
  const waiting = new Set<() => void>();
  const hear = (more: string): void => {
    text += more;
    for (const check of waiting) check();
  };
  child.stdout.setEncoding('utf8').on('data', hear);
  child.stderr.setEncoding('utf8').on('data', hear);
  child.on('close', (status) => hear(`\n(ended with ${status})`));
  return {
    printed: (before) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          const at = text.indexOf(before);
          if (at < 0 && !text.includes('(ended with')) return;
          waiting.delete(check);
          if (at >= 0) resolve(text.slice(at + before.length));
          else reject(new Error(`Expected "${before}" in: ${text}`));
        };
        waiting.add(check);
        check();
      }),
    type: (line) => void child.stdin.write(`${line}\n`),
  };
}

/** Opens a project's page. */
async function visit(project: Project, prepare?: (page: Page) => Promise<void>): Promise<Page> {
  const address = (await project.printed('Open ')).trim();
  const page = await browser.newPage({ viewport: { width: 375, height: 700 } });
  onTestFinished(() => page.close());
  await prepare?.(page);
  await page.goto(address);
  return page;
}

test('terminal: accepts a typed answer', async () => {
  const project = await start('terminal');
  await project.printed('SCRIPTED');
  project.type('Book me a ride to the airport.');
  await project.printed('- Premium');
  project.type('premium');
  await project.printed('Your premium ride to the airport is booked.');
});

test('web: shows a question with buttons right after `create`', async () => {
  const page = await visit(await start('web'));
  const problems: string[] = [];
  page.on('pageerror', ({ message }) => problems.push(message));
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('article').filter({ hasText: 'Which ride?' }).waitFor();
  await page.getByRole('button', { name: 'Premium' }).click();
  await page.getByText('Your premium ride to the airport is booked.').waitFor();
  await expect.poll(() => page.getByRole('button').count()).toBe(1);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(375);
  expect(problems).toEqual([]);
});

test('voice: starts work on a spoken request and accepts a button press as the answer', async () => {
  const page = await visit(await start('voice'), plugInMicrophone);
  await page.getByRole('button', { name: 'Start talking' }).click();
  await page.getByRole('button', { name: 'Loudspeaker on, microphone on' }).waitFor();
  const button = page.getByRole('button', { name: 'Premium' });
  // A real recogniser listens and sometimes makes errors.
  for (let tries = 0; tries < 4; tries += 1) {
    await sayInto(page, 'Book me a ride to the airport, please.');
    const isAsked = await button.waitFor({ timeout: 15_000 }).then(
      () => true,
      () => false,
    );
    if (isAsked) break;
  }
  await button.click();
  await page.getByText('Your premium ride to the airport is booked.').waitFor();
});

test('telephone: rehearses a call in the terminal', async () => {
  const project = await start('telephone');
  await project.printed('REHEARSAL');
  project.type('Book me a ride to the airport.');
  await project.printed('Which ride?');
  project.type('premium');
  await project.printed('Your premium ride to the airport is booked.');
});
