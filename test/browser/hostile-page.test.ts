// The demo's page with a session of the test's own: an approval and a question with hostile texts, in light and dark,
// wide and narrow. Third-party text appears only as text, and axe reports no problems.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createWorld } from '../../examples/voice-demo/agents/world.ts';
import { startDemoServer } from '../../examples/voice-demo/server.ts';
import { memoryJournal } from '../../src/index.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { voiceTalk } from '../support/voice-talk.ts';
import { violationsIn } from '../support/axe.ts';
import { launch } from './support/stage.ts';
import { overflowing, Tab } from './support/tab.ts';

const hostile =
  '<img src=x onerror="document.title=1"><script>document.title=2</script>**{{7*7}}**';

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

test('shows hostile text in an approval and a question as plain text, accessible in light and dark mode', async () => {
  const options = [
    { id: 'a', label: `A ${hostile}`, description: hostile },
    { id: 'b', label: 'B' },
  ];
  const talk = voiceTalk({
    subagents: {
      pay: {
        script: steps(calls(['pay', { to: hostile }]), say(hostile)),
        config: { tools: { pay: simpleTool(() => 'paid', { needsApproval: true }) } },
      },
      ask: {
        script: steps(calls(['ask_user', { question: hostile, options }]), say(hostile)),
        config: { interactive: true },
      },
    },
  });
  const server = await startDemoServer({
    session: talk.session,
    journal: memoryJournal(),
    world: createWorld(),
    port: 0,
    about: { transport: hostile, lead: hostile, subagents: hostile, speech: hostile },
    log: () => undefined,
  });
  const page = await browser.newPage();
  onTestFinished(async () => {
    await page.close();
    await server.close();
    await talk.close();
  });
  const tab = await Tab.open(page, server.url, {});
  const check = async (what: string): Promise<void> => {
    for (const colorScheme of ['light', 'dark'] as const)
      for (const [width, height] of [
        [1280, 800],
        [375, 740],
      ] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await page.setViewportSize({ width, height });
        // The theme follows the system setting.
        await page.locator(`:root[data-theme='${colorScheme}']`).waitFor();
        expect(await overflowing(tab)).toEqual([]);
        expect(await violationsIn(page)).toEqual([]);
        const folder = process.env['DEMO_SCREENSHOTS'];
        if (folder)
          await page.screenshot({ path: `${folder}/${what}-${colorScheme}-${width}.png` });
      }
  };
  await tab.button('Type instead').waitFor();
  await check('welcome');
  await tab.button('Type instead').click();
  await expect.poll(() => talk.session.isAttached).toBe(true);
  await talk.environment.settle();
  await talk.use('pay');
  await talk.use('ask');
  await talk.pause();
  const cards = page.getByRole('article');
  await cards.nth(1).waitFor();
  await cards.getByText('It does this only if you approve it.').waitFor();
  await page.getByText('Statecharts, live').click();
  await expect
    .poll(() => page.locator('[aria-current=step]').allTextContents())
    .toContain('active');
  await check('question');

  // The questions are presented in turn, and each is answered with a button.
  for (let turn = 0; turn < 2; turn += 1) {
    await talk.speak(hostile);
    await cards.getByText(/is being asked|say it or press it/).waitFor();
    await cards.getByRole('button', { disabled: false }).first().click();
    await expect
      .poll(() => talk.state().questions.filter(({ state }) => state === 'answered').length)
      .toBe(turn + 1);
    await talk.pause();
  }
  await expect
    .poll(async () => {
      await talk.environment.settle();
      return talk.state().subagents.map(({ state }) => state);
    })
    .toEqual(['completed', 'completed']);
  await page.getByText('You answered the').first().waitFor();
  expect(
    await page.locator('img:not([src="/icon.svg"]), script:not([src]):not([type])').count(),
  ).toBe(0);
  expect(await page.title()).toBe('Offstage');
  expect(tab.problems).toEqual([]);
});
