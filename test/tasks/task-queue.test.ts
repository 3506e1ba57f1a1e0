// The order in which tasks run (TASK-QUEUE-1, 2).

import { describe, expect, test } from 'vitest';
import { TaskQueue, TaskQueueTimeoutError } from '../../src/tasks/task-queue.ts';
import { simulatedEnvironment } from '../../src/testing/index.ts';

function queueOf(maxRunning: number) {
  const queue = new TaskQueue(maxRunning);
  const environment = simulatedEnvironment();
  const order: string[] = [];
  const begin = (
    name: string,
    {
      topic = null,
      writes = [],
      timeoutMs,
      signal = new AbortController().signal,
    }: {
      topic?: string | null;
      writes?: string[];
      timeoutMs?: number;
      signal?: AbortSignal;
    } = {},
  ) => {
    const { scheduler } = environment;
    const turn = queue.acquire({ topic, writes }, { signal, scheduler, timeoutMs });
    turn.then(
      () => order.push(name),
      () => {},
    );
    return turn;
  };
  return { queue, environment, order, begin };
}

describe('tasks', { tags: ['B80', 'B81'] }, () => {
  test('runs a limited number of tasks at the same time and the others in order of arrival', async () => {
    const { queue, begin, order, environment } = queueOf(2);
    const [a] = [begin('a'), begin('b'), begin('c'), begin('d')];
    await environment.settle();
    expect(order).toEqual(['a', 'b']);
    expect([queue.running, queue.waiting]).toEqual([2, 2]);
    const giveBack = await a;
    giveBack();
    giveBack();
    await environment.settle();
    expect(order).toEqual(['a', 'b', 'c']);
    expect([queue.running, queue.waiting]).toEqual([2, 1]);
  });

  test('runs two writers of one resource in sequence but does not delay an unrelated task', async () => {
    const { begin, order, environment } = queueOf(10);
    const first = begin('first', { writes: ['calendar'] });
    void begin('second', { writes: ['calendar', 'email'] });
    void begin('reader');
    await environment.settle();
    expect(order).toEqual(['first', 'reader']);
    (await first)();
    await environment.settle();
    expect(order).toEqual(['first', 'reader', 'second']);
  });

  test('does not let a task that needs one lock overtake an earlier task that needs two', async () => {
    const { begin, order, environment } = queueOf(10);
    const a = begin('a', { writes: ['calendar'] });
    void begin('both', { writes: ['calendar', 'email'] });
    void begin('late', { writes: ['email'] });
    await environment.settle();
    expect(order).toEqual(['a']);
    (await a)();
    await environment.settle();
    expect(order).toEqual(['a', 'both']);
  });

  test('reports whether a task that timed out was waiting for a lock or for a place', async () => {
    const { begin, environment, queue } = queueOf(2);
    await begin('a', { writes: ['calendar'] });
    const lock = begin('b', { writes: ['calendar'], timeoutMs: 30_000 });
    const failed = lock.catch((error: unknown) => error);
    await environment.advance(30_000);
    expect(await failed).toMatchObject({
      code: 'TASK_QUEUE_TIMEOUT',
      stage: 'lock',
      waitedMs: 30_000,
      queueLength: 1,
    });
    await begin('c');
    const place = begin('d', { timeoutMs: 1_000 });
    const late = place.catch((error: unknown) => error);
    await environment.advance(1_000);
    expect(await late).toBeInstanceOf(TaskQueueTimeoutError);
    expect(await late).toMatchObject({ stage: 'semaphore' });
    expect([queue.waiting, environment.pendingTimers]).toEqual([0, 0]);
  });

  test('starts the next task if a waiting task is cancelled', async () => {
    const { begin, environment, order } = queueOf(10);
    await begin('a', { writes: ['calendar'] });
    const cancelled = new AbortController();
    const both = begin('both', { writes: ['calendar', 'email'], signal: cancelled.signal });
    void begin('email', { writes: ['email'] });
    await environment.settle();
    expect(order).toEqual(['a']);
    cancelled.abort(new Error('enough'));
    await expect(both).rejects.toThrow('enough');
    await environment.settle();
    expect(order).toEqual(['a', 'email']);
  });
});
