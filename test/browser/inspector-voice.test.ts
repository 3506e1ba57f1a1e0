// A spoken conversation of the demo, with a ride, an order and a refund that needs approval, on the page of the inspector:
// live, with its buttons, and from the entries that a killed process leaves.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startDemo } from '../../examples/voice-demo/demo.ts';
import { createBuiltInEngine } from '../../src/adapters/local-voice/speech/built-in-engine.ts';
import type { JournalEntry } from '../../src/entries/journal.ts';
import { memoryJournal } from '../../src/index.ts';
import { forgetKeys } from '../examples/voice-demo/support.ts';
import { mounted } from '../inspector/support.ts';
import { violationsIn } from '../support/axe.ts';
import { sayUntil } from './support/say-until.ts';
import { launch, Stage } from './support/stage.ts';

const engine = createBuiltInEngine();
let browser: Browser;
beforeAll(async () => {
  [browser] = await Promise.all([launch(), engine.start()]);
});
afterAll(() => Promise.all([browser.close(), engine.close()]));

async function looked(url: string, width: number) {
  const context = await browser.newContext({ bypassCSP: true, viewport: { width, height: 800 } });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith('http://127.0.0.1')) problems.push(request.url());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(url);
  return { page, problems };
}

async function isClean(page: Page, name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await violationsIn(page)).toEqual([]);
    const folder = process.env['INSPECTOR_SCREENSHOTS'];
    const { width } = page.viewportSize() ?? { width: 0 };
    if (folder)
      await page.screenshot({ path: `${folder}/voice-${name}-${width}-${colorScheme}.png` });
  }
}

test('a spoken conversation with two subagents and an approval is watched, and acted in', async () => {
  const journal = memoryJournal({ keep: Infinity });
  forgetKeys();
  const demo = await startDemo({
    port: 0,
    pace: 0.25,
    speech: engine,
    sessionOptions: { sessionId: 'ses_call', journal },
  });
  const stage = new Stage(browser, demo);
  onTestFinished(() => stage.close());
  const { watch } = stage;
  const { session } = demo;
  const inspected = await mounted({ journal, act: () => session, user: 'ann', redact: false });
  const tab = await stage.visit();
  await tab.startTalking();
  await tab.untilSpeaker('sounds');
  const { page, problems } = await looked(inspected.url, 1280);
  await page.getByRole('status').getByText('Connected: it may act').waitFor();
  await sayUntil(
    stage,
    tab,
    'a ride is booked',
    { text: 'Book me a ride to the airport.', matters: ['ride', 'airport'] },
    ({ subagents }) => subagents.length > 0,
  );
  const idOf = (what: RegExp): string =>
    session.subagents.list().find(({ name }) => what.test(name))?.id ?? '';
  const press = async (name: string, receipt: string | RegExp): Promise<void> => {
    await page.getByRole('button', { name, exact: true }).click();
    await page.locator('#receipt').getByText(receipt).waitFor();
  };
  const choose = (name: string | RegExp) => page.getByRole('treeitem', { name }).first().click();

  // The words of the user, through the same door.
  await choose('ses_call');
  await page.getByRole('textbox', { name: 'Words' }).fill('please refund order 1042');
  await press('Say as the user', 'Receipt: null');
  await watch.until('both ask', ({ questions }) => questions.length === 2);
  const [ride, refund] = [idOf(/ride/), idOf(/refund/)];

  await choose(new RegExp(`ride.* ${ride}`));
  await page.locator('#why', { hasText: /^asked sub_/ }).waitFor();
  await page.locator('svg .state[data-on] > text', { hasText: /^waiting_for_input$/ }).waitFor();
  for (const mode of ['queue', 'steer']) {
    await page.getByRole('textbox', { name: 'Words' }).fill(`By the way: ${mode}`);
    await page.getByRole('combobox', { name: 'When it is read' }).selectOption(mode);
    await press('Send message', /"ok":true,"messageId"/);
  }
  await isClean(page, 'live');

  // A killed process leaves these entries: the same questions are open in them.
  const left = JSON.parse(JSON.stringify(journal.read())) as JournalEntry[];

  // One at a time: the other one is in line.
  await choose(new RegExp(`question ${refund}`));
  await press('Approve', '"reason":"queued"');
  await choose(new RegExp(`question ${ride}`));
  await page.getByRole('textbox', { name: 'Words' }).fill('premium');
  await press('Answer', '"accepted":true,"by":"ann"');
  await watch.until('the next one is asked', ({ questions }) =>
    questions.some(({ subagentId, state }) => subagentId === refund && state === 'open'),
  );
  await choose(new RegExp(`question ${refund}`));
  await press('Approve', '"accepted":true,"by":"ann"');
  await watch.until('both have ended', ({ subagents }) =>
    subagents.every(({ endedAt }) => endedAt !== null),
  );
  await page.getByRole('treeitem', { name: new RegExp(`${ride}.*completed`) }).waitFor();
  expect(problems).toEqual([]);
  await tab.page.close();

  const past = memoryJournal({ keep: Infinity });
  for (const entry of left) past.append(entry);
  const small = await looked((await mounted({ journal: past })).url, 375);
  await small.page.getByRole('status').getByText('Connected: it only looks').waitFor();
  expect(await small.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThan(376);
  // By keyboard alone: to the tree, and down to the question.
  await small.page.locator('#tree').focus();
  for (let step = 0; step < 60; step += 1) {
    if ((await small.page.locator('#subject').textContent())?.startsWith('question')) break;
    await small.page.keyboard.press('ArrowDown');
  }
  await small.page.locator('#subject', { hasText: /^question sub_/ }).waitFor();
  await small.page.locator('#why', { hasNotText: /^$/ }).waitFor();
  expect(await small.page.locator('#actions').textContent()).toBe('');
  // Without its words.
  expect(await small.page.locator('main').textContent()).not.toContain('By the way');
  await isClean(small.page, 'past');
  expect(small.problems).toEqual([]);
}, 240_000);
