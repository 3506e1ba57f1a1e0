// The pages of examples/web-pages in Chromium, from the program that serves them: what one asks the other answers.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { launch } from './support/stage.ts';

const program = fileURLToPath(new URL('../../examples/web-pages/server.ts', import.meta.url));

test('a ride is asked for in useChat, chosen in React, and both tell of it', async () => {
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
    if (addresses.length === 2) break;
  }
  const problems: string[] = [];
  const open = async (name: string) => {
    const page = await browser.newPage();
    page.on('pageerror', (error) => problems.push(error.message));
    await page.goto(addresses.find((address) => address.includes(name)) ?? '');
    return page;
  };
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
