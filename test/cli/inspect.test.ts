// `offstage inspect`: the page of a journal, for those who have its address.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { inspectFor } from '../../src/cli/inspect/inspect.ts';
import { exportRecording } from '../../src/entries/replay.ts';
import { createRuntime, memoryJournal } from '../../src/index.ts';
import { rideSession } from '../serve/support/served.ts';

async function recording(): Promise<string> {
  const journal = memoryJournal();
  const session = rideSession({ sessionId: 'ses_1', runtime: createRuntime({ journal }) });
  await session.start();
  await session.close();
  const folder = mkdtempSync(join(tmpdir(), 'offstage-inspect-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'ses_1.jsonl');
  writeFileSync(path, await exportRecording(journal, 'ses_1'));
  return path;
}

test('serves the sessions of a recording to those who have the address, until it is ended', async () => {
  const path = await recording();
  let printed = '';
  const ended = Promise.withResolvers<void>();
  const print = (text: string): void => void (printed += text);
  const running = inspectFor(() => ended.promise).run(['--journal', path], print);
  await expect.poll(() => printed).toContain('Open http://127.0.0.1:');
  const url = new URL(printed.slice('Open '.length).trim());
  const token = new URLSearchParams(url.hash.slice(1)).get('token') ?? '';
  const ask = (given: string) =>
    fetch(`${url.origin}/inspect/api/sessions`, { headers: { authorization: `Bearer ${given}` } });
  expect((await fetch(`${url.origin}/inspect`)).status).toBe(200);
  expect((await ask('wrong')).status).toBe(401);
  expect(await (await ask(token)).json()).toMatchObject([{ scope: 'ses_1' }]);
  ended.resolve();
  expect(await running).toBe(0);
  await expect(ask(token)).rejects.toThrow();
});

test.each([
  [[], 'Expected --journal with a file'],
  [['--journal', 'nowhere.db'], 'there is no such file'],
  [['--journal', 'x', '--port', '70000'], 'Expected --port to be a number up to 65535'],
  [['--jornal', 'x'], "Unknown option '--jornal'"],
])('a wrong call is told: %j', async (args, message) => {
  let printed = '';
  const never = () => Promise.reject(new Error('served'));
  const status = await inspectFor(never).run(args, (text) => void (printed += text));
  expect(status).toBe(2);
  expect(printed).toContain(message);
});
