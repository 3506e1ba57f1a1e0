// The inspector in Chromium: a running session with actions, the same session from its journal, and large journals.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createActor, createMachine } from 'xstate';
import { z } from 'zod';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import type { JournalEntry } from '../../src/entries/journal.ts';
import {
  createRuntime,
  defineTool,
  memoryJournal,
  TextSession,
  type Journal,
} from '../../src/index.ts';
import type { InspectorPageOptions } from '../../src/inspector/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { mounted } from '../inspector/support.ts';
import { rideSession } from '../serve/support/served.ts';
import { turns } from '../support/crashes.ts';
import { calls, say, simpleTool } from '../support/subagent-runs.ts';
import { violationsIn } from '../support/axe.ts';
import { launch } from './support/stage.ts';
import { apiError } from '../support/api-error.ts';

/** A global in the page's script. */
declare const state: {
  readonly lanes: Map<string, readonly { readonly kind: string; readonly to: number | null }[]>;
};

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const problems: string[] = [];

async function opened(options: Omit<InspectorPageOptions, 'token'>, width = 1280) {
  const { url, errors, page: mountedPage, close } = await mounted(options);
  const context = await browser.newContext({ bypassCSP: true, viewport: { width, height: 800 } });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const outside: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith('http://127.0.0.1')) outside.push(request.url());
  });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(`${message.text()} ${message.location().url}`);
  });
  await page.goto(url);
  return { page, errors, outside, url, close, inspect: mountedPage.inspect };
}

async function isClean(page: Page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await violationsIn(page)).toEqual([]);
    const folder = process.env['INSPECTOR_SCREENSHOTS'];
    const { width } = page.viewportSize() ?? { width: 0 };
    if (folder) {
      const name = expect.getState().currentTestName?.slice(0, 20) ?? '';
      await page.screenshot({ path: `${folder}/${name}-${width}-${colorScheme}.png` });
    }
  }
}

const choose = (page: Page, name: string | RegExp) =>
  page.getByRole('treeitem', { name }).first().click();

