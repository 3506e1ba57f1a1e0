// Tools that run at a client through a page's `client.handle`, over real sockets.

import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createRuntime, defineTool, memoryJournal, type SessionEvent } from '../../src/index.ts';
import { rideSession, served, type TestClient } from './support/served.ts';

const locate = defineTool({
  name: 'locate',
  description: 'Finds where the user is',
  parameters: z.object({ precise: z.boolean() }),
  runsAt: 'client',
  resultSchema: z.object({ city: z.string() }),
});
const USE = 'use locate {"precise":true}';

/** Resolves with what the lead agent says about the tool. */
const told = async (of: TestClient): Promise<string> => {
  const state = await of.until(({ transcript }) =>
    transcript.some(({ text, final }) => final && text.startsWith('Tools said')),
  );
  return state.transcript.at(-1)?.text ?? '';
};

const seen = (events: readonly SessionEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === 'client_call.changed' ? [event.call.state] : []));

function watched(options: Parameters<typeof rideSession>[0] = {}) {
  const session = rideSession({ tools: [locate], ...options });
  const events: SessionEvent[] = [];
  session.events.subscribe((event) => events.push(event));
  /** Resolves when a call is in this state. */
  const reaches = (state: string): Promise<void> =>
    new Promise((resolve) => {
      if (seen(events).includes(state)) return resolve();
      session.events.subscribe(() => seen(events).includes(state) && resolve());
    });
  return { session, events, reaches };
}

describe.each(['websocket', 'stream'] as const)('over a %s', (transport) => {
  test('runs the call in the page and returns the result to the model', async () => {
    const { session } = watched();
    const { client } = await served({ session: () => session });
    const ann = client({ transport });
    const inputs: unknown[] = [];
    ann.it.handle('locate', (input, { callId, signal }) => {
      inputs.push([input, callId, signal.aborted]);
      return { city: 'Lyon' };
    });
    await ann.it.send(USE);
    expect(await told(ann)).toContain('Lyon');
    expect(inputs).toEqual([[{ precise: true }, `${session.id}:call_1`, false]]);
  });

  test('passes the call to a page that connects later', async () => {
    const { session } = watched();
    const { client } = await served({ session: () => session });
    const first = client({ transport });
    await first.it.send(USE);
    const second = client({ transport });
    second.it.handle('locate', () => ({ city: 'Lyon' }));
    expect(await told(second)).toContain('Lyon');
  });

  test('runs the call in only one of two tabs', async () => {
    const { session } = watched();
    const { client } = await served({ session: () => session });
    const tabs = [client({ transport }), client({ transport })];
    let runs = 0;
    for (const { it } of tabs)
      it.handle('locate', () => {
        runs += 1;
        return { city: 'Lyon' };
      });
    await Promise.all(tabs.map((tab) => tab.status(({ state }) => state === 'open')));
    await tabs[0]?.it.send(USE);
    await Promise.all(tabs.map(told));
    expect(runs).toBe(1);
  });
});

test('SESSION-HUB-8: does not pass a call to an observer, an operator or another user', async () => {
  const { session, reaches } = watched();
  const { client } = await served({ session: () => session });
  const others = ['bob', 'eve', 'root'].map((token) => client({ token }));
  let runs = 0;
  for (const { it } of others) it.handle('locate', () => (runs += 1));
  const ann = client();
  await ann.it.send(USE);
  await reaches('waiting');
  const id = session.clientCalls.list()[0]?.id ?? '';
  expect(await session.clientCalls.claim(id, 'bob 1', { by: 'bob' })).toBe(false);
  expect(await session.clientCalls.answer(id, 'bob 1', { output: { city: 'Rome' } })).toBe(false);
  ann.it.handle('locate', () => ({ city: 'Lyon' }));
  expect(await told(ann)).toContain('Lyon');
  expect(runs).toBe(0);
});

