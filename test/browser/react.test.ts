// `offstage/react` in Chromium: hooks and components under StrictMode, the keyboard, a lost connection, and two tabs.

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool, type TextSession } from '../../src/index.ts';
import { rideSession } from '../serve/support/served.ts';
import { violationsIn } from '../support/axe.ts';
import { calls, counting, say, steps } from '../support/subagent-runs.ts';
import { pageOfFile } from './support/page-of-file.ts';
import type * as reactPage from './support/react-page.ts';

declare const bundled: typeof reactPage;

const serve = pageOfFile('test/browser/support/react-page.ts');

/** A session with pages that use every hook and component. */
async function stage(session: TextSession, users?: Readonly<Record<string, string>>) {
  const served = await serve(session, users);
  return {
    ...served,
    upgrades: () => served.upgrades,
    async open(token = 'right'): Promise<Page> {
      const tab = await served.open();
      await tab.evaluate((given) => bundled.mount(given), token);
      await tab.locator('#status', { hasText: 'open' }).waitFor();
      return tab;
    },
  };
}

const rendered = (page: Page) =>
  page.evaluate(() => {
    const { questions, transcript, tasks } = bundled.seen;
    return { questions, transcript, tasks };
  });

test('accepts an answer by keyboard while the connection is lost, and shows the answer in both tabs', async () => {
  const { open, problems, tabs, upgrades, cut } = await stage(rideSession());
  const page = await open();
  // REACT-3
  expect(upgrades()).toBe(1);
  expect(await page.locator('#sound').textContent()).toBe('off off 0');
  const questionsRendered = await page.evaluate(() => bundled.seen.questions);
  const hostile = '<img src=x onerror="throw new Error(1)">';
  await page.evaluate(() => bundled.seen.client?.send('use book_ride'));
  const premium = page.getByRole('button', { name: 'Premium' });
  await premium.waitFor();
  // REACT-1: only changes to the question cause renders here, and not text, tasks or the status.
  expect((await page.evaluate(() => bundled.seen.questions)) - questionsRendered).toBeLessThan(12);
  await page.getByRole('list', { name: 'Tasks' }).getByText('waits for an answer').waitFor();
  const second = await open();
  await second.getByRole('button', { name: 'Premium' }).waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await violationsIn(page)).toEqual([]);
  }
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBeLessThanOrEqual(375);

  cut();
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

test("executes a tool in only one of two tabs, with the page's newest handler", async () => {
  const locate = defineTool({
    name: 'locate',
    description: 'Finds where the user is',
    parameters: z.object({}),
    runsAt: 'client',
    resultSchema: z.string(),
  });
  const { open, problems } = await stage(rideSession({ tools: [locate] }));
  const page = await open();
  await page.getByRole('button', { name: 'Travel' }).click();
  await page.evaluate(() => bundled.seen.client?.send('use locate'));
  await page.getByRole('log').getByText('Tools said: ["Paris"]').waitFor();
  const second = await open();
  await second.evaluate(() => bundled.seen.client?.send('use locate'));
  await page.getByRole('log').getByText('Tools said').nth(1).waitFor();
  expect(problems).toEqual([]);
});

test('rerenders the task list on progress, but neither the transcript nor the questions', async () => {
  const words = Array.from({ length: 20 }, (_, index) => `${index + 1} of 20`);
  const work = counting(words);
  const { open, problems } = await stage(rideSession({ subagents: { work: work.subagent } }));
  const page = await open();
  await page.evaluate(() => bundled.seen.client?.send('use work'));
  const tasks = page.getByRole('list', { name: 'Tasks' });
  await tasks.getByText('at work: 1 of 20').waitFor();
  await page.getByRole('log').getByText('Tools said').waitFor();
  const before = await rendered(page);
  for (const progress of words.slice(1)) {
    work.next();
    await tasks.getByText(`at work: ${progress}`, { exact: true }).waitFor();
  }
  const after = await rendered(page);
  // REACT-1. StrictMode renders twice.
  expect(after).toEqual({ ...before, tasks: before.tasks + 2 * (words.length - 1) });
  work.next();
  await tasks.getByText('done').waitFor();
  expect(problems).toEqual([]);
});

test("REACT-PARTS-3: shows that a question is meant for another user and accepts that user's answer", async () => {
  const ask = {
    script: steps(
      calls(['ask_user', { question: 'Pay?', options: [{ id: 'yes', label: 'Pay' }] }]),
      say('Paid.'),
    ),
    config: { interactive: true, answerableBy: ['manager'] },
  };
  const users = { ann: 'ann', boss: 'manager' };
  const { open, problems } = await stage(rideSession({ subagents: { ask } }), users);
  const [ann, boss] = [await open('ann'), await open('boss')];
  await ann.evaluate(() => bundled.seen.client?.send('use ask'));
  const pay = (page: Page) => page.getByRole('button', { name: 'Pay', exact: true });
  await pay(boss).waitFor();
  await ann.getByText('Only another person can answer this.').waitFor();
  expect(await pay(ann).isDisabled()).toBe(true);
  expect(await boss.getByText('Somebody else').count()).toBe(0);
  await pay(boss).click();
  for (const page of [ann, boss]) {
    await page.getByRole('list', { name: 'Tasks' }).getByText('done').waitFor();
    expect(await pay(page).count()).toBe(0);
  }
  expect(await ann.getByText('Somebody else').count()).toBe(0);
  expect(problems).toEqual([]);
});

test('keeps the focus on a button while the server is replaced, and then delivers the answer', async () => {
  const { open, problems, restart, upgrades } = await stage(rideSession());
  const page = await open();
  await page.evaluate(() => bundled.seen.client?.send('use book_ride'));
  const premium = page.getByRole('button', { name: 'Premium' });
  await premium.waitFor();
  await premium.focus();
  await page.evaluate(() => {
    (globalThis as { kept?: unknown }).kept = document.activeElement;
  });
  await restart();
  await expect.poll(upgrades).toBeGreaterThan(1);
  await page.locator('#status', { hasText: 'open' }).waitFor();
  // The element keeps the focus through a welcome that contains all views.
  expect(
    await page.evaluate(() => (globalThis as { kept?: unknown }).kept === document.activeElement),
  ).toBe(true);
  await page.keyboard.press('Enter');
  await page.getByRole('list', { name: 'Tasks' }).getByText('done').waitFor();
  // REACT-PARTS-2
  expect(await page.evaluate(() => document.activeElement?.getAttribute('data-state'))).toBe(
    'answered',
  );
  expect(problems).toEqual([]);
});
