// The pages of examples/web-pages in Chromium, served by the example program: a question on one page is answered on
// another.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { launch } from './support/stage.ts';

const program = fileURLToPath(new URL('../../examples/web-pages/server.ts', import.meta.url));

/** The pages of the program, started as from a terminal. */
async function pages() {
  const server = spawn(process.execPath, ['--conditions=offstage-source', program], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const browser = await launch();
  onTestFinished(async () => {
    await browser.close();
    server.kill();
    await once(server, 'exit');
  });
  const addresses: string[] = [];
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.startsWith('http:')) addresses.push(line);
    if (addresses.length === 3) break;
  }
  const problems: string[] = [];
  const open = async (name: string) => {
    const page = await browser.newPage();
    page.on('pageerror', (error) => problems.push(error.message));
    await page.goto(addresses.find((address) => address.includes(name)) ?? '');
    return page;
  };
  return { open, problems };
}

test('requests a ride in useChat, selects it in React and shows it in both', async () => {
  const { open, problems } = await pages();
  const [react, chat] = [await open('react'), await open('use-chat')];
  await chat.getByRole('button', { name: 'Send' }).click();
  await chat.getByRole('button', { name: 'Economy' }).waitFor();
  await react.getByRole('button', { name: 'Premium' }).click();
  await react.getByRole('log').getByText('News: Your ride is booked:').waitFor();
  await chat.getByText('News: Your ride is booked:').waitFor();
  await chat.getByText('Which ride? Premium').waitFor();
  await chat
    .getByText('book_ride: completed')
    .or(chat.getByText('ride_booker: completed'))
    .waitFor();
  expect(await chat.getByRole('button', { name: 'Economy' }).count()).toBe(0);
  expect(problems).toEqual([]);
});

test("lets a page's machine invoke a subagent, answer its question and cancel another subagent", async () => {
  const { open, problems } = await pages();
  const page = await open('actors');
  const order = page.getByRole('button', { name: 'Order it' });
  await order.click();
  await page.getByText('The reporter is waiting for input.').waitFor();
  await page.getByRole('button', { name: 'Give up' }).click();
  await page.getByText('Which period?').waitFor({ state: 'detached' });
  await order.click();
  await page.getByRole('group', { name: 'Which period?' }).waitFor();
  await page.getByRole('button', { name: 'The last quarter' }).click();
  await page.getByRole('log').getByText('Sales are up by 4 %').waitFor();
  expect(await page.getByRole('log').textContent()).toContain('quarter');
  expect(problems).toEqual([]);
});
