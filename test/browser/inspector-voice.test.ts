// A spoken conversation with the demo on the inspector's page: live, with each of its buttons, and from its journal
// with `offstage inspect` after SIGKILL.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { violationsIn } from '../support/axe.ts';
import { launch } from './support/stage.ts';
import { Tab } from './support/tab.ts';

const pathOf = (file: string): string => fileURLToPath(new URL(`../../${file}`, import.meta.url));

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** Starts a program. Resolves with the program's output as soon as that matches. */
async function started(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  isWanted: RegExp,
): Promise<{ readonly child: ChildProcess; readonly printed: string }> {
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, args, {
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let printed = '';
  if (!child.stdout) throw new Error('Expected a pipe');
  for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    printed += String(text);
    if (isWanted.test(printed)) break;
  }
  child.stdout.resume();
  return { child, printed };
}

async function looked(url: string, width: number) {
  const context = await browser.newContext({
    bypassCSP: true,
    viewport: { width, height: 800 },
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('request', (request) => {
    if (!/^(?:http:\/\/127\.0\.0\.1|blob:)/.test(request.url())) problems.push(request.url());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
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

/** The names of all visible controls. The list of waits counts as one control, and so do the selectable answers. */
const controlsOf = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>('button, input, select, textarea, a[href]')]
      .filter((control) => control.offsetParent !== null)
      .map((control) => {
        if (control.closest('#waits')) return 'what waits';
        const name =
          control.getAttribute('aria-label') ??
          control.closest('label')?.firstChild?.textContent?.trim() ??
          '';
        const text = name || control.closest('label')?.textContent || control.textContent || '';
        return text.trim().replace(/^Choose .*/, 'Choose …');
      }),
  );

/** A page whose controls must all be used: records the controls that were seen and those that were used. */
class Used {
  readonly page: Page;
  readonly #seen = new Set<string>();
  readonly #used = new Set<string>();

  constructor(page: Page) {
    this.page = page;
  }

  get unused(): readonly string[] {
    return [...this.#seen].filter((name) => !this.#used.has(name));
  }

  async look(): Promise<void> {
    for (const name of await controlsOf(this.page)) this.#seen.add(name);
  }

  /** Scrolls to a row of the tree, because the document contains only the rows in view. `nth` counts from 0. */
  async row(name: RegExp, nth = 0): Promise<Locator> {
    const tree = this.page.locator('#tree');
    const look = async (): Promise<string | null> => {
      const seen = new Set<string>();
      const height = await tree.evaluate(({ scrollHeight }) => scrollHeight);
      for (let top = 0; top < height; top += 72) {
        await tree.evaluate((box, to) => box.scrollTo(0, to), top);
        // The text is read at once, because the demo does not wait for the reader.
        const rows = await tree
          .getByRole('treeitem')
          .evaluateAll((all) =>
            all.map((row) => [row.querySelector('span')?.textContent ?? '', row.textContent ?? '']),
          );
        for (const [text = '', whole = ''] of rows) {
          if (text !== '' && name.test(whole)) seen.add(text);
          if (seen.size > nth) return text;
        }
      }
      return null;
    };
    const found = await vi.waitFor(
      async () => {
        const text = await look();
        if (text === null) throw new Error(`Expected a row of ${name}`);
        return text;
      },
      { timeout: 60_000 },
    );
    return tree.getByRole('treeitem').filter({ hasText: found });
  }

  async choose(name: RegExp): Promise<void> {
    await (await this.row(name)).first().click();
  }

  /** Presses a button. `receipt` is the message that the page then shows. */
  async press(name: string, receipt: string | RegExp | null = null): Promise<void> {
    const button = this.page.getByRole('button', { name, exact: true });
    await button.waitFor();
    await this.look();
    await button.click();
    this.#used.add(name.replace(/^Choose .*/, 'Choose …'));
    if (receipt === null) return;
    await this.page.locator('#receipt').filter({ hasText: receipt }).waitFor();
  }

  async fill(label: string, text: string): Promise<void> {
    await this.page.getByLabel(label, { exact: true }).fill(text);
    this.#used.add(label);
  }

  async select(label: string, value: string): Promise<void> {
    await this.page.getByLabel(label, { exact: true }).selectOption(value);
    this.#used.add(label);
  }

  /** Records that a control was used in another way. */
  did(name: string): void {
    this.#used.add(name);
  }
}

test('shows a spoken conversation, controls it and looks the same after the process is killed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-inspected-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { child, printed } = await started(
    ['--conditions=offstage-source', pathOf('examples/voice-demo/program.ts')],
    { KEPT: folder, PORT: '0' },
    /Look inside \S+\s/,
  );
  const [, link = ''] = /Open +(\S+)/.exec(printed) ?? [];
  const [, inside = ''] = /Look inside (\S+)/.exec(printed) ?? [];

  const context = await browser.newContext({ reducedMotion: 'reduce' });
  onTestFinished(() => context.close());
  const tab = await Tab.open(await context.newPage(), link, {});
  await tab.startTalking();
  await tab.untilSpeaker('sounds');

  const { page, problems } = await looked(inside, 1280);
  const it = new Used(page);
  await page.getByRole('status').getByText('Connected: it may act').waitFor();
  // A real recogniser listens and sometimes makes errors.
  for (let tries = 1; (await page.getByText(/^ride_booker/).count()) === 0; tries += 1) {
    if (tries > 4) throw new Error('Expected a ride to be booked');
    await tab.say('Book me a ride to the airport.');
    await page
      .getByText(/^ride_booker/)
      .first()
      .waitFor({ timeout: 20_000 })
      .catch(() => {});
  }

  // Sent as the user, through the client protocol.
  const say = async (words: string): Promise<void> => {
    await it.choose(/^voice_demo/);
    await it.fill('Words', words);
    await it.press('Say as the user', 'Receipt: done');
  };
  const idOf = async (name: string, nth = 0): Promise<string> =>
    /sub_[\w-]{12}/.exec(
      (await (await it.row(new RegExp(`^${name} `), nth)).first().textContent()) ?? '',
    )?.[0] ?? '';
  await say('please refund order 1042');
  const [ride, refund] = [await idOf('ride_booker'), await idOf('refund_clerk')];
  await it.row(new RegExp(`question ${refund}`));

  // The list of waits shows why the work does not proceed.
  await page
    .locator('#waits li', { hasText: /in line/ })
    .first()
    .waitFor();
  await it.look();
  await page.locator('#waits button', { hasText: `ride_booker ${ride}` }).click();
  it.did('what waits');
  await page.locator('#subject', { hasText: `subagent ${ride}` }).waitFor();
  await page.locator('svg .state[data-on] > text', { hasText: /^waiting_for_input$/ }).waitFor();

  // What the subagent's model has read.
  await it.choose(new RegExp(`ride_booker ${ride}`));
  await page.locator('#said', { hasText: 'get_ride_options' }).waitFor();
  await isClean(page, 'subagent');
  for (const mode of ['queue', 'steer']) {
    await it.fill('Words', `By the way: ${mode}`);
    await it.select('When it is read', mode);
    await it.press('Send message', /"ok":true,"messageId"/);
  }
  // What the subagent asks.
  await it.choose(new RegExp(`question ${refund}`));
  await page.locator('#detail', { hasText: 'what is to be approved' }).waitFor();
  await it.press('Approve', '"reason":"queued"');
  await it.press('Approve in this session', '"reason":"queued"');
  await it.choose(new RegExp(`question ${ride}`));
  await page.locator('#detail', { hasText: 'Which ride to the airport' }).waitFor();
  await isClean(page, 'question');
  await it.press('Choose Premium', '"accepted":true,"by":"you"');
  await it.choose(new RegExp(`question ${refund}`));
  await page.locator('#why', { hasNotText: /in line/ }).waitFor();
  await it.press('Approve in this session', '"accepted":true,"by":"you"');
  await it.row(new RegExp(`refund_clerk ${refund}.*completed`));
  await it.choose(new RegExp(`question ${refund}`));
  await it.press('Ask again from now on', '"accepted":true,"by":"you"');

  // A second ride and a second refund: one is answered by voice, and the other is refused.
  await say('book me a ride to the station');
  const second = await idOf('ride_booker', 1);
  await it.choose(new RegExp(`question ${second}`));
  await it.fill('Words', 'economy');
  await it.press('Answer', '"accepted":true,"by":"you"');
  await say('please refund order 1041');
  const other = await idOf('refund_clerk', 1);
  await it.choose(new RegExp(`question ${other}`));
  await it.fill('Arguments', '{}');
  await it.press('Approve with these arguments', 'with changed arguments');
  await it.press('Decline', '"accepted":true,"by":"you"');

  // Work that takes a long time.
  await say('make me a sales report for last week');
  const report = await idOf('report_generator');
  await it.choose(new RegExp(`report_generator ${report}`));
  await page.locator('#usage', { hasText: 'Budget: 50,000 tokens' }).waitFor();
  await it.select('Limit of its budget', 'tokens');
  await it.fill('New total of the limit', '60000');
  await it.press('Raise budget', '"granted":60000');
  await it.fill('Words', 'Only of Monday');
  await it.select('When it is read', 'interrupt');
  await it.press('Send message', /"ok":true,"messageId"/);
  await say('make me a sales report for last month');
  const unwanted = await idOf('report_generator', 1);
  await it.choose(new RegExp(`report_generator ${unwanted}`));
  await it.press('Cancel subagent', 'Receipt: true');
  await it.row(new RegExp(`report_generator ${unwanted}.*cancelled`));

  // News that the session cannot deliver on this page, because another page has the voice.
  const order = await fetch(new URL('/order', link), {
    method: 'POST',
    headers: { authorization: `Bearer ${new URL(link).hash.slice(1)}` },
    body: JSON.stringify({ orderId: '1042', status: 'late' }),
  });
  expect(order.status).toBe(200);
  await it.choose(/^delivery /);
  await it.press('Dismiss', 'Receipt: done');

  // The entry shows who approved the refund, long after the question is over.
  await it.choose(new RegExp(`question ${refund}`));
  await page.getByLabel('Only selected').check();
  it.did('Only selected');
  await it.fill('Find entries', 'answered');
  await page.getByRole('option').last().click();
  await page.locator('#detail', { hasText: 'answered by' }).waitFor();
  expect(await page.locator('#detail').textContent()).toContain('you');
  await it.fill('Find entries', '');
  await page.getByLabel('Only selected').uncheck();

  // Back and forth.
  for (const [name, entry] of [
    ['First', '1'],
    ['Next', '2'],
    ['Back', '1'],
  ] as const) {
    await it.press(name);
    expect(await page.getByLabel('Entry', { exact: true }).inputValue()).toBe(entry);
  }
  await it.fill('Entry', '12');
  await page.keyboard.press('Enter');
  await page
    .getByText('To act, go to the latest entry.')
    .or(page.locator('#actions:empty'))
    .waitFor();
  await page.getByRole('link', { name: 'Link to this entry' }).click();
  it.did('Link to this entry');
  await page.locator('#receipt', { hasText: 'The link, without its secret is copied' }).waitFor();
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  expect(await copied()).toMatch(/#session=voice_demo&entry=12&unit=\S+&seq=\d+$/);
  await it.press('Copy the event', 'The event is copied');
  expect(JSON.parse(await copied())).toHaveProperty('type');
  const download = page.waitForEvent('download');
  await it.press('Save as a test', 'Saved as voice_demo-12.test.ts');
  expect((await download).suggestedFilename()).toBe('voice_demo-12.test.ts');
  for (const name of ['Zoom in', 'Earlier', 'Later', 'Zoom out', 'All']) {
    const before = await page.locator('#span').textContent();
    await it.press(name);
    if (name === 'Zoom in') expect(await page.locator('#span').textContent()).not.toBe(before);
  }
  await it.fill('Id of a fork', 'fork_1');
  await it.press('Fork from here', '"session":"fork_1"');
  await page.locator('#of', { hasText: /^of 12$/ }).waitFor();
  await page.locator('#session').selectOption('voice_demo');
  it.did('Session');
  await it.press('Latest');
  await page.locator('#of', { hasNotText: /^of 12$/ }).waitFor();
  await it.choose(/^voice_demo/);
  await it.look();
  expect(it.unused).toEqual([]);

  // The process is killed while a question is open.
  await say('book me a ride to the museum');
  const last = await idOf('ride_booker', 2);
  await it.row(new RegExp(`question ${last}`));
  expect(problems).toEqual([]);
  child.kill('SIGKILL');
  await once(child, 'exit');

  const inspect = (...more: readonly string[]) =>
    started(
      [
        pathOf('src/cli/offstage.ts'),
        'inspect',
        '--journal',
        join(folder, 'conversation.journal'),
        ...more,
      ],
      {},
      /Open \S+\s/,
    );
  const hidden = await inspect();
  const small = await looked(hidden.printed.slice('Open '.length).trim(), 375);
  await small.page.getByRole('status').getByText('Connected: it only looks').waitFor();
  await small.page.locator('#session').selectOption('voice_demo');
  expect(await small.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThan(376);
  // With the keyboard alone. Tab reaches each usable control, and the question is found in the tree.
  const reached = new Set<string>();
  await small.page.locator('#session').focus();
  for (let step = 0; step < 120; step += 1) {
    reached.add(
      await small.page.evaluate(() => {
        const { activeElement } = document;
        return activeElement?.id || activeElement?.textContent || '';
      }),
    );
    await small.page.keyboard.press('Tab');
  }
  const usable = await small.page.evaluate(() =>
    [
      ...document.querySelectorAll<HTMLElement>(
        ':is(button, input, select, a[href]):not(:disabled), [tabindex="0"]',
      ),
    ]
      .filter((control) => control.offsetParent !== null)
      .map(({ id, textContent }) => id || textContent || ''),
  );
  expect(usable.filter((name) => !reached.has(name))).toEqual([]);
  await small.page.locator('#tree').focus();
  for (let step = 0; step < 200; step += 1) {
    if ((await small.page.locator('#subject').textContent()) === `question ${last}.q1`) break;
    await small.page.keyboard.press('ArrowDown');
  }
  await small.page.locator('#subject', { hasText: `question ${last}.q1` }).waitFor();
  await small.page.locator('#why', { hasNotText: /^$/ }).waitFor();
  expect(await small.page.locator('#actions').textContent()).toBe('');
  // The page shows neither the texts nor the buttons that need them.
  const main = await small.page.locator('main').textContent();
  expect(main).not.toContain('museum');
  expect(main).not.toContain('By the way');
  for (const name of ['Save as a test', 'Fork from here'])
    expect(await small.page.getByRole('button', { name }).isDisabled()).toBe(true);
  await isClean(small.page, 'killed');
  expect(small.problems).toEqual([]);
  hidden.child.kill('SIGINT');
  await once(hidden.child, 'exit');

  const shown = await inspect('--words');
  const wide = await looked(shown.printed.slice('Open '.length).trim(), 1280);
  await wide.page.locator('#session').selectOption('voice_demo');
  await new Used(wide.page).choose(new RegExp(`question ${last}`));
  await wide.page.locator('#detail', { hasText: 'Which ride to the museum' }).waitFor();
  await isClean(wide.page, 'killed');
  expect(wide.problems).toEqual([]);
}, 300_000);
