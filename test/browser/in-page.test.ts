// Offstage in Chromium: bundled with all its imports, it holds a conversation in a page and in a worker, without a
// server.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { bundle } from '../support/bundle.ts';
import type * as bundledConversation from './support/conversation.ts';
import { launch } from './support/stage.ts';

declare const bundled: typeof bundledConversation;

const said = ['One moment.', 'Your premium ride is booked.'];
const expected = { said, asked: ['Which ride?'], ended: ['completed'], nodeGlobals: [] };

let browser: Browser;
let code: string;
let builtIns: readonly string[];
let page: Page;
const problems: string[] = [];

beforeAll(async () => {
  ({ code, builtIns } = await bundle('test/browser/support/conversation.ts', ['browser']));
  browser = await launch();
});
beforeEach(async () => {
  problems.length = 0;
  page = await browser.newPage();
  page.on('pageerror', (error) => problems.push(error.message));
  // An empty page without a network: every other request is aborted.
  await page.route('**', (route) =>
    route.request().url() === 'http://offstage.test/'
      ? route.fulfill({ contentType: 'text/html', body: '<!doctype html>' })
      : route.abort(),
  );
  await page.goto('http://offstage.test/');
});
afterAll(() => browser.close());

test('bundles no Node.js modules', () => {
  expect(builtIns).toEqual([]);
});

test('runs a text conversation with a subagent in a page', async () => {
  await page.addScriptTag({ content: code });
  expect(await page.evaluate(() => bundled.converse())).toEqual(expected);
  expect(problems).toEqual([]);
});

test('runs a text conversation with a subagent in a worker', async () => {
  const script = `${code}
    bundled.converse().then(postMessage, (error) => postMessage(String(error.stack)));`;
  const heard = await page.evaluate((text) => {
    const url = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
    const worker = new Worker(url);
    return new Promise<unknown>((resolve) => {
      worker.addEventListener('message', ({ data }) => resolve(data));
      worker.addEventListener('error', ({ message }) => resolve(message));
    });
  }, script);
  expect(heard).toEqual(expected);
  expect(problems).toEqual([]);
});
