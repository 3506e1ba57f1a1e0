// The run loop: tasks run in order and without re-entrance, and a failing task affects no other.

import { describe, expect, test } from 'vitest';
import { Router } from '../../../src/actors/runtime/host.ts';

function routed() {
  const errors: unknown[] = [];
  const router = new Router((error) => errors.push(error));
  const log: string[] = [];
  return { router, errors, log };
}

describe('the router', () => {
  test('runs a task immediately when nothing else is running', () => {
    const { router, log } = routed();
    router.enqueue({ run: () => log.push('ran') });
    expect(log).toEqual(['ran']);
  });

  test('ROUTER-1: queues a task added by a running task behind the waiting tasks', () => {
    const { router, log } = routed();
    router.enqueue({
      run() {
        router.enqueue({
          run() {
            log.push('first begins');
            router.enqueue({ run: () => log.push('third') });
            log.push('first ends');
          },
        });
        router.enqueue({ run: () => log.push('second') });
        log.push('outer ends');
      },
    });
    expect(log).toEqual(['outer ends', 'first begins', 'first ends', 'second', 'third']);
  });

  test('ROUTER-1: keeps a long queue in order while running tasks add more', () => {
    const { router } = routed();
    const seen: number[] = [];
    const total = 5000;
    let enqueued = 0;
    const task = (number: number) => ({
      run() {
        seen.push(number);
        // Each task adds two until all are queued, so the queue grows while it is being cut.
        for (let more = 0; more < 2 && enqueued < total; more += 1) {
          router.enqueue(task(enqueued));
          enqueued += 1;
        }
      },
    });
    enqueued = 1;
    router.enqueue(task(0));
    expect(seen).toEqual(Array.from({ length: total }, (_, index) => index));
  });

  test('ROUTER-1: runs tasks that arrive together before any task that the first of them adds', () => {
    const { router, log } = routed();
    router.enqueueAll([
      {
        run() {
          log.push('first');
          router.enqueue({ run: () => log.push('follows') });
        },
      },
      { run: () => log.push('second') },
    ]);
    expect(log).toEqual(['first', 'second', 'follows']);
  });

  test('ROUTER-2: reports a task that throws, and runs the others', () => {
    const { router, log, errors } = routed();
    router.enqueue({
      run() {
        router.enqueue({
          run() {
            throw new Error('broken');
          },
        });
        router.enqueue({ run: () => log.push('after') });
      },
    });
    router.enqueue({ run: () => log.push('later') });
    expect(errors).toEqual([expect.objectContaining({ message: 'broken' })]);
    expect(log).toEqual(['after', 'later']);
  });
});
