// An approval that one process sends by e-mail is given through the link in another process, and the work continues
// there.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { postOffice } from './support/post-office.ts';

const PROGRAM = fileURLToPath(new URL('support/answered-program.ts', import.meta.url));

function run(...args: readonly string[]) {
  const child = spawn(process.execPath, ['--conditions=offstage-source', PROGRAM, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let text = '';
  const waiting = new Set<() => void>();
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
    for (const look of waiting) look();
  });
  return {
    ended: once(child, 'close'),
    /** Resolves with the first match in the output of the program. */
    wrote: (pattern: RegExp): Promise<RegExpExecArray> =>
      new Promise((resolve) => {
        const look = (): void => {
          const match = pattern.exec(text);
          if (match) resolve(match);
        };
        waiting.add(look);
        look();
      }),
    text: () => text,
  };
}

test('gives an approval from the link of an e-mail in another process, where the work continues', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'answered-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const office = await postOffice();
  onTestFinished(() => office.close());
  const asks = run(folder, String(office.port), 'asks');
  await asks.ended;
  expect(asks.text()).toBe('asked\n');
  expect(office.mails).toHaveLength(1);
  const { text = '' } = office.mails[0] ?? {};
  expect(text).toContain('The exact call: pay');
  const link = new URL(/^Answer: (https:\S+)$/m.exec(text)?.[1] ?? '');
  expect(link.origin + link.pathname).toBe('https://app.example.com/answer');

  const serves = run(folder, String(office.port), 'serves');
  const [, port] = await serves.wrote(/port (\d+)/);
  const request = (init: RequestInit & { readonly user?: string }) =>
    fetch(`http://127.0.0.1:${port}${link.pathname}${init.method === 'POST' ? '' : link.search}`, {
      ...init,
      headers: {
        origin: link.origin,
        ...(init.user !== undefined && { cookie: `user=${init.user}` }),
      },
    });
  // A scanner, a person to whom the message was forwarded, and the person.
  expect((await request({})).status).toBe(401);
  expect((await request({ method: 'HEAD', user: 'ada' })).status).toBe(200);
  expect((await request({ user: 'ben' })).status).toBe(403);
  const page = await request({ user: 'ada' });
  expect(await page.text()).toContain('&quot;amount&quot;: 5');
  const body = new URLSearchParams({ t: link.searchParams.get('t') ?? '', approved: 'yes' });
  expect((await request({ method: 'POST', body, user: 'ben' })).status).toBe(403);
  expect(serves.text()).not.toContain('paid');
  const [first, second] = await Promise.all([
    request({ method: 'POST', body, user: 'ada' }),
    request({ method: 'POST', body, user: 'ada' }),
  ]);
  expect(new Set([first.status, second.status])).toEqual(new Set([200, 409]));
  await serves.wrote(/ended completed/);
  expect(serves.text().match(/paid 5/g)).toHaveLength(1);
  const after = await request({ user: 'ada' });
  expect([after.status, await after.text()]).toEqual([
    409,
    expect.stringMatching(/Answered by ada\..*Answered on \d{4}-\d\d-\d\d \d\d:\d\d UTC/s),
  ]);
});
