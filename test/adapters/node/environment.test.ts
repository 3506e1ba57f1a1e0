import { execFileSync } from 'node:child_process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('yieldThen', () => {
  test('runs tasks in order, one per event loop turn', async () => {
    const { scheduler } = nodeEnvironment();
    const ran: number[] = [];
    for (let task = 0; task < 3; task += 1) scheduler.yieldThen(() => ran.push(task));
    expect(ran).toEqual([]);
    // Each turn of the test comes after one turn of the lane.
    const seen: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      await turn();
      seen.push(ran.length);
    }
    expect(ran).toEqual([0, 1, 2]);
    expect(seen).toEqual([1, 2, 3]);
  });

  test('runs each task once, even when tasks add a thousand more', async () => {
    const { scheduler } = nodeEnvironment();
    const ran: number[] = [];
    let next = 0;
    const bring = (): void => {
      const task = (next += 1);
      scheduler.yieldThen(() => {
        ran.push(task);
        if (next < 1000) bring();
        if (next < 1000 && task % 3 === 0) bring();
      });
    };
    for (let begun = 0; begun < 5; begun += 1) bring();
    while (ran.length < 1000) await turn();
    await turn();
    expect(ran).toEqual(Array.from({ length: 1000 }, (_, index) => index + 1));
  });

  test('releases finished tasks, even when the queue is never empty', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const { scheduler } = nodeEnvironment();
    const done: WeakRef<object>[] = [];
    const work = (left: number): void => {
      const large = { left };
      done.push(new WeakRef(large));
      scheduler.yieldThen(() => {
        if (large.left > 0) work(large.left - 1);
      });
    };
    // There are two chains, so the lane always contains a task from the other one.
    work(1000);
    work(1000);
    while (done.length < 2000) await turn();
    await turn();
    collect();
    await turn();
    collect();
    const kept = done.filter((ref) => ref.deref() !== undefined).length;
    expect(kept).toBeLessThan(600);
  });
});

describe('schedule', () => {
  test.each([0, -5])(
    'runs a task with a delay of %d ms in the same event loop turn, after the call returns',
    async (ms) => {
      const { scheduler } = nodeEnvironment();
      // Repeated often, because a timer of 1 ms may expire in either order.
      for (let round = 0; round < 200; round += 1) {
        const ran: string[] = [];
        scheduler.schedule(() => ran.push('task'), ms);
        ran.push('returned');
        await Promise.resolve();
        expect(ran).toEqual(['returned']);
        await turn();
        expect(ran).toEqual(['returned', 'task']);
      }
    },
  );

  test.each([0, 1])(
    'does not run a cancelled task with a delay of %d ms, even if it is cancelled twice',
    async (ms) => {
      const { scheduler } = nodeEnvironment();
      const ran: number[] = [];
      const takeBack = scheduler.schedule(() => ran.push(ms), ms);
      takeBack();
      takeBack();
      await new Promise<void>((resolve) => scheduler.schedule(resolve, ms + 1));
      expect(ran).toEqual([]);
    },
  );

  test('does not keep the process alive for a background task', () => {
    const script = `
      const { nodeEnvironment } = await import(process.argv[1]);
      const { scheduler } = nodeEnvironment();
      const again = () => scheduler.schedule(again, 0, { isBackground: true });
      again();
      scheduler.schedule(() => {}, 86_400_000, { isBackground: true });
      console.log('over');`;
    const module = new URL('../../../src/adapters/node/index.ts', import.meta.url).href;
    const args = ['--input-type=module', '--eval', script, module];
    expect(execFileSync(process.execPath, args, { encoding: 'utf8', timeout: 50_000 })).toBe(
      'over\n',
    );
  });
});

test('creates unique ids from the prefix and 72 random bits', () => {
  const { ids } = nodeEnvironment();
  const made = Array.from({ length: 2000 }, () => ids.next('sub'));
  for (const id of made) expect(id).toMatch(/^sub_[\w-]{12}$/);
  expect(new Set(made).size).toBe(made.length);
  expect(ids.next('ses')).toMatch(/^ses_/);
});

describe('ENVIRONMENT-2: the clock', () => {
  const hour = 3_600_000;

  function set() {
    const wall = vi.spyOn(Date, 'now').mockReturnValue(10 * hour);
    const monotonic = vi.spyOn(performance, 'now').mockReturnValue(500.25);
    onTestFinished(() => {
      wall.mockRestore();
      monotonic.mockRestore();
    });
    return { wall, monotonic, clock: nodeEnvironment().clock };
  }

  test('follows the wall clock', () => {
    const { wall, monotonic, clock } = set();
    expect(clock.now()).toBe(10 * hour);
    wall.mockReturnValue(10 * hour + 7);
    monotonic.mockReturnValue(507.75);
    expect(clock.now()).toBe(10 * hour + 7);
    wall.mockReturnValue(20 * hour);
    expect(clock.now()).toBe(20 * hour);
  });

  test('keeps running when the wall clock is set back, until the wall clock catches up', () => {
    const { wall, monotonic, clock } = set();
    clock.now();
    wall.mockReturnValue(9 * hour);
    expect(clock.now()).toBe(10 * hour);
    monotonic.mockReturnValue(800.25);
    wall.mockReturnValue(9 * hour + 300);
    expect(clock.now()).toBe(10 * hour + 300);
    wall.mockReturnValue(11 * hour);
    expect(clock.now()).toBe(11 * hour);
  });

  test('exposes the wall-clock time, which goes back when the clock is corrected', () => {
    const { wall, clock } = set();
    wall.mockReturnValue(970 * hour);
    expect(clock.now()).toBe(970 * hour);
    wall.mockReturnValue(11 * hour);
    expect([clock.now(), clock.wall?.()]).toEqual([970 * hour, 11 * hour]);
  });

  test('never goes back, even when both host clocks do', () => {
    const { wall, monotonic, clock } = set();
    clock.now();
    wall.mockReturnValue(0);
    monotonic.mockReturnValue(0);
    expect(clock.now()).toBe(10 * hour);
  });
});

test('runs and cancels tasks in order on a host without setImmediate', async () => {
  vi.stubGlobal('setImmediate', undefined);
  const { scheduler } = nodeEnvironment();
  vi.unstubAllGlobals();
  const ran: string[] = [];
  scheduler.yieldThen(() => ran.push('first'));
  const cancel = scheduler.schedule(() => ran.push('cancelled'), 0, { isBackground: true });
  scheduler.schedule(() => {
    ran.push('at once');
    scheduler.yieldThen(() => ran.push('last'));
  }, 0);
  scheduler.yieldThen(() => ran.push('second'));
  cancel();
  expect(ran).toEqual([]);
  while (!ran.includes('last')) await turn();
  expect(ran.toSorted()).toEqual(['at once', 'first', 'last', 'second']);
  expect(ran.indexOf('first')).toBeLessThan(ran.indexOf('second'));
  expect(ran.indexOf('second')).toBeLessThan(ran.indexOf('last'));
});
