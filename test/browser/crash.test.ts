// A button on the demo's page kills the server while a question is open, and a restarted server resumes the session.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { launch } from './support/stage.ts';
import { Tab } from './support/tab.ts';

const main = fileURLToPath(new URL('../../examples/voice-demo/main.ts', import.meta.url));

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** Starts the program, and resolves with the link that it prints. */
async function start(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'offstage-demo-'));
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], PORT: '0', KEPT: folder };
  const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    child.kill('SIGTERM');
    await once(child, 'close');
    rmSync(folder, { recursive: true });
  });
  let said = '';
  for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    said += String(text);
    const [link] = /http:\S+#\S+(?=\n)/.exec(said) ?? [];
    if (link !== undefined) {
      child.stdout.resume();
      return link;
    }
  }
  throw new Error(`Expected a link in: ${said}`);
}

test('restores the session and its open question after the server is killed', async () => {
  const link = await start();
  const page = await browser.newPage();
  onTestFinished(() => page.close());
  const tab = await Tab.open(page, link, {});
  await tab.button('Type instead').click();
  await tab.type('book me a ride to the airport');
  const card = tab.question('Which ride to the airport');
  await card.getByText('say it or press it').waitFor();
  await tab.button('Kill the server').click();
  // The second process sends the second welcome.
  await expect.poll(() => tab.received('welcome').length, { timeout: 60_000 }).toBe(2);
  await card.getByText('say it or press it').waitFor();
  await card.getByRole('button', { name: 'Premium' }).click();
  await tab.caption('Your Premium ride to the airport is booked.').waitFor({ timeout: 60_000 });
});