test("leaves a call with a page that reconnects, and accepts the handler's result", async () => {
  const { session, events, reaches } = watched();
  const { client, http } = await served({ session: () => session });
  const sockets: Socket[] = [];
  http.on('connection', (socket: Socket) => sockets.push(socket));
  const ann = client();
  const { promise: position, resolve } = Promise.withResolvers<object>();
  let runs = 0;
  ann.it.handle('locate', () => {
    runs += 1;
    return position;
  });
  await ann.it.send(USE);
  await reaches('claimed');
  for (const socket of sockets) socket.destroy();
  await Promise.all([reaches('left'), ann.status(({ state }) => state !== 'open')]);
  resolve({ city: 'Lyon' });
  await ann.reconnected();
  expect(await told(ann)).toContain('Lyon');
  expect(runs).toBe(1);
  expect(seen(events).filter((state) => state === 'answered')).toHaveLength(1);
});

test('accepts a result after a server restart from a page that was running the call', async () => {
  const journal = memoryJournal();
  const before = watched({ sessionId: 's1', runtime: createRuntime({ journal }) });
  const first = await served({ session: () => before.session });
  const ann = first.client();
  const { promise: position, resolve } = Promise.withResolvers<object>();
  let runs = 0;
  ann.it.handle('locate', () => {
    runs += 1;
    return position;
  });
  await ann.it.send(USE);
  await before.reaches('claimed');
  const port = Number(new URL(first.url).port);
  await before.session.suspend();
  await first.stop();
  resolve({ city: 'Lyon' });
  const after = watched({ sessionId: 's1', runtime: createRuntime({ journal }) });
  await served({ session: () => after.session }, { port });
  await ann.reconnected();
  expect(await told(ann)).toContain('Lyon');
  expect(runs).toBe(1);
});

test('CALL-HANDLERS-3: fails the call if a handler throws or its result is too large or invalid', async () => {
  const errors: unknown[] = [];
  const { session } = watched();
  const { client } = await served({ session: () => session });
  const ann = client({ onError: (error) => errors.push(error) });
  const handlers: (() => unknown)[] = [
    () => {
      throw new Error('no permission');
    },
    () => ({ city: 'x'.repeat(1_000_000) }),
    () => ({ town: 'Lyon' }),
    () => 1n,
  ];
  const says: string[] = [];
  for (const handler of handlers) {
    const remove = ann.it.handle('locate', handler);
    await ann.it.send(USE);
    const count = says.length + 1;
    const { transcript } = await ann.until(
      (state) =>
        state.transcript.filter(({ text, final }) => final && text.startsWith('Tools said'))
          .length === count,
    );
    says.push(transcript.at(-1)?.text ?? '');
    remove();
  }
  expect(says[0]).toContain('no permission');
  expect(says[1]).toContain('no JSON of at most');
  expect(says[2]).toContain('refused');
  expect(says[3]).toContain('BigInt');
  expect(errors).toMatchObject([{ code: 'INVALID_RESULT' }]);
});

test("aborts a handler's signal when the call is cancelled", async () => {
  const { session } = watched();
  const { client } = await served({ session: () => session });
  const ann = client();
  const { promise: aborted, resolve } = Promise.withResolvers<unknown>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  ann.it.handle('locate', (_input, { signal }) => {
    begin();
    signal.addEventListener('abort', () => resolve(signal.reason));
    return new Promise(() => {});
  });
  await ann.it.send(USE);
  await begun;
  session.cancelToolCall(session.pendingToolCalls[0] ?? '');
  expect(await aborted).toMatchObject({ code: 'CANCELLED' });
});

test("aborts a handler's signal when the client is closed", async () => {
  const { session } = watched();
  const { client } = await served({ session: () => session });
  const ann = client();
  const { promise: begun, resolve: begin } = Promise.withResolvers<AbortSignal>();
  ann.it.handle('locate', (_input, { signal }) => {
    begin(signal);
    return new Promise(() => {});
  });
  await ann.it.send(USE);
  const signal = await begun;
  ann.it.close();
  expect(signal.aborted).toBe(true);
});

test('refuses a second handler for the same tool, and a handler that is not a function', async () => {
  const { session } = watched();
  const { client } = await served({ session: () => session });
  const { it } = client();
  const remove = it.handle('locate', () => 1);
  expect(() => it.handle('locate', () => 1)).toThrow('has a handler');
  remove();
  it.handle('locate', () => 1);
  expect(() => it.handle('other', 1 as never)).toThrow('expected the name of a tool');
});