test('shows a running session, acts on it and steps through its history', async () => {
  problems.length = 0;
  const journal = memoryJournal();
  const session = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  await session.start();
  const leave = session.attach();
  const { page, errors, outside } = await opened({
    journal,
    act: (id) => (id === 'ses_1' ? session : null),
    user: 'ann',
  });
  await page.getByRole('status').getByText('Connected: it may act').waitFor();

  // Sent as the user, through the client protocol.
  await page.getByRole('textbox', { name: 'Words' }).fill('use book_ride');
  await page.getByRole('button', { name: 'Say as the user' }).click();
  await page.getByRole('status').getByText('Receipt: done').waitFor();
  await choose(page, /^question sub_[\w-]+\.q1/);
  await page
    .locator('#why', { hasText: 'was told in full: no client has acknowledged it' })
    .waitFor();
  await choose(page, /^book_ride/);
  await page.locator('#why', { hasText: /^asked sub_[\w-]+\.q1/ }).waitFor();
  await page.locator('svg .state[data-on] > text', { hasText: /^waiting_for_input$/ }).waitFor();
  await isClean(page);

  await choose(page, /^question sub_[\w-]+\.q1/);
  await page.getByRole('textbox', { name: 'Words' }).fill('premium');
  await page.getByRole('button', { name: 'Answer', exact: true }).click();
  await page.getByRole('status').getByText('"accepted":true').waitFor();
  await page.getByRole('treeitem', { name: /completed/ }).waitFor();

  await choose(page, 'ses_1');
  const hostile = '<img src=x onerror="throw new Error(1)">';
  await page.getByRole('textbox', { name: 'Words' }).fill(hostile);
  await page.getByRole('button', { name: 'Say as the user' }).click();
  await page.getByRole('status').getByText('Receipt: done').waitFor();

  // Words are redacted.
  expect(await page.locator('main').innerHTML()).not.toContain('onerror');

  // At the earlier entry, the same question is open again, and the page offers no actions.
  const link = await page.getByRole('link', { name: 'Link to this entry' }).getAttribute('href');
  expect(link).toContain('entry=');
  await page.locator('#entries').focus();
  await page.keyboard.press('Home');
  expect(await page.getByLabel('Entry', { exact: true }).inputValue()).toBe('1');
  const count = Number((await page.locator('#of').textContent())?.slice(3));
  const changes = new Set<string>();
  for (let n = 1; n < count; n += 1) {
    changes.add((await page.locator('#diff').textContent()) ?? '');
    await page.getByRole('button', { name: 'Next' }).click();
  }
  const answered = [...changes].find((text) => /question sub_[\w-]+\.q1/.test(text));
  expect(answered).toBeDefined();
  await page.getByRole('button', { name: 'Back' }).click();
  await page
    .getByText('To act, go to the latest entry.')
    .or(page.locator('#actions:empty'))
    .waitFor();
  expect(outside).toEqual([]);
  expect(errors).toEqual([]);
  expect(problems).toEqual([]);
  leave();
  await session.close();

  // A fork from an entry, and the entry exported as a test.
  const copied = await opened({ journal, redact: false, forks: true });
  await copied.page.getByRole('status').getByText('Connected: it only looks').waitFor();
  await copied.page.getByRole('button', { name: 'First' }).click();
  await copied.page.getByRole('button', { name: 'Next' }).click();
  const download = copied.page.waitForEvent('download');
  await copied.page.getByRole('button', { name: 'Save as a test' }).click();
  expect((await download).suggestedFilename()).toBe('ses_1-2.test.ts');
  await copied.page.getByRole('status').getByText('Saved as ses_1-2.test.ts').waitFor();
  await copied.page.getByRole('button', { name: 'Fork from here' }).click();
  await copied.page.getByRole('status').getByText('"session":"ses_1-at-2"').waitFor();
  await copied.page.locator('#of', { hasText: /^of 2$/ }).waitFor();
  expect(await copied.page.locator('#session').inputValue()).toBe('ses_1-at-2');
  expect(journal.read({ scope: 'ses_1-at-2' })).toHaveLength(2);

  // The same conversation from its journal, on a small screen and with the keyboard.
  const small = await opened({ journal, redact: false }, 375);
  await small.page.locator('#session').selectOption('ses_1');
  await small.page.getByRole('status').getByText('Connected: it only looks').waitFor();
  // A hostile text remains text.
  await small.page.getByRole('button', { name: 'First' }).click();
  const steps = Number((await small.page.locator('#of').textContent())?.slice(3));
  for (let n = 1; n < steps; n += 1) {
    if ((await small.page.locator('#diff').textContent())?.includes('onerror')) break;
    await small.page.getByRole('button', { name: 'Next' }).click();
  }
  expect(await small.page.locator('#diff').textContent()).toContain('<img src=x onerror');
  await small.page.locator('#event', { hasText: 'onerror' }).waitFor();
  await small.page.locator('#tree').focus();
  await small.page.keyboard.press('ArrowDown');
  await small.page.locator('#subject', { hasText: 'interaction' }).waitFor();
  expect(await small.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThan(376);
  // The messages to and from a subagent that has ended.
  await small.page.getByRole('button', { name: 'Latest' }).click();
  await choose(small.page, /^book_ride/);
  await small.page.locator('#why', { hasText: /^completed$/ }).waitFor();
  await small.page
    .locator('#exchanged', { hasText: /answer to sub_[\w-]+\.q1 of ann premium/ })
    .waitFor();
  await small.page.locator('#said', { hasText: 'premium' }).waitFor();
  await isClean(small.page);
  expect(await small.page.locator('img').count()).toBe(0);
  expect(problems).toEqual([]);
});

test("shows a failure of the lead agent's model until the model's next response", async () => {
  problems.length = 0;
  const journal = memoryJournal();
  const environment = nodeEnvironment();
  const limited = apiError(429, 'Slow down', { 'retry-after': '9' });
  let asked = 0;
  let answer = (): void => {};
  // The pause lasts until the test ends it.
  const scheduler = {
    ...environment.scheduler,
    schedule: (callback: () => void, delayMs: number) => {
      if (delayMs !== 9000) return environment.scheduler.schedule(callback, delayMs);
      answer = callback;
      return () => {};
    },
    yieldThen: (callback: () => void) => environment.scheduler.yieldThen(callback),
  };
  const session = new TextSession({
    sessionId: 'ses_1',
    runtime: createRuntime({ journal, environment: { ...environment, scheduler } }),
    hooks: { onError: () => {} },
    model: scriptedModel({
      scripts: [],
      otherwise: ({ results }) => {
        asked += 1;
        if (asked === 1) return { error: limited };
        return results.length > 0
          ? { text: 'It is noon.' }
          : { calls: [{ name: 'look_at_clock', input: {} }] };
      },
    }),
    agents: [
      {
        name: 'lead',
        instructions: 'Answer.',
        tools: [
          defineTool({
            name: 'look_at_clock',
            description: 'Tells the time',
            parameters: z.object({}),
            execute: () => 'noon',
          }),
        ],
      },
    ],
  });
  session.parts.subscribe(() => {});
  await session.start();
  const leave = session.attach();
  const { page, errors } = await opened({ journal, act: () => session });
  await session.sendText('What time is it?');
  const why = page.locator('#why');
  await why
    .filter({ hasText: 'model call failed (RATE_LIMITED): attempt 2 of 3 in 9.0 s' })
    .waitFor();
  const blocks = (lane: string) =>
    page.evaluate(
      (name) => (state.lanes.get(name) ?? []).map(({ kind, to }) => [kind, to !== null]),
      lane,
    );
  expect(await blocks('lead: model')).toEqual([['retried', false]]);
  await isClean(page);
  answer();
  await why.filter({ hasText: 'all is quiet' }).waitFor();
  expect(await blocks('lead: model')).toEqual([['retried', true]]);
  // A call that has been answered no longer counts as work.
  expect((await blocks('lead: tools')).map(([, isOver]) => isOver)).not.toContain(false);
  await page.getByRole('button', { name: 'Say as the user' }).waitFor();
  leave();
  await session.close();
  await page.getByRole('button', { name: 'Say as the user' }).waitFor({ state: 'detached' });
  expect(errors).toEqual([]);
  expect(problems).toEqual([]);
});

test('reports that a secret, a session or a process is missing', async () => {
  problems.length = 0;
  const journal = memoryJournal();
  const { page, url, close } = await opened({ journal });
  await page.getByText('Nothing has happened here yet').waitFor();
  await isClean(page);
  const session = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  await session.start();
  await page.getByRole('treeitem', { name: 'ses_1' }).waitFor();
  expect(await page.getByText('Nothing has happened here yet').isVisible()).toBe(false);
  // The latest entry is in view from the start, and the document contains only visible rows.
  const leave = session.attach();
  for (let said = 0; said < 12; said += 1) await session.sendText(`word ${said}`);
  await session.idle();
  leave();
  const late = await page.context().newPage();
  await late.goto(url);
  await late.locator('#entries [aria-selected="true"]').waitFor();
  expect(problems).toEqual([]);
  const other = await page.context().newPage();
  await other.goto(url.replace(/#token=.*/, '#token=wrong'));
  await other.getByText('The address lacks its secret: open the whole link').waitFor();
  expect(await other.getByRole('button').count()).toBe(0);
  await close();
  await page.getByText('Not connected: the process that has this page does not answer').waitFor();
  expect(await violationsIn(page)).toEqual([]);
  await session.close();
});

test('shows a receipt after each button: approve, refuse, message kinds, raise budget, cancel, dismiss', async () => {
  problems.length = 0;
  const journal = memoryJournal();
  const paid = Promise.withResolvers<void>();
  const session = rideSession({
    sessionId: 'ses_1',
    runtime: createRuntime({ journal }),
    budget: { tokens: 500_000 },
    subagents: Object.fromEntries(
      ['pay', 'pack', 'wait'].map((name) => [
        name,
        {
          script: turns(calls(['spend', {}, 'c1']), say('done')),
          config: {
            budget: { steps: 20, tokens: 90_000 },
            tools: {
              spend: simpleTool(() => paid.promise.then(() => 'paid'), {
                needsApproval: name !== 'wait',
              }),
            },
          },
        },
      ]),
    ),
  });
  await session.start();
  const leave = session.attach();
  const act = (id: string) => (id === 'ses_1' ? session : null);
  const { page, errors } = await opened({ journal, act, user: 'ann' });
  await page.getByRole('status').getByText('Connected: it may act').waitFor();
  const press = async (name: string, receipt: string | RegExp): Promise<void> => {
    await page.getByRole('button', { name, exact: true }).click();
    await page.getByRole('status').getByText(receipt).waitFor();
  };
  const isEvent = async (type: string, fields: object): Promise<void> => {
    await expect
      .poll(() => journal.read().map(({ event }) => event))
      .toContainEqual(expect.objectContaining({ type, by: 'ann', ...fields }));
  };
  await session.sendText('use pay and pack and wait');
  await expect.poll(() => session.store.getSnapshot().context.questions.length).toBe(2);
  const [pay, pack, wait] = ['pay', 'pack', 'wait'].map(
    (wanted) => session.subagents.list().find(({ name }) => name === wanted)?.id ?? '',
  );

  await choose(page, new RegExp(`^question ${pay}`));
  await press('Approve', '"accepted":true,"by":"ann"');
  await isEvent('answer.given', { requestId: `${pay}.q1`, approved: true });
  await choose(page, new RegExp(`^question ${pack}`));
  await press('Decline', '"accepted":true,"by":"ann"');
  await isEvent('answer.given', { requestId: `${pack}.q1`, approved: false });

  await choose(page, new RegExp(`pay ${pay}`));
  await page.locator('#usage', { hasText: 'Budget: 90,000 tokens, 20 steps' }).waitFor();
  const total = page.getByRole('spinbutton', { name: 'New total of the limit' });
  await page.getByRole('combobox', { name: 'Limit of its budget' }).selectOption('tokens');
  await total.fill('100000');
  await press('Raise budget', '"tokens":{"granted":100000');
  await isEvent('budget.raised', { limits: { tokens: 100_000 } });
  await page.locator('#usage', { hasText: 'Budget: 100,000 tokens, 20 steps' }).waitFor();
  await total.fill('5');
  await press('Raise budget', 'expected tokens of at least 100000');
  await total.fill('');
  await press('Raise budget', /Refused: INVALID_ARGUMENT|Not sent: Expected a frame/);
  await isClean(page);
  // The usage of the whole session includes the lead agent's tokens.
  await choose(page, 'ses_1');
  await page
    .locator('#usage', { hasText: /Lead agent: .* tokens; with all subagents .* tokens/ })
    .waitFor();
  await page.locator('#usage', { hasText: 'Budget: 500,000 tokens' }).waitFor();
  await total.fill('600000');
  await press('Raise budget', '"tokens":{"granted":600000');
  await isEvent('budget.raised', { limits: { tokens: 600_000 } });
  await page.locator('#usage', { hasText: 'Budget: 600,000 tokens' }).waitFor();
  await isClean(page);
  await choose(page, new RegExp(`pay ${pay}`));
  for (const mode of ['queue', 'steer', 'interrupt']) {
    await page.getByRole('textbox', { name: 'Words' }).fill(`Read this: ${mode}`);
    await page.getByRole('combobox', { name: 'When it is read' }).selectOption(mode);
    await press('Send message', /"ok":true,"messageId"/);
    await isEvent('subagent.message', { mode, text: `Read this: ${mode}` });
  }
  await choose(page, new RegExp(`wait ${wait}`));
  await press('Cancel subagent', 'Receipt: true');
  await isEvent('subagent.cancel', { reason: 'cancelled in the inspector' });
  await page.getByRole('treeitem', { name: new RegExp(`wait ${wait}.*cancelled`) }).waitFor();
  paid.resolve();

  leave();
  const deliveryId = session.notifyBackground('The shop closes soon');
  await choose(page, new RegExp(`^delivery ${deliveryId}`));
  await press('Dismiss', 'Receipt: done');
  await isEvent('delivery.dismissed', { deliveryId });
  await isClean(page);
  expect(errors).toEqual([]);
  expect(problems).toEqual([]);
  await session.close();
});

test("shows live charts of the app's machines and does not run code in their names", async () => {
  problems.length = 0;
  const hostile = '<img src=x onerror="throw new Error(1)">';
  const order = createMachine({
    id: 'order',
    initial: 'cart',
    states: {
      cart: { on: { pay: 'paying', [hostile]: hostile } },
      paying: {
        initial: 'asking',
        states: { asking: { on: { approved: 'charging' } }, charging: {} },
        on: { failed: 'cart', done: 'sent' },
      },
      sent: { type: 'final' },
      [hostile]: { on: { back: 'cart' } },
    },
  });
  for (const width of [1280, 375]) {
    const { page, errors, outside, inspect } = await opened({}, width);
    await page.getByRole('status').getByText('There is no session yet').waitFor();
    const actor = createActor(order, { id: hostile, inspect });
    actor.start();
    // Without a session, the page shows the first machine.
    await page.getByRole('treeitem', { name: /img src=x.* cart/ }).waitFor();
    const active = page.locator('svg .state[data-on] > text');
    await active.filter({ hasText: /^cart$/ }).waitFor();
    actor.send({ type: hostile });
    await active.filter({ hasText: hostile.slice(0, 39) }).waitFor();
    actor.send({ type: 'back' });
    actor.send({ type: 'pay' });
    await active.filter({ hasText: /^asking$/ }).waitFor();
    await page.locator('svg .event[data-last]', { hasText: /^pay$/ }).waitFor();
    await page.locator('#diff', { hasText: 'cart → paying' }).waitFor();
    await page
      .getByRole('img', { name: 'Statechart. Active: paying, asking', exact: true })
      .waitFor();
    await isClean(page);
    await page.locator('#machines').focus();
    await page.keyboard.press('Home');
    await page.locator('#subject', { hasText: hostile }).waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThan(width + 1);
    actor.send({ type: 'done' });
    await page.locator('#why', { hasText: 'done' }).waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect(errors).toEqual([]);
    expect(outside).toEqual([]);
    expect(problems).toEqual([]);
  }
});

test('shows 10,000 subagents and 100,000 entries in at most 2,000 nodes', async () => {
  problems.length = 0;
  const { page, errors } = await opened({ journal: await manyEntries(10_000, 10) });
  await page.locator('#of', { hasText: 'of 100' }).waitFor({ timeout: 90_000 });
  await page.waitForFunction(
    () => document.querySelector('#of')?.textContent === 'of 100001',
    null,
    {
      timeout: 90_000,
    },
  );
  const nodes = () => page.evaluate(() => document.querySelectorAll('*').length);
  expect(await nodes()).toBeLessThan(2_000);
  await page.locator('#tree').focus();
  await page.keyboard.press('End');
  await page.getByRole('treeitem', { name: /sub_10000/ }).waitFor();
  await page.getByRole('button', { name: 'First' }).click();
  await page
    .getByRole('option', { name: /session\.opened|session/ })
    .first()
    .waitFor();
  expect(await nodes()).toBeLessThan(2_000);
  const megabytes = await page.evaluate(
    () =>
      (performance as unknown as { memory: { usedJSHeapSize: number } }).memory.usedJSHeapSize /
      1e6,
  );
  expect(megabytes).toBeLessThan(300);
  expect(errors).toEqual([]);
  expect(problems).toEqual([]);
}, 240_000);

/** A journal with the entries of many subagents, all of which start with the same entries. */
async function manyEntries(subagents: number, each: number): Promise<Journal> {
  const journal = memoryJournal();
  const session = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  await session.start();
  const leave = session.attach();
  await session.sendText('use book_ride');
  await session.idle();
  const [question] = session.store.getSnapshot().context.questions;
  session.questionShown(question?.requestId ?? '');
  await session.answer(question?.requestId ?? '', { text: 'premium' });
  await session.idle();
  leave();
  await session.close();
  const lived = journal.read({ scope: 'ses_1' });
  const [first] = lived;
  const life = lived.filter(({ unit }) => unit.startsWith('sub_')).slice(0, each);
  const id = life[0]?.unit ?? '';
  const text = JSON.stringify(life);
  const entries = Array.from({ length: subagents }, (_, index) => {
    const renamed = text.replaceAll(id, `sub_${index + 1}`);
    return (JSON.parse(renamed) as JournalEntry[]).map((entry) => ({
      ...entry,
      at: entry.at + index * 50,
    }));
  }).flat();
  const all = [...(first ? [first] : []), ...entries];
  return {
    append() {},
    read: () => all,
    scopes: () => [
      {
        scope: 'ses_1',
        entries: all.length,
        firstAt: all[0]?.at ?? 0,
        lastAt: all.at(-1)?.at ?? 0,
      },
    ],
  };
}
