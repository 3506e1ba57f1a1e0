// `offstage inspect`: the page of a journal, for visitors who have its URL.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { inspectFor, severalJournals } from '../../src/cli/inspect/inspect.ts';
import { exportRecording, forkSession } from '../../src/entries/replay.ts';
import { messageOf } from '../../src/values/errors.ts';
import { createRuntime, memoryJournal } from '../../src/index.ts';
import { rideSession } from '../serve/support/served.ts';

async function recording(sessionId = 'ses_1', entries = Infinity): Promise<string> {
  const journal = memoryJournal();
  const session = rideSession({ sessionId, runtime: createRuntime({ journal }) });
  await session.start();
  await session.close();
  const folder = mkdtempSync(join(tmpdir(), 'offstage-inspect-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'ses_1.jsonl');
  const into = memoryJournal();
  const after = Math.min(entries, journal.read().length);
  await forkSession(journal, { from: sessionId, after, to: sessionId, into });
  writeFileSync(path, await exportRecording(into, sessionId));
  return path;
}

test("serves a recording's sessions to any client with the URL until the program is stopped", async () => {
  const path = await recording();
  let printed = '';
  const ended = Promise.withResolvers<void>();
  const print = (text: string): void => void (printed += text);
  const running = inspectFor(() => ended.promise).run(['--journal', path], print, print);
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

test('SEVERAL-JOURNALS-1: lists the sessions of several journals, even if their ids are the same', async () => {
  const [first, second] = [await recording('ses_1'), await recording('ses_2')];
  const copy = await recording('ses_1', 2);
  let printed = '';
  const ended = Promise.withResolvers<void>();
  const nothing = (): never => expect.fail('complained');
  const journals = [first, second, copy].flatMap((path) => ['--journal', path]);
  const running = inspectFor(() => ended.promise).run(
    [...journals, '--json'],
    (text) => void (printed += text),
    nothing,
  );
  await expect.poll(() => printed).toContain('}');
  const { url } = JSON.parse(printed) as { url: string };
  const { origin, hash } = new URL(url);
  const token = new URLSearchParams(hash.slice(1)).get('token') ?? '';
  const ask = async (path: string): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${origin}/inspect/api/${path}`, { headers })).json();
  };
  const third = `ses_1 (${copy})`;
  expect(await ask('sessions')).toMatchObject([
    { scope: 'ses_1' },
    { scope: 'ses_2' },
    { scope: third, entries: 2 },
  ]);
  const entriesOf = (scope: string) => ask(`entries?session=${encodeURIComponent(scope)}&after=0`);
  expect(await entriesOf(third)).toMatchObject({ kept: 2 });
  const { kept } = (await entriesOf('ses_1')) as { kept: number };
  expect(kept).toBeGreaterThan(2);
  expect(await entriesOf('ses_9')).toMatchObject({ error: {} });
  ended.resolve();
  expect(await running).toBe(0);
});

test('SEVERAL-JOURNALS-2: reports a journal that fails later and still lists the other journals', async () => {
  const complained: string[] = [];
  const summary = { scope: 'ses_1', entries: 1, firstAt: 0, lastAt: 0 };
  const source = (name: string, scopes: () => readonly (typeof summary)[]) => ({
    name,
    recording: null,
    journal: { scopes, append() {}, read: () => [] },
    close() {},
  });
  const lost = (): never => {
    throw new Error('gone');
  };
  const all = severalJournals([source('a', lost), source('b', () => [summary])], (error, name) =>
    complained.push(`${name}: ${messageOf(error)}`),
  );
  expect(await all.scopes()).toEqual([summary]);
  expect(complained).toEqual(['a: gone']);
  expect(() => all.append({} as never)).toThrow('only looked at');
});

test.each([
  [[], 'Expected --journal with a file'],
  [['--journal', 'nowhere.db'], 'there is no such file'],
  [['--journal', 'x', '--port', '70000'], 'Expected --port to be a number up to 65535'],
  [['--jornal', 'x'], "Unknown option '--jornal'"],
])('refuses the invalid call %j', async (args, message) => {
  let printed = '';
  const never = () => Promise.reject(new Error('served'));
  const complain = (text: string): void => void (printed += text);
  const nothing = (): never => expect.fail('printed a result');
  const status = await inspectFor(never).run(args, nothing, complain);
  expect(status).toBe(2);
  expect(printed).toContain(message);
});
