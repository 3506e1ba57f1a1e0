// The inspector's page in Chromium (`CHROMIUM_PATH`), with a session of n entries and n / 10 working subagents: the
// time to open it, to jump near the end and to search, and the frame times while its lists scroll. The floor is a page
// that only fetches the same entries, and whose frames draw nothing.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium, type Page } from 'playwright-core';
import { createRuntime, memoryJournal, type Journal } from '../../src/index.ts';
import type { JournalEntry } from '../../src/entries/journal.ts';
import { nodeEnvironment } from '../../src/adapters/node/index.ts';
import { inspector } from '../../src/inspector/index.ts';
import { askingModel, openDesk } from '../lib/desk.ts';
import type { Measurement, Numbers } from '../lib/measurement.ts';

const SESSION = 'ses_desk';
const TOKEN = 'a token of the bench';
const EACH = 10;
const FRAMES = 180;

/** Creates a session, and repeats the beginning of the life of one of its subagents under other ids. */
async function entriesOf(n: number): Promise<readonly JournalEntry[]> {
  const journal = memoryJournal({ keep: Infinity });
  const runtime = createRuntime({ environment: nodeEnvironment(), journal });
  const desk = await openDesk(
    runtime,
    askingModel(() => {}),
    1,
    SESSION,
  );
  await desk.start(1);
  const lived = journal.read({ scope: SESSION });
  const [question] = desk.session.store.getSnapshot().context.questions;
  const { requestId = '', subagentId = '' } = question ?? {};
  desk.session.questionShown(requestId);
  await desk.session.answer(requestId, { optionId: 'first' });
  await desk.session.idle();
  const life = journal.read({ scope: SESSION }).filter(({ unit }) => unit === subagentId);
  await desk.session.close();
  const text = JSON.stringify(life.slice(0, EACH));
  const more = Array.from({ length: Math.ceil(n / EACH) }, (_, index) =>
    (JSON.parse(text.replaceAll(subagentId, `sub_again_${index}`)) as JournalEntry[]).map(
      (entry) => ({ ...entry, at: entry.at + index * 50 }),
    ),
  );
  return [...lived, ...more.flat()].slice(0, n);
}

/** Opens the page of a session of n entries, and passes it to `measured`. */
async function inPage(
  n: number,
  measured: (page: Page, address: string, count: number) => Promise<Numbers>,
): Promise<Numbers> {
  const entries = await entriesOf(n);
  const summary = { scope: SESSION, entries: entries.length, firstAt: 0, lastAt: 0 };
  const journal: Journal = { append() {}, read: () => entries, scopes: () => [summary] };
  const { handle } = inspector({ journal, token: TOKEN, redact: false });
  const server = createServer((request, response) => handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const browser = await chromium.launch({
    executablePath: process.env['CHROMIUM_PATH'] ?? 'chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  });
  try {
    const page = await browser.newPage({
      viewport: { width: 1280, height: 800 },
      bypassCSP: true,
    });
    page.setDefaultTimeout(200_000);
    return await measured(page, `http://127.0.0.1:${port}/inspect`, entries.length);
  } finally {
    await browser.close();
    server.closeAllConnections();
    server.close();
  }
}

/**
 * Returns the median and the 99th percentile of the time between two frames while `scrolled` scrolls from end to end.
 */
const framesOf = (page: Page, scrolled: string | null): Promise<{ p50: number; p99: number }> =>
  page.evaluate(`(async () => {
    const box = ${scrolled === null ? 'null' : `document.querySelector('${scrolled}')`};
    const next = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const gaps = [];
    let last = await next();
    for (let frame = 0; frame < ${FRAMES}; frame += 1) {
      if (box) box.scrollTop = (box.scrollHeight * frame) / ${FRAMES};
      const now = await next();
      gaps.push(now - last);
      last = now;
    }
    gaps.sort((one, other) => one - other);
    const at = (part) => gaps[Math.floor(gaps.length * part)];
    return { p50: at(0.5), p99: at(0.99) };
  })()`);

/** Returns the milliseconds from an input of the user until `shown` has changed. */
const timed = (page: Page, input: string, event: string, value: string, shown: string) =>
  page.evaluate<number>(`(async () => {
    const input = document.querySelector('${input}');
    const changed = new Promise((resolve) =>
      new MutationObserver(resolve).observe(document.querySelector('${shown}'), { childList: true, subtree: true }));
    const from = performance.now();
    input.value = ${value};
    input.dispatchEvent(new Event('${event}'));
    await changed;
    return performance.now() - from;
  })()`);

function offstage(n: number): Promise<Numbers> {
  return inPage(n, async (page, address, count) => {
    const began = performance.now();
    await page.goto(`${address}#token=${encodeURIComponent(TOKEN)}`);
    await page.waitForFunction(`document.querySelector('#of')?.textContent !== ''`);
    const firstMs = performance.now() - began;
    await page.waitForFunction(`document.querySelector('#of').textContent === 'of ${count}'`);
    const openMs = performance.now() - began;
    const jumpMs = await timed(page, '#entry', 'change', 'String(Number(input.max) - 1)', '#event');
    const findMs = await timed(page, '#find', 'input', "'spawned'", '#found');
    await page.locator('#find').fill('');
    const entries = await framesOf(page, '#entries');
    const tree = await framesOf(page, '#tree');
    const lanes = await framesOf(page, '#axis-scroll');
    return {
      firstMs,
      openMs,
      jumpMs,
      findMs,
      frame: Math.max(entries.p50, tree.p50, lanes.p50),
      entriesFrame: entries.p99,
      treeFrame: tree.p99,
      lanesFrame: lanes.p99,
    };
  });
}

function floor(n: number): Promise<Numbers> {
  return inPage(n, async (page, address, count) => {
    // Loads only the document: without a token its script waits.
    await page.goto(address);
    const openMs = await page.evaluate<number>(`(async () => {
      const from = performance.now();
      for (let has = 0; has < ${count}; ) {
        const answer = await fetch('${address}/api/entries?session=${SESSION}&after=' + has, {
          headers: { authorization: 'Bearer ${TOKEN}' },
        });
        has += (await answer.json()).entries.length;
      }
      return performance.now() - from;
    })()`);
    const { p50, p99 } = await framesOf(page, null);
    return {
      openMs,
      frame: p50,
      entriesFrame: p99,
      treeFrame: p99,
      lanesFrame: p99,
    };
  });
}

export const inspectorPage: Measurement = {
  contenders: { offstage, floor },
  sizes: [10_000, 100_000],
  repetitions: 3,
  lines: [
    { figure: 'page_first', unit: 'ms', number: 'firstMs', floor: null, goal: null },
    { figure: 'page_open', unit: 'ms', number: 'openMs', floor: 'floor', goal: null },
    { figure: 'page_jump', unit: 'ms', number: 'jumpMs', floor: null, goal: null },
    { figure: 'page_find', unit: 'ms', number: 'findMs', floor: null, goal: null },
    { figure: 'page_frame', unit: 'ms', number: 'frame', floor: 'floor', goal: { ratio: 1.2 } },
    { figure: 'page_entries_p99', unit: 'ms', number: 'entriesFrame', floor: 'floor', goal: null },
    { figure: 'page_tree_p99', unit: 'ms', number: 'treeFrame', floor: 'floor', goal: null },
    { figure: 'page_lanes_p99', unit: 'ms', number: 'lanesFrame', floor: 'floor', goal: null },
  ],
};
