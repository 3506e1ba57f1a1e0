// Third-party texts on the inspector's page: none runs as code, and none hides or moves other content.

import type { Browser, Page } from 'playwright-core';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createActor, createMachine } from 'xstate';
import type { JournalEntry } from '../../src/entries/journal.ts';
import { createRuntime, memoryJournal } from '../../src/index.ts';
import { mounted, TOKEN } from '../inspector/support.ts';
import { rideSession } from '../serve/support/served.ts';
import { calls, say, simpleTool, steps } from '../support/subagent-runs.ts';
import { launch } from './support/stage.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const markup = [
  '<img src=x onerror="window.__ran=1">',
  '"><svg onload="window.__ran=1">',
  '<script>window.__ran=1</script>',
  '</pre></li></script><iframe srcdoc="<script>parent.__ran=1</script>">',
  'javascript:window.__ran=1',
].join(' ');
const RTL = '\u202Egnp.exe\u2066';
const hostile = `${markup} ${RTL} \uD800 ${'x'.repeat(1_000_000)}`;
/** A user's message has a lower limit. */
const said = hostile.slice(0, 100_000);
/** A name has a lower limit and contains no lone surrogates. */
const named = `${markup} ${RTL}`.slice(0, 200);
const inputTo = (to: string): object =>
  JSON.parse(`{"__proto__":{"a":1},"constructor":"x","to":${JSON.stringify(to)}}`) as object;
const input = inputTo(hostile);

async function opened(url: string, width: number) {
  const context = await browser.newContext({ viewport: { width, height: 800 } });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  page.on('dialog', (dialog) => problems.push(dialog.message()));
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', ({ violatedDirective }) =>
      console.error(`policy: ${violatedDirective}`),
    );
  });
  await page.goto(url);
  return { page, problems };
}

/** What a text does to the page: nothing, if it is only text. */
const madeIn = (page: Page): Promise<unknown> =>
  page.evaluate(() => ({
    ran: '__ran' in window,
    made: document.querySelectorAll('img, iframe, script:not([src]), [onload], [onerror], main a')
      .length,
    isWide: document.documentElement.scrollWidth > innerWidth,
    // A direction mark would reverse the text next to it.
    turns: /[\u202a-\u202e\u2066-\u2069]/.test(document.body.textContent ?? ''),
    polluted: Object.keys(Object.prototype).length + ('a' in {} ? 1 : 0),
  }));
const nothing = { ran: false, made: 0, isWide: false, turns: false, polluted: 0 };

test('shows hostile names, messages, questions, inputs, results, ids and event types as plain text', async () => {
  const journal = memoryJournal({ keep: Infinity });
  const sessionId = named;
  const options = [{ id: 'one', label: markup, description: hostile }];
  const session = rideSession({
    sessionId,
    runtime: createRuntime({ journal }),
    subagents: {
      pay: {
        script: steps(calls(['pay', { constructor: 'x', to: named }]), say(hostile)),
        config: { tools: { pay: simpleTool(() => input, { needsApproval: true }) } },
      },
      ask: {
        script: steps(
          calls(['ask_user', { question: hostile.slice(0, 900), options }]),
          say(hostile),
        ),
        config: { interactive: true },
      },
      tell: {
        script: steps(calls(['look', input]), say(hostile)),
        config: { tools: { look: simpleTool(() => input) } },
      },
    },
  });
  await session.start();
  const leave = session.attach();
  await session.sendText(said, { by: named.slice(0, 100) });
  await session.sendText('use pay and ask and tell');
  await expect
    .poll(() =>
      session.store
        .getSnapshot()
        .context.questions.map(({ kind }) => kind)
        .toSorted(),
    )
    .toEqual(['approval', 'question']);
  session.notifyBackground(said);
  await session.idle();

  // The same entries, as in a third-party file.
  const lived = journal.read();
  const at = lived.at(-1)?.at ?? 0;
  const strange = [hostile, '__proto__', 'constructor'].map((name, index): JournalEntry => ({
    scope: sessionId,
    unit: `${sessionId}/${name}`,
    seq: 1,
    at: at + index,
    actor: name,
    definitionVersion: 1,
    event: JSON.parse(JSON.stringify({ type: name, ...input })) as JournalEntry['event'],
  }));
  const entries = [...lived, ...strange];
  const machine = createMachine({
    id: named,
    initial: markup,
    states: { [markup]: { on: { [named]: '__proto__' } }, ['__proto__']: {}, constructor: {} },
  });
  for (const width of [1280, 375]) {
    const {
      url,
      errors,
      page: mountedPage,
    } = await mounted({
      journal: {
        append() {},
        read: () => entries,
        scopes: () => [{ scope: sessionId, entries: entries.length, firstAt: 0, lastAt: at }],
      },
      act: () => session,
      redact: false,
    });
    createActor(machine, { id: named, inspect: mountedPage.inspect }).start();
    const { page, problems } = await opened(url, width);
    await page.getByRole('status').getByText('Connected: it may act').waitFor();
    await page.locator('#machines').getByRole('treeitem').first().waitFor();
    // Each row at the latest entry; the keyboard reaches the rows that are out of view.
    await page.locator('#tree').focus();
    await page.keyboard.press('Home');
    const subjects = new Set<string>();
    for (let step = 0; step < 40; step += 1) {
      const subject = (await page.locator('#subject').textContent()) ?? '';
      if (subjects.has(subject)) break;
      subjects.add(subject);
      await page.waitForFunction(() => document.querySelector('#event')?.textContent !== '');
      expect([subject, await madeIn(page)]).toEqual([subject, nothing]);
      await page.keyboard.press('ArrowDown');
    }
    expect(subjects.size).toBeGreaterThan(10);
    // Each entry.
    await page.locator('#entries').focus();
    await page.keyboard.press('Home');
    const seen: string[] = [];
    for (let n = 1; n <= entries.length; n += 1) {
      const [of, event] = await page.locator('#of, #event').allTextContents();
      seen.push(`${of} ${event}`);
      if (n % 10 === 0 || n > entries.length - 4)
        expect([n, await madeIn(page)]).toEqual([n, nothing]);
      await page.keyboard.press('ArrowDown');
    }
    await page.locator('#event', { hasText: '__proto__' }).waitFor();
    const texts = seen.join('\n');
    expect(texts).toContain('<img src=x onerror=');
    expect(texts).toContain('\\u202egnp.exe');
    // One of the app's machines.
    await page.locator('#machines').focus();
    await page.keyboard.press('Home');
    await page.locator('#subject', { hasText: '<img src=x' }).waitFor();
    expect(await madeIn(page)).toEqual(nothing);
    // A receipt that contains third-party text.
    await page.locator('#tree').focus();
    await page.keyboard.press('Home');
    await page.getByRole('button', { name: 'Latest' }).click();
    await page.getByRole('textbox', { name: 'Words', exact: true }).fill(`${markup} ${RTL}`);
    await page.getByRole('button', { name: 'Say as the user' }).click();
    await page.getByRole('status').getByText('Receipt: done').waitFor();
    expect(await madeIn(page)).toEqual(nothing);
    expect(problems).toEqual([]);
    expect(errors).toEqual([]);
  }
  leave();
  await session.close();
}, 120_000);

