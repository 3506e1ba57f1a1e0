// `offstage/react` in Chromium: hooks and parts under StrictMode, by keyboard, over a lost connection, in two tabs.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo, Socket } from 'node:net';
import type * as axeModule from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { serve } from '../../src/serve/index.ts';
import { rideSession } from '../serve/support/served.ts';
import { bundle } from '../support/bundle.ts';
import type * as reactPage from './support/react-page.ts';
import { launch } from './support/stage.ts';

declare const bundled: typeof reactPage;
declare const axe: typeof axeModule;

let browser: Browser;
let code: string;
const axeSource = readFileSync(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'),
  'utf8',
);
const html = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">
<title>A session</title><meta name="color-scheme" content="light dark"><div id="root"></div>
<script>globalThis.process = { env: { NODE_ENV: 'development' } };</script><script src="/page.js"></script>`;

beforeAll(async () => {
  ({ code } = await bundle('test/browser/support/react-page.ts', ['browser']));
  browser = await launch();
});
afterAll(() => browser.close());

test('a question is answered by keyboard, over a lost connection, and both tabs show it', async () => {
  const session = rideSession();
  const problems: string[] = [];
  const web = serve({
    session: () => session,
    authorize: ({ token }) =>
      token === 'right' ? { sessionId: 's1', user: 'ann', role: 'user' } : null,
  });
  const http = createServer((request, response) =>
    web.handle(request, response, () => {
      const isScript = request.url === '/page.js';
      response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' });
      response.end(isScript ? code : html);
    }),
  );
  const sockets = new Set<Socket>();
  let upgrades = 0;
  http.on('connection', (socket: Socket) => sockets.add(socket));
  http.on('upgrade', (request, socket, head) => {
    upgrades += 1;
    void web.upgrade(request, socket, head);
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const tabs: Page[] = [];
  onTestFinished(async () => {
    for (const tab of tabs) await tab.close();
    await web.close();
    http.closeAllConnections();
    http.close();
    await session.close();
  });
  const open = async (): Promise<Page> => {
    const tab = await browser.newPage({ viewport: { width: 375, height: 700 } });
    tabs.push(tab);
    tab.on('pageerror', (error) => problems.push(error.message));
    tab.on('console', (message) => {
      if (message.type() === 'error' && message.text().includes('React'))
        problems.push(message.text());
    });
    await tab.goto(`http://127.0.0.1:${(http.address() as AddressInfo).port}/`);
    await tab.evaluate(() => bundled.mount());
    await tab.locator('#status', { hasText: 'open' }).waitFor();
    return tab;
  };
  const page = await open();
  // REACT-3
  expect(upgrades).toBe(1);
  expect(await page.locator('#sound').textContent()).toBe('off off 0');
  const questionsRendered = await page.evaluate(() => bundled.seen.questions);
  const hostile = '<img src=x onerror="throw new Error(1)">';
  await page.evaluate(() => bundled.seen.client?.send('use book_ride'));
  const premium = page.getByRole('button', { name: 'Premium' });
  await premium.waitFor();
  // REACT-1: a question was queued, presented and opened; words, tasks and the status rendered nothing here.
  expect((await page.evaluate(() => bundled.seen.questions)) - questionsRendered).toBeLessThan(12);
  await page.getByRole('list', { name: 'Tasks' }).getByText('waits for an answer').waitFor();
  const second = await open();
  await second.getByRole('button', { name: 'Premium' }).waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.addScriptTag({ content: axeSource });
    const { violations } = await page.evaluate(() => axe.run());
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html: it }) => it)])).toEqual([]);
  }
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBeLessThanOrEqual(375);

  for (const socket of sockets) socket.destroy();
  await page
    .locator('#status', { hasText: 'waiting' })
    .or(page.locator('#status', { hasText: 'open' }))
    .waitFor();
  for (let presses = 0; presses < 20; presses += 1) {
    await page.keyboard.press('Tab');
    if (await premium.evaluate((button) => button === document.activeElement)) break;
  }
  await page.keyboard.press('Enter');
  for (const tab of tabs)
    await tab.getByRole('list', { name: 'Tasks' }).getByText('done').waitFor();
  expect(await page.getByRole('button', { name: 'Premium' }).count()).toBe(0);
  // REACT-PARTS-2
  expect(await page.evaluate(() => document.activeElement?.getAttribute('data-state'))).toBe(
    'answered',
  );
  await page.evaluate((text) => bundled.seen.client?.send(text), hostile);
  await page.getByRole('log').getByText(hostile).first().waitFor();
  expect(await page.locator('img').count()).toBe(0);
  await page.screenshot({ path: process.env['REACT_SCREENSHOT'] });
  await page.evaluate(() => bundled.seen.unmount());
  await page.waitForFunction(() => bundled.seen.client?.status.get().state === 'closed');
  expect(problems).toEqual([]);
});
