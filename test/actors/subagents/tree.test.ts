// No subagent outlives its parent, and no record is kept forever.

import { tool } from 'ai';
import { describe, expect, it, test } from 'vitest';
import { z } from 'zod';
import { THE_LEAD } from '../../../src/actors/contracts/service-types.ts';
import { memoryJournal } from '../../../src/index.ts';
import { by, puppets } from '../../support/puppets.ts';

/** A parent, its child and its grandchild. */
function family(stage: ReturnType<typeof puppets>) {
  const parent = stage.spawn('p');
  const child = stage.spawn('c', { caller: by(parent) });
  const grandchild = stage.spawn('g', { caller: by(child) });
  return { parent, child, grandchild };
}

/** Answers twice: after the first answer, the agent only learns that its children are running. */
async function answersOver(stage: ReturnType<typeof puppets>, name: string, text: string) {
  await stage.says(name, text);
  await stage.says(name, text);
}

describe('a parent that answers while its children are running', () => {
  it('learns from one notice which children are still running, and continues', async () => {
    const stage = puppets();
    const { parent, child, grandchild } = family(stage);
    await stage.says('p', 'dispatched');
    expect(stage.look(parent)?.state).toBe('running');
    for (const id of [child, grandchild]) expect(stage.look(id)?.state).toBe('running');
    const read = JSON.stringify(stage.prompts.at(-1)?.prompt.prompt.at(-1));
    expect(read).toContain('still at work');
    expect(read).toContain(child);
    expect(read).not.toContain(grandchild);
  });

  it('completes after its children, and includes their results', async () => {
    const stage = puppets();
    const { parent, child } = family(stage);
    await stage.says('p', 'dispatched');
    await answersOver(stage, 'c', 'found');
    await stage.says('p', 'found by a child');
    expect(stage.look(parent)).toMatchObject({ state: 'completed', result: 'found by a child' });
    expect(stage.look(child)).toMatchObject({ state: 'completed', result: 'found' });
  });

  it('completes with complete_task only after learning that children are still running', async () => {
    const stage = puppets();
    const parent = stage.spawn('p', { config: { completion: 'tool' } });
    const child = stage.spawn('c', { caller: by(parent) });
    await stage.calls('p', ['complete_task', { result: 'dispatched' }]);
    expect(stage.look(parent)?.state).toBe('running');
    expect(stage.look(child)?.state).toBe('running');
    await stage.calls('p', ['complete_task', { result: 'without it' }]);
    expect(stage.look(parent)?.state).toBe('completed');
    expect(stage.look(child)?.state).toBe('cancelled');
  });

  it('cancels its children when it answers in its last step', async () => {
    const stage = puppets();
    const parent = stage.spawn('p', { config: { maxSteps: 1 } });
    const child = stage.spawn('c', { caller: by(parent) });
    await stage.says('p', 'dispatched');
    expect(stage.look(parent)?.state).toBe('completed');
    expect(stage.look(child)?.state).toBe('cancelled');
  });
});

