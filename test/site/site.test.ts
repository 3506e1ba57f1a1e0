// The documentation site as `npm run site` builds it, in Chromium. Every link has a target, the search works without a
// network, and the pages are readable on a small screen, in dark mode, with the keyboard and with a screen reader.

import { globSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium, type Browser, type BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { violationsIn } from '../support/axe.ts';

const site = fileURLToPath(new URL('../../docs/site/dist', import.meta.url));
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

const server = createServer((request, response) => {
  const path = join(site, decodeURIComponent(new URL(request.url ?? '', 'http://site').pathname));
  const file = path.endsWith('/') ? `${path}index.html` : path;
  if (!file.startsWith(site) || !statSync(file, { throwIfNoEntry: false })?.isFile())
    return void response.writeHead(404).end();
  const type = types[extname(file)] ?? 'application/octet-stream';
  response.writeHead(200, { 'content-type': type }).end(readFileSync(file));
});
let browser: Browser;
let address: string;

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  browser = await chromium.launch({
    executablePath: process.env['CHROMIUM_PATH'] ?? '',
    args: ['--no-sandbox'],
  });
});
afterAll(async () => {
  await browser.close();
  server.close();
});

async function opened(path: string, options: BrowserContextOptions = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const outside: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(address) && !request.url().startsWith('data:'))
      outside.push(request.url());
  });
  await page.goto(address + path);
  return { page, outside };
}

test('links only to pages and anchors that exist on the site', () => {
  const files = globSync('**/*.html', { cwd: site });
  const idsOf = new Map(
    files.map((file) => {
      const html = readFileSync(join(site, file), 'utf8');
      return [
        file,
        { html, ids: new Set([...html.matchAll(/\bid="?([^"\s>]+)/g)].map(([, id]) => id)) },
      ];
    }),
  );
  const broken: string[] = [];
  for (const [file, { html }] of idsOf)
    for (const [, link = ''] of html.matchAll(/<a\b[^>]*?\bhref="([^"]*)"/g)) {
      if (/^(?:https?|mailto):/.test(link)) continue;
      const { pathname, hash } = new URL(link, `http://site/${file.replace(/index\.html$/, '')}`);
      const target = idsOf.get(`${pathname.slice(1)}${pathname.endsWith('/') ? 'index.html' : ''}`);
      if (!target || (hash && !target.ids.has(decodeURIComponent(hash.slice(1)))))
        broken.push(`${file}: ${link}`);
    }
  expect(files.length).toBeGreaterThan(60);
  expect(broken).toEqual([]);
});

test('finds a guide and a public name by keyboard without a request to another server', async () => {
  const { page, outside } = await opened('/');
  const dialog = page.getByRole('dialog');
  const button = page.locator('button[data-open-modal]:enabled');
  // Chromium drops key presses before a page's first frame. A second Control+k would close the dialog, but Enter does
  // not.
  while (!(await dialog.isVisible())) {
    await button.press('Enter');
    await dialog.waitFor({ timeout: 5_000 }).catch(() => {});
  }
  const field = dialog.getByRole('textbox');
  await field.fill('createClientSecret');
  await dialog.getByRole('link', { name: 'Security and privacy' }).first().waitFor();
  await field.fill('thisMachine');
  const found = dialog.getByRole('link', { name: 'offstage/doctor' }).first();
  await found.waitFor();
  await found.press('Enter');
  await page.getByRole('heading', { name: 'examine', exact: true }).waitFor();
  expect(outside).toEqual([]);
});

test("shows a name's signature, description and errors with their causes", async () => {
  const { page } = await opened('/reference/offstage-doctor/');
  await page.getByText('Examines the machine and each of these adapters.').waitFor();
  await page.getByText('examine(machine: Machine, names: readonly string[])').waitFor();
  await page.getByRole('link', { name: 'INVALID_OPTION' }).click();
  await page.waitForURL('**/reference/errors/#invalid_option');
  expect(await page.locator(':target').count()).toBe(1);
});

test('links from a signature to its types, even private ones, and shows the defaults of options', async () => {
  const { page } = await opened('/reference/offstage-sqlite-journal/');
  await page.getByRole('link', { name: 'SqliteJournalOptions', exact: true }).nth(1).click();
  await page.getByRole('link', { name: 'readOnly', exact: true }).click();
  await page.waitForURL('**#part.SqliteJournalOptions.readOnly');
  await page.locator(':target').locator('xpath=following::p[.="Default: false"]').first().waitFor();
  await page.getByRole('link', { name: 'JournalEntry', exact: true }).first().click();
  await page.waitForURL('**/reference/offstage-journal/#JournalEntry');
});

test('orders the guide like docs/README.md and links to the next page', async () => {
  const { page } = await opened('/guide/sessions/');
  const nav = page.getByRole('navigation', { name: 'Main' });
  const names = await nav.locator('details').first().getByRole('link').allTextContents();
  expect(names.map((name) => name.trim()).slice(0, 7)).toEqual([
    'A chat in a page',
    'A voice agent',
    'Actors, step by step',
    'Sessions',
    'Subagents',
    'Tools',
    'Questions and approvals',
  ]);
  await page.getByRole('link', { name: 'Next Subagents' }).click();
  await page.getByRole('heading', { level: 1, name: 'Subagents' }).waitFor();
});

describe.each(['light', 'dark'] as const)('in %s', (colorScheme) => {
  test.each([
    '/',
    '/guide/questions/',
    '/topics/conversation/',
    '/reference/errors/',
    '/reference/offstage-serve/',
  ])('%s does not violate any axe rule and fits a screen that is 375 px wide', async (path) => {
    const { page, outside } = await opened(path, {
      colorScheme,
      viewport: { width: 375, height: 740 },
    });
    await page.getByRole('heading', { level: 1 }).waitFor();
    // The page makes scrollable blocks reachable by keyboard once the browser is idle.
    await page.waitForFunction(
      `[...document.querySelectorAll('pre')].every((pre) => pre.scrollWidth <= pre.clientWidth || pre.tabIndex === 0)`,
    );
    expect(await violationsIn(page)).toEqual([]);
    const wide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
    expect(wide).toBeLessThanOrEqual(0);
    expect(outside).toEqual([]);
  });
});
