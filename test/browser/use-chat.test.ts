// `offstage/ai-sdk-ui` in Chromium with `useChat`: tasks, buttons, late results, a lost connection, and two tabs.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rideSession } from '../serve/support/served.ts';
import { bundle } from '../support/bundle.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { servedPage } from './support/served-page.ts';
import { launch } from './support/stage.ts';
import type * as useChatPage from './support/use-chat-page.ts';

declare const bundled: typeof useChatPage;

const HOSTILE = '<img src=x onerror="throw new Error(1)">[a](javascript:alert(1))';
let browser: Browser;
let code: string;

beforeAll(async () => {
  ({ code } = await bundle('test/browser/support/use-chat-page.ts', ['browser']));
  browser = await launch();
});
afterAll(() => browser.close());

/** A session with pages that each have a `useChat`. */
async function stage(options?: Parameters<typeof rideSession>[0]) {
  const session = rideSession(options);
  const { problems, cut, open } = await servedPage(browser, code, session);
  return {
    session,
    problems,
    cut,
    async open(): Promise<Page> {
      const tab = await open();
      await tab.evaluate(() => bundled.mount());
      return tab;
    },
  };
}

async function type(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text);
  await page.keyboard.press('Enter');
}

const linesOf = (page: Page, role: string): Promise<string[]> =>
  page.locator(`article[data-role=${role}]`).allTextContents();

test('delivers a button press made while the connection was lost, and shows an unprompted result', async () => {
  const { session, problems, cut, open } = await stage();
  const [page, second] = [await open(), await open()];
  await type(page, 'use book_ride');
  const premium = page.getByRole('button', { name: 'Premium' });
  await premium.waitFor();
  await second.getByRole('button', { name: 'Premium' }).waitFor();
  expect(await linesOf(second, 'user')).toEqual(['use book_ride']);
  await page.getByText('book_ride: waiting_for_input').waitFor();
  await page.locator('#status', { hasText: 'ready' }).waitFor();
  // The card is updated in place: it remains the same element and keeps the focus.
  await premium.focus();
  cut();
  await page.keyboard.press('Enter');
  for (const tab of [page, second]) {
    await tab.getByText('Economy or Premium? Premium').waitFor();
    await tab.getByText('book_ride: completed').waitFor();
    await tab.getByText('Told:').waitFor();
    expect(await tab.locator('.task').count()).toBe(1);
    expect(await linesOf(tab, 'user')).toEqual(['use book_ride']);
  }
  // P4: the result is delivered once and shown.
  await expect
    .poll(() =>
      session.store.getSnapshot().context.deliveries.find(({ kind }) => kind === 'result'),
    )
    .toMatchObject({ state: 'delivered', grade: 'shown', attempts: 1 });
  // A reloaded page shows all messages in the same order.
  const before = await page.locator('article').allTextContents();
  await page.reload();
  await page.evaluate(() => bundled.mount());
  await page.getByText('Told:').waitFor();
  expect(await page.locator('article').allTextContents()).toEqual(before);
  expect(problems).toEqual([]);
});

test('shows a denied approval even if its tool name and text are hostile', async () => {
  const ran: unknown[] = [];
  const mail = {
    script: steps(calls(['do_mail', { to: HOSTILE }]), say(HOSTILE)),
    config: { tools: { do_mail: simpleTool(() => ran.push('mail'), { needsApproval: true }) } },
  };
  const { problems, open } = await stage({ subagents: { mail } });
  const page = await open();
  await type(page, 'use mail');
  await page.getByText('img src=x').first().waitFor();
  const deny = page.locator('fieldset button').nth(1);
  await deny.focus();
  await page.keyboard.press('Enter');
  await page.getByText('mail: completed').waitFor();
  expect(await page.locator('fieldset').count()).toBe(0);
  expect(ran).toEqual([]);
  await type(page, HOSTILE);
  await page.getByText(`You said: ${HOSTILE}`).waitFor();
  expect(await page.locator('img, a').count()).toBe(0);
  expect(problems).toEqual([]);
});

test('names the features that a session does not support', async () => {
  const { open } = await stage();
  const page = await open();
  await type(page, '   ');
  await page.getByRole('alert').getByText('expected words').waitFor();
});