describe('SUBAGENT-TREE-4: the end of a parent', { tags: ['MW7', 'HW4'] }, () => {
  test.each(['completed', 'cancelled', 'failed'] as const)(
    '%s: cancels all subagents below the parent',
    async (how) => {
      const stage = puppets();
      const { parent, child, grandchild } = family(stage);
      if (how === 'completed') await answersOver(stage, 'p', 'done');
      else if (how === 'cancelled') stage.service.cancel(parent, THE_LEAD);
      else stage.delegation.get(parent)?.kill('the test says so');
      await stage.settle();
      expect(stage.look(parent)?.state).toBe(how);
      for (const id of [child, grandchild])
        expect(stage.look(id)).toMatchObject({
          state: 'cancelled',
          error: { message: expect.stringContaining('has ended') },
        });
      expect(stage.service.list(THE_LEAD)).toEqual([]);
      await stage.service.close();
      expect(stage.timersLeft()).toBe(0);
    },
  );

  test(
    'aborts the signals of its tools immediately, while its siblings continue',
    { tags: ['RW9'] },
    async () => {
      const stage = puppets();
      let signal: AbortSignal | undefined;
      const hang = tool({
        inputSchema: z.object({}),
        execute: (_, { abortSignal }) => {
          signal = abortSignal;
          return new Promise<string>(() => {});
        },
      });
      const parent = stage.spawn('p');
      const child = stage.spawn('c', { caller: by(parent), config: { tools: { hang } } });
      const sibling = stage.spawn('s');
      await stage.calls('c', ['hang', {}]);
      expect(signal?.aborted).toBe(false);
      await answersOver(stage, 'p', 'done');
      expect(signal?.aborted).toBe(true);
      expect(stage.look(child)?.state).toBe('cancelled');
      expect(stage.look(sibling)?.state).toBe('running');
    },
  );

  test('kills a subagent that does not stop after the grace period', async () => {
    const journal = memoryJournal();
    let isStuck = false;
    const stage = puppets({
      graceMs: 2000,
      on: {
        journal: {
          read: (...args) => journal.read(...args),
          append: (entry) => (isStuck ? new Promise<void>(() => {}) : journal.append(entry)),
        },
      },
    });
    const { parent, child } = family(stage);
    await stage.settle();
    isStuck = true;
    stage.delegation.get(parent)?.kill('the test says so');
    await stage.environment.advance(1999);
    expect(stage.look(child)?.state).toBe('running');
    await stage.environment.advance(1);
    expect(stage.look(child)).toMatchObject({ state: 'failed', error: { code: 'KILLED' } });
    await stage.environment.advance(2000);
    expect(stage.service.list(THE_LEAD)).toEqual([]);
  });

  test(
    'cancel() ends a subtree, and returns false for a subagent that has ended',
    { tags: ['M6'] },
    async () => {
      const stage = puppets();
      const { parent, child, grandchild } = family(stage);
      expect(stage.service.cancel(child, by(parent), 'enough')).toBe(true);
      await stage.settle();
      expect(stage.look(parent)?.state).toBe('running');
      expect(stage.look(child)?.error?.message).toBe('Cancelled: enough');
      expect(stage.look(grandchild)?.state).toBe('cancelled');
      expect(stage.service.cancel(child, by(parent))).toBe(false);
      expect(stage.service.cancel('sub_9', by(parent))).toBe(false);
      expect(stage.service.cancel(parent, by(child))).toBe(false);
    },
  );
});

test('SUBAGENT-TREE-3: lets an observer cancel a subagent when it starts, and reports both in order', async () => {
  const stage = puppets();
  const cancelled: boolean[] = [];
  stage.service.events.subscribe(({ type, subagentId }) => {
    if (type === 'spawned') cancelled.push(stage.service.cancel(subagentId, THE_LEAD, 'not now'));
  });
  const id = stage.spawn('a');
  await stage.settle();
  expect(cancelled).toEqual([true]);
  expect(stage.look(id)).toMatchObject({ state: 'cancelled', error: { code: 'CANCELLED' } });
  expect(stage.types(id)).toEqual(['spawned', 'ended']);
  expect(stage.errors).toEqual([]);
});

describe('SUBAGENT-TREE-3: close', () => {
  test('cancels and disposes all subagents, and resolves once none are left', async () => {
    const disposed: string[] = [];
    const stage = puppets();
    const config = {
      dispose: async () => {
        await stage.settle();
        disposed.push('c');
      },
    };
    const parent = stage.spawn('p');
    const child = stage.spawn('c', { caller: by(parent), config });
    await stage.settle();
    const closed = stage.service.close('enough');
    await stage.service.close();
    await closed;
    expect(disposed).toEqual(['c']);
    expect(stage.look(parent)?.error?.message).toBe('Cancelled: enough');
    expect(stage.look(child)?.state).toBe('cancelled');
    expect(stage.timersLeft()).toBe(0);
  });

  test.each([-1, Number.NaN])('refuses a grace period of %d', (graceMs) => {
    expect(() => puppets({ graceMs })).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
  });

  test('disposes a subagent that is still being prepared', { tags: ['M25'] }, async () => {
    let disposed = 0;
    const stage = puppets();
    stage.spawn('a', { config: { dispose: () => void (disposed += 1) } });
    await stage.service.close();
    expect(disposed).toBe(1);
    expect(stage.look('sub_1')?.state).toBe('cancelled');
  });
});