test('INSPECTOR-1: prevents a page from another origin from reading or controlling an open inspector', async () => {
  const journal = memoryJournal();
  const session = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  await session.start();
  const { url, port } = await mounted({ journal, act: () => session, forks: true });
  const server = createServer((_request, response) =>
    response.end('<!doctype html><iframe name="sink"></iframe>'),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  const mine = await context.newPage();
  await mine.goto(url);
  await mine.getByRole('status').getByText('Connected: it may act').waitFor();
  const page = await context.newPage();
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const before = JSON.stringify(journal.read());
  const got = await page.evaluate(
    async ({ base, token }) => {
      const frame = { type: 'send', id: 1, text: 'from a stranger' };
      const body = JSON.stringify({ session: 'ses_1', frame });
      const results: string[] = [];
      const attempt = async (name: string, init: RequestInit, path = 'act'): Promise<void> => {
        const told = await fetch(`${base}/api/${path}`, init).then(
          async (answer) => `${answer.type} ${await answer.text()}`,
          () => 'refused',
        );
        results.push(`${name}: ${told}`);
      };
      const json = { 'content-type': 'application/json' };
      await attempt('simple', { method: 'POST', mode: 'no-cors', body });
      await attempt('with JSON', { method: 'POST', headers: json, body });
      await attempt('with the token', {
        method: 'POST',
        headers: { ...json, authorization: `Bearer ${token}` },
        body,
      });
      await attempt('a look', {}, 'entries?session=ses_1');
      const form = document.createElement('form');
      Object.assign(form, { method: 'post', enctype: 'text/plain', target: 'sink' });
      form.action = `${base}/api/act`;
      const field = document.createElement('input');
      [field.name, field.value] = ['{"session":"ses_1","x":"', '"}'];
      form.append(field);
      document.body.append(form);
      form.submit();
      // A frame around the page could intercept clicks.
      const iframe = document.createElement('iframe');
      iframe.src = base;
      const loaded = new Promise((done) => iframe.addEventListener('load', done));
      document.body.append(iframe);
      await loaded;
      results.push(`framed: ${iframe.contentDocument?.title ?? 'out of reach'}`);
      return results;
    },
    { base: `http://127.0.0.1:${port}/inspect`, token: TOKEN },
  );
  expect(got).toEqual([
    'simple: refused',
    'with JSON: refused',
    'with the token: refused',
    'a look: refused',
    'framed: out of reach',
  ]);
  const framed = page.frames().find((frame) => frame.url().includes('/inspect'));
  expect((await framed?.content().catch(() => '')) ?? '').not.toContain('Offstage inspector');
  expect(JSON.stringify(journal.read())).toBe(before);
  await session.close();
});
