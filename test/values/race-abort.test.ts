import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { simulatedEnvironment } from '../../src/testing/index.ts';
import { raceAbort, raceTime } from '../../src/values/race-abort.ts';
import { deferred, macrotask, never, soon } from '../actors/model/fakes.ts';

const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

test('RACE-ABORT-1: rejects with the abort reason if the work never settles', async () => {
  const controller = new AbortController();
  const reason = { any: 'thing' };
  const raced = raceAbort(never(), controller.signal);
  controller.abort(reason);
  await expect(soon(raced)).rejects.toBe(reason);
});

test('RACE-ABORT-1: rejects if the signal is aborted, even if the work has finished', async () => {
  const reason = new Error('gone');
  await expect(raceAbort(Promise.resolve(1), AbortSignal.abort(reason))).rejects.toBe(reason);
  await expect(raceAbort(1, AbortSignal.abort(reason))).rejects.toBe(reason);
});

test('settles like the work, with the same result or error, if nothing is aborted', async () => {
  const { signal } = new AbortController();
  await expect(raceAbort(Promise.resolve('done'), signal)).resolves.toBe('done');
  await expect(raceAbort('plain', signal)).resolves.toBe('plain');
  await expect(raceAbort(Promise.reject(new TypeError('no')), signal)).rejects.toThrow(TypeError);
});

test('RACE-ABORT-2: leaves no listeners on a long-lived signal', async () => {
  const controller = new AbortController();
  const { signal } = controller;
  for (let round = 0; round < 50; round += 1) {
    await raceAbort(Promise.resolve(round), signal);
    await raceAbort(Promise.reject(new Error('no')), signal).catch(() => {});
  }
  expect(listeners(signal)).toBe(0);
  const raced = raceAbort(never(), signal);
  expect(listeners(signal)).toBe(1);
  controller.abort();
  await raced.catch(() => {});
  expect(listeners(signal)).toBe(0);
});

test('RACE-ABORT-3: handles work that fails after the abort or before the race', async () => {
  const unhandled: unknown[] = [];
  const listen = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', listen);
  try {
    const controller = new AbortController();
    const late = deferred<void>();
    const raced = raceAbort(late.promise, controller.signal);
    controller.abort(new Error('stop'));
    await expect(raced).rejects.toThrow('stop');
    late.reject(new Error('late'));
    await raceAbort(Promise.reject(new Error('at once')), controller.signal).catch(() => {});
    await macrotask();
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', listen);
  }
});

test('leaves no timer running if the work ends in time', async () => {
  const environment = simulatedEnvironment();
  const { scheduler } = environment;
  const limit = { timeoutMs: 1000, scheduler, late: () => new Error('late') };
  await expect(raceTime(() => 'done', limit)).resolves.toBe('done');
  await expect(raceTime(() => Promise.reject(new Error('no')), limit)).rejects.toThrow('no');
  expect(environment.pendingTimers).toBe(0);
  const raced = raceTime(() => never(), limit);
  await Promise.all([expect(raced).rejects.toThrow('late'), environment.advance(1000)]);
});
