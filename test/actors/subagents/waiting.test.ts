// Waits for subagents last until an end, a question or a time limit, and never form a cycle.

import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { THE_LEAD } from '../../../src/actors/contracts/service-types.ts';
import { by, puppets } from '../../support/puppets.ts';

/** Returns the result of a wait as soon as there is one. */
function later<T>(promise: Promise<T>): { value?: T } {
  const box: { value?: T } = {};
  void promise.then((value) => {
    box.value = value;
  });
  return box;
}

describe('a wait', { tags: ['M5'] }, () => {
  test("ends with the subagent's result when the subagent ends", async () => {
    const { spawn, says, service, settle } = puppets();
    const id = spawn('a');
    const wait = later(service.await([id], THE_LEAD));
    await settle();
    expect(wait.value).toBeUndefined();
    await says('a', 'done');
    expect(wait.value).toMatchObject({
      ok: true,
      why: 'ended',
      reports: [{ id, state: 'completed', result: 'done', pendingRequest: null }],
    });
  });

  test('returns immediately if the subagent has already ended', async () => {
    const { spawn, says, service, timersLeft } = puppets();
    const id = spawn('a');
    await says('a', 'done');
    expect(await service.await([id], THE_LEAD)).toMatchObject({ why: 'ended' });
    expect(await service.await([id], THE_LEAD)).toMatchObject({ why: 'ended' });
    await service.close();
    expect(timersLeft()).toBe(0);
  });

  test(
    'times out after 300 s or its own limit, and leaves the subagent running',
    { tags: ['M26', 'MW4'] },
    async () => {
      const { spawn, service, environment, look } = puppets();
      const id = spawn('a');
      const long = later(service.await([id], THE_LEAD));
      const short = later(service.await([id], THE_LEAD, { timeoutMs: 10 }));
      await environment.advance(10);
      expect(short.value).toMatchObject({
        ok: true,
        why: 'timeout',
        reports: [{ state: 'running' }],
      });
      await environment.advance(299_989);
      expect(long.value).toBeUndefined();
      await environment.advance(1);
      expect(long.value).toMatchObject({ why: 'timeout' });
      expect(look(id)?.state).toBe('running');
    },
  );

  test('ends when its signal aborts, and leaves nothing behind', async () => {
    const { spawn, delegation, service, look, settle } = puppets();
    const id = spawn('a');
    const controller = new AbortController();
    const wait = later(service.await([id], THE_LEAD, { signal: controller.signal }));
    controller.abort();
    await settle();
    expect(wait.value).toMatchObject({ ok: false, error: { code: 'CANCELLED' } });
    expect(delegation.waits.count).toBe(0);
    expect(look(id)?.state).toBe('running');
    expect(await service.await([id], THE_LEAD, { signal: AbortSignal.abort() })).toMatchObject({
      ok: false,
      error: { code: 'CANCELLED' },
    });
  });

  test('WAITS-1: does not leave a listener on its signal after it has ended', async () => {
    const { spawn, says, service } = puppets();
    const id = spawn('a');
    const { signal } = new AbortController();
    const wait = service.await([id], THE_LEAD, { signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await says('a', 'done');
    expect(await wait).toMatchObject({ why: 'ended' });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('wakes every waiting caller once', { tags: ['M16'] }, async () => {
    const { spawn, says, service, delegation } = puppets();
    const id = spawn('a');
    const waits = [1, 2, 3].map(() => later(service.await([id], THE_LEAD)));
    await says('a', 'done');
    for (const { value } of waits) expect(value).toMatchObject({ why: 'ended' });
    expect(delegation.waits.count).toBe(0);
  });

  test('fails when 1000 waits are already open', { tags: ['MW9'] }, async () => {
    const { spawn, service, environment } = puppets();
    const id = spawn('a');
    for (let number = 0; number < 1000; number += 1) void service.await([id], THE_LEAD);
    expect(await service.await([id], THE_LEAD)).toMatchObject({
      ok: false,
      error: { code: 'SESSION_LIMIT', message: expect.stringContaining('1000') },
    });
    await environment.advance(300_000);
    expect(await service.await([id], THE_LEAD, { timeoutMs: -1 })).toMatchObject({
      ok: false,
      error: { code: 'INVALID_STATE' },
    });
  });

  test('fails for a missing or unknown subagent', async () => {
    const { service, spawn } = puppets();
    expect(await service.await([], THE_LEAD)).toMatchObject({ error: { code: 'INVALID_STATE' } });
    expect(await service.await([spawn('a'), 'sub_9'], THE_LEAD)).toMatchObject({
      error: { code: 'NOT_FOUND', message: expect.stringContaining('sub_9') },
    });
  });
});

describe('a wait for several subagents', { tags: ['MW10'] }, () => {
  test('returns the first ended subagent in mode any, and every subagent in mode all', async () => {
    const { spawn, says, service } = puppets();
    const ids = [spawn('a'), spawn('b')];
    const any = later(service.await(ids, THE_LEAD, { mode: 'any' }));
    const all = later(service.await(ids, THE_LEAD));
    await says('b', 'B');
    expect(any.value).toMatchObject({
      why: 'ended',
      reports: [{ state: 'running' }, { state: 'completed', result: 'B' }],
    });
    expect(all.value).toBeUndefined();
    await says('a', 'A');
    expect(all.value).toMatchObject({ why: 'ended', reports: [{ result: 'A' }, { result: 'B' }] });
  });

  test.each(['any', 'all'] as const)('%s: ends when one subagent asks a question', async (mode) => {
    const { spawn, calls, service } = puppets();
    const ids = [spawn('a'), spawn('b')];
    const wait = later(service.await(ids, THE_LEAD, { mode }));
    await calls('b', ['request_input', { question: 'Which?' }]);
    expect(wait.value).toMatchObject({
      why: 'asked',
      reports: [{ pendingRequest: null }, { pendingRequest: { question: 'Which?' } }],
    });
  });
});

describe('a wait that ends when a subagent asks a question', { tags: ['MW1'] }, () => {
  test('ends at a later question, and lets the subagent continue once it is answered', async () => {
    const { spawn, calls, says, service, settle, timersLeft } = puppets();
    const id = spawn('a');
    const wait = later(service.await([id], THE_LEAD));
    await calls('a', ['request_input', { question: 'Which?', context: 'Two' }]);
    expect(wait.value).toMatchObject({
      ok: true,
      why: 'asked',
      reports: [
        { state: 'waiting_for_input', pendingRequest: { question: 'Which?', context: 'Two' } },
      ],
    });
    const requestId = wait.value?.ok ? wait.value.reports[0]?.pendingRequest?.requestId : '';
    // MODEL-MESSAGES-5: the question is still open.
    expect(await service.await([id], THE_LEAD)).toMatchObject({ why: 'asked' });
    const sent = service.send(
      id,
      { content: 'The first', inResponseTo: requestId ?? '' },
      THE_LEAD,
    );
    expect(sent).toMatchObject({ ok: true, resolvedPending: true });
    await settle();
    await says('a', 'done');
    expect(await service.await([id], THE_LEAD)).toMatchObject({ why: 'ended' });
    await service.close();
    expect(timersLeft()).toBe(0);
  });

  test('wakes a parent when another child asks a question', async () => {
    const { spawn, calls, waited } = puppets();
    const parent = spawn('p');
    const [first, second] = [
      spawn('a', { caller: by(parent) }),
      spawn('b', { caller: by(parent) }),
    ];
    await calls('p', ['wait', { ids: [first] }]);
    await calls('b', ['request_input', { question: 'Which?' }]);
    expect(waited.get(parent)).toMatchObject({
      why: 'asked',
      reports: [{ id: first, state: 'running' }],
      alsoAsking: [{ id: second, pendingRequest: { question: 'Which?' } }],
    });
  });

  test("does not end the program's wait when an unrelated subagent asks a question", async () => {
    const { spawn, calls, service } = puppets();
    const [first] = [spawn('a'), spawn('b')];
    const wait = later(service.await([first], THE_LEAD));
    await calls('b', ['request_input', { question: 'Which?' }]);
    expect(wait.value).toBeUndefined();
  });

  test('ends when the awaited subagent depends on the one that asks the question', async () => {
    const { spawn, calls, service } = puppets();
    const asker = spawn('b', { workstreamId: 'w' });
    const first = spawn('a', { workstreamId: 'w' });
    const wait = later(service.await([first], THE_LEAD));
    await calls('a', ['wait', { ids: [asker] }]);
    await calls('b', ['request_input', { question: 'Which?' }]);
    expect(wait.value).toMatchObject({ why: 'asked', alsoAsking: [{ id: asker }] });
  });
});

describe('AWAITING-2: a question during a wait', () => {
  test('ends a wait once the wait depends on the answer to an open question', async () => {
    const { spawn, calls, service } = puppets();
    const asker = spawn('b', { workstreamId: 'w' });
    const first = spawn('a', { workstreamId: 'w' });
    const wait = later(service.await([first], THE_LEAD));
    await calls('b', ['request_input', { question: 'Which?' }]);
    expect(wait.value).toBeUndefined();
    await calls('a', ['wait', { ids: [asker] }]);
    expect(wait.value).toMatchObject({ why: 'asked', alsoAsking: [{ id: asker }] });
  });

  test('does not notify a parent of a question that its wait has already returned', async () => {
    const { spawn, calls, waited, prompts } = puppets();
    const parent = spawn('p');
    const first = spawn('a', { caller: by(parent) });
    const second = spawn('b', { caller: by(parent) });
    await calls('p', ['wait', { ids: [first] }]);
    await calls('b', ['request_input', { question: 'Which?' }]);
    expect(waited.get(parent)).toMatchObject({ alsoAsking: [{ id: second }] });
    const last = prompts.findLast(({ name }) => name === 'p');
    expect(JSON.stringify(last?.prompt.prompt)).not.toContain('SUBAGENT REQUEST');
  });
});

describe('WAIT_CYCLE', () => {
  test('refuses the second of two agents that wait for each other, and names both', async () => {
    const { spawn, calls, says, waited } = puppets();
    const a = spawn('a', { workstreamId: 'w' });
    const b = spawn('b', { workstreamId: 'w' });
    await calls('a', ['wait', { ids: [b] }]);
    await calls('b', ['wait', { ids: [a] }]);
    expect(waited.get(b)).toMatchObject({
      ok: false,
      error: {
        code: 'WAIT_CYCLE',
        message: expect.stringMatching(new RegExp(`${b}.*${a}.*${b}`)),
      },
    });
    await says('b', 'B');
    expect(waited.get(a)).toMatchObject({ ok: true, why: 'ended' });
  });

  test('refuses a cycle through other subagents, through a question, or from a subagent to itself', async () => {
    const { spawn, calls, waited } = puppets();
    const parent = spawn('p', { workstreamId: 'w' });
    const other = spawn('o', { workstreamId: 'w' });
    const child = spawn('c', { caller: by(parent), config: { completion: 'turn' } });
    await calls('c', ['request_input', { question: 'Which?' }]);
    await calls('o', ['wait', { ids: [child] }]);
    // The parent reads the question in its next step; until then, a wait reports it.
    await calls('p', ['wait', { ids: [other] }]);
    expect(waited.get(parent)).toMatchObject({ ok: true, why: 'asked' });
    await calls('p', ['wait', { ids: [other] }]);
    expect(waited.get(parent)).toMatchObject({
      error: { code: 'WAIT_CYCLE', message: expect.stringContaining(other) },
    });
    const self = spawn('s');
    await calls('s', ['wait', { ids: [self] }]);
    expect(waited.get(self)).toMatchObject({ error: { code: 'WAIT_CYCLE' } });
  });

  test('refuses to let a child wait for its parent', async () => {
    const { spawn, calls, waited } = puppets();
    const parent = spawn('p', { workstreamId: 'w' });
    const child = spawn('c', { caller: by(parent) });
    await calls('c', ['wait', { ids: [parent] }]);
    expect(waited.get(child)).toMatchObject({ error: { code: 'WAIT_CYCLE' } });
  });

  test('accepts a wait for either of two subagents if only one of them would close a cycle', async () => {
    const { spawn, calls, says, waited } = puppets();
    const [a, b, c] = ['a', 'b', 'c'].map((name) => spawn(name, { workstreamId: 'w' }));
    await calls('a', ['wait', { ids: [b] }]);
    await calls('b', ['wait', { ids: [a, c], mode: 'any' }]);
    await says('c', 'C');
    expect(waited.get(b ?? '')).toMatchObject({ ok: true, why: 'ended' });
  });
});

test('AWAITING-4: does not end when a subagent hangs', { tags: ['M17'] }, async () => {
  const { spawn, service, environment, look } = puppets({
    constraints: { inactivityTimeoutMs: 1000, sweepIntervalMs: 500 },
  });
  const id = spawn('a');
  const wait = later(service.await([id], THE_LEAD, { timeoutMs: 60_000 }));
  await environment.advance(2000);
  expect(look(id)).toMatchObject({ state: 'running', hung: true });
  expect(wait.value).toBeUndefined();
});

test("removes a parent's waits when the parent ends", async () => {
  const { spawn, calls, service, delegation, settle } = puppets();
  const parent = spawn('p');
  const child = spawn('c', { caller: by(parent) });
  await calls('p', ['wait', { ids: [child] }]);
  expect(delegation.waits.count).toBe(1);
  service.cancel(parent, THE_LEAD);
  await settle();
  expect(delegation.waits.count).toBe(0);
});
