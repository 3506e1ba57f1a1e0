// A page made of the components in `offstage/react`, in Chromium with React: keyboard, axe, light and dark.

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { TextSession } from '../../src/index.ts';
import { rideSession } from '../serve/support/served.ts';
import { violationsIn } from '../support/axe.ts';
import { turns } from '../support/crashes.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { pageOfFile } from './support/page-of-file.ts';
import type * as partsPage from './support/parts-page.ts';

declare const bundled: typeof partsPage;

const serve = pageOfFile('test/browser/support/parts-page.ts');

async function stage(session: TextSession) {
  const served = await serve(session);
  const page = await served.open();
  await page.evaluate(() => bundled.mount());
  await page.getByText('Ready').or(page.getByText('Connected')).waitFor();
  return { ...served, page };
}

const focused = (page: Page) =>
  page.evaluate(() => document.activeElement?.getAttribute('data-part') ?? null);

test('renders queued questions, digit keys, results and notes accessibly in light and dark mode', async () => {
  const pay = {
    script: steps(calls(['pay', { to: 'Ann', sum: 7 }]), say('Paid.')),
    config: { tools: { pay: simpleTool(() => 'paid', { needsApproval: true }) } },
  };
  const { page, problems } = await stage(rideSession({ subagents: { pay } }));
  await page.addStyleTag({ content: '[data-part=transcript] { overflow: auto; min-height: 0 }' });
  const field = page.getByLabel('Message');
  // `/` moves the focus to the field, and Escape moves it away.
  await page.keyboard.press('/');
  await page.keyboard.type('use book_ride');
  await page.keyboard.press('Enter');
  const cards = page.getByRole('article');
  await cards.getByText('Premium', { exact: true }).waitFor();
  await field.fill('use pay');
  await page.keyboard.press('Enter');
  await cards.nth(1).getByText('2nd in line').waitFor();
  expect(await cards.nth(1).locator('dt, dd').allTextContents()).toEqual(['to', 'Ann', 'sum', '7']);
  // REACT-PARTS-3
  expect(await cards.nth(1).getByRole('button', { disabled: false }).count()).toBe(0);
  await cards.nth(0).getByText('waits for your answer').waitFor();
  await cards.nth(0).getByRole('progressbar', { name: 'Time to answer' }).waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await violationsIn(page)).toEqual([]);
  }
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);

  // A digit in the field is text; outside the field, it answers.
  await field.press('2');
  expect(await cards.getByText('Answered').count()).toBe(0);
  await field.fill('');
  await field.press('Escape');
  const premium = cards.nth(0).getByRole('button', { name: 'Premium' });
  await premium.focus();
  await page.keyboard.press('2');
  await page.getByText('Answered: Premium').waitFor();
  const script = page.getByRole('log');
  await script.getByText(/^You answered the .*: Premium\.$/).waitFor();
  // REACT-PARTS-2: the card keeps the focus until it passes it to the list.
  expect(await focused(page)).toBe('question-card');
  await page.getByText('Answered: Premium').waitFor({ state: 'detached' });
  expect(await focused(page)).toBe('questions');
  await page.getByRole('button', { name: 'Decline', disabled: false }).click();
  const results = page.getByRole('list', { name: 'Results' });
  await results
    .getByRole('button', { name: /^Dismiss/ })
    .nth(1)
    .waitFor();
  await page.getByRole('list', { name: 'Tasks' }).getByText('and 1 before').waitFor();
  await script
    .getByText(/ is done\.$/)
    .first()
    .waitFor();

  // The script stays scrolled to its end when its box shrinks.
  await page.getByRole('button', { name: 'Shrink' }).click();
  await expect
    .poll(() =>
      script.evaluate((box) => ({
        isScrolled: box.scrollTop > 0,
        isAtEnd: box.scrollHeight - box.scrollTop - box.clientHeight < 2,
      })),
    )
    .toEqual({ isScrolled: true, isAtEnd: true });
  const before = await results.getByRole('listitem').count();
  await results
    .getByRole('button', { name: /^Dismiss/ })
    .first()
    .click();
  await expect.poll(() => results.getByRole('listitem').count()).toBe(before - 1);
  await page.screenshot({ path: process.env['REACT_SCREENSHOT'] });
  expect(problems).toEqual([]);
});

test('lists a lasting approval with a button that revokes it', async () => {
  const paid: unknown[] = [];
  const pay = {
    script: turns(calls(['pay', { to: 'Ann' }]), calls(['pay', { to: 'Ann' }]), say('Paid.')),
    config: {
      tools: { pay: simpleTool((input) => paid.push(input), { needsApproval: true }) },
    },
  };
  const { page, open, problems } = await stage(rideSession({ subagents: { pay } }));
  const use = async (tab: Page) => {
    await tab.getByLabel('Message').fill('use pay');
    await tab.getByLabel('Message').press('Enter');
  };
  await use(page);
  await page.getByRole('button', { name: 'Approve for this conversation' }).click();
  await page.getByText('until this conversation ends').waitFor();
  await expect.poll(() => paid.length).toBe(2);
  expect(await violationsIn(page)).toEqual([]);
  // A page that opens later also shows it.
  const second = await open();
  await second.evaluate(() => bundled.mount());
  await second.getByRole('button', { name: 'Ask again' }).click();
  await page.getByRole('button', { name: 'Ask again' }).waitFor({ state: 'detached' });
  await use(page);
  await page.getByRole('button', { name: 'Approve', exact: true, disabled: false }).waitFor();
  expect(paid).toHaveLength(2);
  expect(problems).toEqual([]);
});

test('returns unsent text with the reason and shows the connection state', async () => {
  const { page, problems } = await stage(rideSession());
  const field = page.getByLabel('Message');
  await page.evaluate(() => bundled.seen.client?.close());
  await field.fill('are you there?');
  await field.press('Enter');
  await page.getByRole('alert').waitFor();
  expect(await field.inputValue()).toBe('are you there?');
  await page.getByText('The session is over').waitFor();
  expect(problems).toEqual([]);
});

test('leaves an interrupted line readable and lets the user hear it again', async () => {
  const { tabs, open, problems } = await serve(rideSession());
  const page = await open();
  expect(tabs).toHaveLength(1);
  await page.evaluate(() =>
    bundled.mountTranscript([
      ['Once upon a time.', true],
      ['The end of it.', true],
      ['', false],
    ]),
  );
  await page.getByRole('button', { name: 'Cut' }).click();
  await page.getByText('Once upon a time.').waitFor();
  // Shows the last item, and no line for items without text.
  expect(await page.getByRole('log').locator('p').count()).toBe(2);
  await page.getByRole('button', { name: 'Say it again' }).click();
  expect(await page.evaluate(() => bundled.seen.repeated)).toEqual(['The']);
  expect(problems).toEqual([]);
});