describe('a subagent that has ended', { tags: ['M18', 'MW9'] }, () => {
  const retention = { stateRetentionMs: 10_000, sweepIntervalMs: 1000 };

  test('stays for the retention time after its delivery', async () => {
    const stage = puppets({ constraints: retention });
    const id = stage.spawn('a');
    await stage.says('a', 'done');
    await stage.environment.advance(1_000_000);
    expect(stage.look(id)?.result).toBe('done');
    expect(stage.service.check(id, THE_LEAD)).toMatchObject({ report: { result: 'done' } });
    await stage.environment.advance(9999);
    expect(stage.service.check(id, THE_LEAD)).toMatchObject({ ok: true });
    await stage.environment.advance(2000);
    expect(stage.service.check(id, THE_LEAD)).toMatchObject({ error: { code: 'NOT_FOUND' } });
    expect(stage.timersLeft()).toBe(0);
  });

  test('counts as delivered after a wait or a `delivered` call, but not after a list call', async () => {
    const stage = puppets({ constraints: retention });
    const [a, b, c] = [stage.spawn('a'), stage.spawn('b'), stage.spawn('c')];
    void stage.service.await([a], THE_LEAD);
    for (const name of ['a', 'b', 'c']) await stage.says(name, name);
    stage.service.delivered(b);
    stage.service.delivered('sub_9');
    await stage.environment.advance(20_000);
    expect(stage.service.list(THE_LEAD, { includeEnded: true }).map(({ id }) => id)).toEqual([c]);
  });

  test('counts as delivered when an ancestor checks it, but not when another subagent does', async () => {
    const stage = puppets({ constraints: retention });
    const a = stage.spawn('a', { workstreamId: 'w' });
    const b = stage.spawn('b', { workstreamId: 'w' });
    await stage.says('a', 'done');
    stage.service.check(a, by(b));
    await stage.environment.advance(20_000);
    expect(stage.look(a)).toBeDefined();
  });

  test('disappears once no parent is left to read its result', async () => {
    const stage = puppets({ constraints: retention });
    const { parent } = family(stage);
    await stage.says('g', 'G');
    await answersOver(stage, 'p', 'P');
    await stage.environment.advance(20_000);
    const left = stage.service.list(THE_LEAD, { includeEnded: true }).map(({ id }) => id);
    expect(left).toEqual([parent]);
  });

  test('stays until an explicit sweep if the sweep interval is 0', async () => {
    const stage = puppets({ constraints: { ...retention, sweepIntervalMs: 0 } });
    const id = stage.spawn('a');
    await stage.says('a', 'done');
    stage.service.check(id, THE_LEAD);
    await stage.environment.advance(60_000);
    expect(stage.timersLeft()).toBe(0);
    expect(stage.look(id)).toBeDefined();
    expect(stage.service.sweep()).toBe(1);
    expect(stage.service.sweep()).toBe(0);
    expect(stage.look(id)).toBeUndefined();
  });

  test(
    'RETENTION-2: refuses work when too many results are unread, and deletes the oldest read results',
    { tags: ['BW31'] },
    async () => {
      const stage = puppets({
        constraints: { maxConcurrentPerSession: 5000, maxLivePerSession: 5000 },
      });
      const ids = Array.from({ length: 1000 }, (_, number) => stage.spawn(`n${number}`));
      for (const id of ids) stage.delegation.get(id)?.kill('the test says so');
      expect(stage.request('more')).toMatchObject({
        status: 'rejected',
        error: { code: 'SESSION_LIMIT', message: expect.stringContaining('1000 results') },
      });
      for (const id of ids) stage.service.delivered(id);
      const more = stage.spawn('more');
      stage.delegation.get(more)?.kill('the test says so');
      stage.service.delivered(more);
      expect(stage.look(ids[0] ?? '')).toBeUndefined();
      expect(stage.look(ids[1] ?? '')).toBeDefined();
      expect(stage.look(more)).toBeDefined();
    },
  );
});

