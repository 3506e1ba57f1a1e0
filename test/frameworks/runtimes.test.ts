// Tests the server and the journal on runtimes other than Node.js: a client answers a question after a restart.

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { testClient } from '../serve/support/served.ts';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const PROGRAM = here('ride-server.ts');

const runtimes: Readonly<Record<string, readonly [command: string, ...flags: string[]]>> = {
  node: [process.execPath],
  bun: [here('node_modules/.bin/bun')],
  deno: [here('node_modules/.bin/deno'), 'run', '--allow-all', '--quiet'],
};

async function begun(runtime: string, folder: string) {
  const [command = '', ...flags] = runtimes[runtime] ?? [];
  const program: ChildProcess = spawn(command, [...flags, PROGRAM, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = once(program, 'close');
  const kill = async (): Promise<void> => {
    program.kill('SIGKILL');
    await gone;
  };
  onTestFinished(kill);
  let printed = '';
  for await (const text of program.stdout!.setEncoding('utf8')) {
    printed += String(text);
    if (printed.includes('\n')) break;
  }
  const [page = '', token = ''] = printed.trim().split('#');
  return { kill, link: { url: new URL('/offstage', page).href, token } };
}

describe.each(Object.keys(runtimes))('%s', (runtime) => {
  test.each(['websocket', 'stream'] as const)(
    'continues a session over a %s after the server process is killed',
    async (transport) => {
      const folder = mkdtempSync(join(tmpdir(), 'offstage-test-runtimes-'));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      const first = await begun(runtime, folder);
      const before = testClient({ ...first.link, transport });
      await before.it.send('use book_ride');
      const { requestId } = await before.question();
      await first.kill();

      const after = testClient({ ...(await begun(runtime, folder)).link, transport });
      expect((await after.question()).requestId).toBe(requestId);
      const receipt = await after.it.answer(requestId, { optionId: 'premium' });
      expect(receipt).toEqual({ accepted: true, by: 'user' });
      const { transcript } = await after.until((now) =>
        now.transcript.some(({ text, final }) => final && text.includes('premium ride is booked')),
      );
      expect(transcript.filter(({ text }) => text.includes('is booked'))).toHaveLength(1);
      expect(after.it.status.get().transport).toBe(transport);
    },
  );
});
