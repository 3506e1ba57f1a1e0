// A session in a Durable Object, in workerd: SESSION-HOST-1, SESSION-HOST-2, DURABLE-JOURNAL-1 to DURABLE-JOURNAL-3.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { rideModel } from './support/ride-model.ts';
import { bundle, start } from './support/workerd.js';

const folder = mkdtempSync(join(tmpdir(), 'offstage-cloudflare-'));
const [chats, suite] = [join(folder, 'chats.mjs'), join(folder, 'suite.mjs')];
let model: Awaited<ReturnType<typeof rideModel>>;
let running: Awaited<ReturnType<typeof start>> | null = null;

beforeAll(async () => {
  model = await rideModel();
  await Promise.all([bundle('session-worker.js', chats), bundle('conformance-worker.js', suite)]);
});

afterEach(async () => {
  model.hold(false);
  await running?.kill();
  running = null;
});

afterAll(() => {
  model.close();
  rmSync(folder, { recursive: true, force: true });
});

async function run(worker = chats, inputTimeoutMs = 600_000): Promise<string> {
  const env = { MODEL_URL: model.url, INPUT_TIMEOUT_MS: String(inputTimeoutMs) };
  running = await start(worker, join(folder, 'objects'), env);
  return running.url;
}

/** Everything is killed, and started again on what it has kept. */
async function restart(inputTimeoutMs?: number): Promise<string> {
  await running?.kill();
  return run(chats, inputTimeoutMs);
}

interface Chat {
  readonly open: readonly string[];
  readonly said: readonly string[];
}
interface Look {
  readonly bornAt: number;
  readonly isAwake: boolean;
  readonly alarm: number | null;
  readonly entries: number;
  readonly errors: readonly string[];
  readonly plain: number;
}

async function ask<T>(url: string, id: string, body?: object): Promise<T> {
  const response = await fetch(new URL(id, url), {
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as T;
}

const look = async (url: string, id: string): Promise<Look> => ask(url, `${id}?look`);

/** Asks until it is so, as often as it can. */
async function until<T>(read: () => Promise<T> | T, isSo: (found: T) => boolean): Promise<T> {
  for (;;) {
    const found = await read();
    if (isSo(found)) return found;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function asked(url: string, id: string): Promise<string> {
  const { open } = await until(
    () => ask<Chat>(url, id),
    (chat) => chat.open.length > 0,
  );
  return open[0] ?? '';
}

const isAsleep = (url: string, id: string): Promise<Look> =>
  until(
    () => look(url, id),
    (found) => !found.isAwake,
  );

const isTold = (url: string, id: string, text: string): Promise<Chat> =>
  until(
    () => ask<Chat>(url, id),
    ({ said }) => said.includes(text),
  );

test('DURABLE-JOURNAL-1 DURABLE-JOURNAL-2: the suite for journals, and an event of 5 MB in pieces', async () => {
  const { results, large } = await ask<{
    results: readonly { name: string; result: string }[];
    large: { isSame: boolean; pieces: number; longest: number; left: number };
  }>(await run(suite), 'x');
  expect(results.filter(({ result }) => result.startsWith('failed'))).toEqual([]);
  expect(results.filter(({ result }) => result === 'ok').length).toBeGreaterThan(40);
  expect(large).toMatchObject({ isSame: true, left: 0 });
  expect(large.pieces).toBeGreaterThan(1);
  expect(large.longest).toBeLessThan(2_000_000);
});

describe('a session', () => {
  test('asks, takes an answer, tells, and leaves memory with its deadline as the alarm', async () => {
    const url = await run();
    await ask(url, 'a', { say: 'Book me a ride' });
    const requestId = await asked(url, 'a');
    const asleep = await isAsleep(url, 'a');
    // Ten minutes, and not the watchdog of a session in memory.
    expect((asleep.alarm ?? 0) - Date.now()).toBeGreaterThan(60_000);
    expect(asleep).toMatchObject({ entries: 1, errors: [], plain: 426 });
    await ask(url, 'a', { answer: requestId, optionId: 'premium' });
    await isTold(url, 'a', 'Done. Booked: premium');
    expect(await isAsleep(url, 'a')).toMatchObject({ alarm: null, errors: [] });
  });

  test('killed while it waits: the question is open under its id, and no model call is made again', async () => {
    await ask(await run(), 'b', { say: 'Book me a ride' });
    const requestId = await asked(running?.url ?? '', 'b');
    await isAsleep(running?.url ?? '', 'b');
    const before = model.calls.length;
    const url = await restart();
    expect(await asked(url, 'b')).toBe(requestId);
    expect(model.calls).toHaveLength(before);
    await ask(url, 'b', { answer: requestId, optionId: 'economy' });
    await isTold(url, 'b', 'Done. Booked: economy');
  });

  test('DURABLE-JOURNAL-3 SESSION-HOST-2: killed in a model call: the alarm makes it anew, and the call is made again', async () => {
    model.hold(true);
    const before = model.calls.length;
    const riders = (): number =>
      model.calls.slice(before).filter((call) => call.startsWith('rider')).length;
    await ask(await run(), 'c', { say: 'Book me a ride' });
    await until(riders, (count) => count === 1);
    model.hold(false);
    const url = await restart();
    // Nobody uses it.
    await until(riders, (count) => count === 2);
    expect(await asked(url, 'c')).not.toBe('');
  });

  test('a deadline that passes while nothing runs is met after the start', async () => {
    await ask(await run(chats, 1000), 'd', { say: 'Book me a ride' });
    await asked(running?.url ?? '', 'd');
    const before = model.calls.length;
    await restart(1000);
    await until(
      () => model.calls.slice(before),
      (calls) => calls.some((call) => call.includes('did not respond')),
    );
  });

  test('SESSION-HOST-1: a client that is connected lets it sleep, wakes it, and hears the result', async () => {
    const url = await run();
    const socket = new WebSocket(new URL('e', url.replace('http', 'ws')));
    await new Promise((resolve) => socket.addEventListener('open', resolve));
    const heard: { type?: string; text?: string; requestId?: string; accepted?: boolean }[] = [];
    socket.addEventListener('message', ({ data }) => {
      heard.push(JSON.parse(String(data)) as object);
    });
    const hears = (isIt: (part: (typeof heard)[number]) => boolean) =>
      until(
        () => heard.find(isIt),
        (part) => part !== undefined,
      );
    socket.send(JSON.stringify({ say: 'Book me a ride' }));
    const question = await hears(({ type }) => type === 'question.asked');
    await isAsleep(url, 'e');
    socket.send(JSON.stringify({ answer: question?.requestId, optionId: 'economy' }));
    await hears(({ accepted }) => accepted === true);
    await hears(({ type, text }) => type === 'text.done' && text === 'Done. Booked: economy');
    socket.close();
    expect((await look(url, 'e')).errors).toEqual([]);
  });
});