describe('the detection of hung subagents', { tags: ['M17', 'MW2'] }, () => {
  const constraints = { inactivityTimeoutMs: 5000, sweepIntervalMs: 1000 };

  test('reports a subagent as hung only while it has been inactive for too long', async () => {
    const stage = puppets({ constraints });
    const id = stage.spawn('a');
    await stage.environment.advance(4000);
    expect(stage.look(id)?.hung).toBe(false);
    await stage.environment.advance(2000);
    expect(stage.look(id)).toMatchObject({ hung: true, state: 'running' });
    expect(stage.types(id)).toContain('hung');
    stage.service.report(id, { update: 'I am here', percent: null });
    expect(stage.look(id)?.hung).toBe(false);
    expect(stage.types(id).slice(-2)).toEqual(['recovered', 'progress']);
    await stage.environment.advance(10_000);
    expect(stage.look(id)?.hung).toBe(true);
    await stage.calls('a', ['report_progress', { update: 'x' }]);
    expect(stage.look(id)).toMatchObject({ hung: false });
    await stage.says('a', 'done');
    await stage.service.close();
    expect(stage.timersLeft()).toBe(0);
  });

  test('does not count a wait for an answer, a child or a slot as inactivity', async () => {
    const stage = puppets({ constraints: { ...constraints, maxConcurrentPerSession: 2 } });
    const asking = stage.spawn('a');
    await stage.calls('a', ['request_input', { question: 'Which?', timeoutMs: 100_000 }]);
    const parent = stage.spawn('p');
    const child = stage.spawn('c', { caller: by(parent), config: { inactivityTimeoutMs: 0 } });
    await stage.calls('p', ['wait', { ids: [child], timeoutMs: 100_000 }]);
    const other = stage.spawn('o', { config: { inactivityTimeoutMs: 0 } });
    const queued = stage.spawn('q');
    await stage.environment.advance(30_000);
    expect(stage.look(queued)?.state).toBe('ready');
    for (const id of [asking, parent, child, other, queued])
      expect(stage.look(id)?.hung).toBe(false);
  });

  test('stays off when its time is 0, even if the scope has a default', async () => {
    const stage = puppets({ constraints });
    const id = stage.spawn('a', { config: { inactivityTimeoutMs: 0 } });
    await stage.environment.advance(100_000);
    expect(stage.look(id)?.hung).toBe(false);
    expect(stage.environment.backgroundTimers).toBe(0);
  });

  test('cancels the subagent or calls its callback, as configured', async () => {
    const stage = puppets({ constraints });
    const told: unknown[] = [];
    const cancelled = stage.spawn('a', { config: { onHung: 'cancel' } });
    const watched = stage.spawn('b', {
      config: {
        onHung: (hung) => {
          told.push(hung);
          throw new Error('the callback is broken');
        },
      },
    });
    const since = stage.environment.clock.now();
    await stage.environment.advance(7000);
    expect(stage.look(cancelled)).toMatchObject({
      state: 'cancelled',
      error: { message: expect.stringContaining('no sign of life') },
    });
    expect(told).toEqual([{ id: watched, name: 'b', lastActiveAt: since }]);
    expect(stage.errors).toEqual([expect.objectContaining({ message: 'the callback is broken' })]);
  });
});
