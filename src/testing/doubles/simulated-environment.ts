// Time and randomness for tests: the clock advances only on request, and a seed always produces the same ids and random
// numbers.
//
// Owns:     simulated time, timers, ids and random numbers.
// Does not: simulate the event loop. Promises and `yieldThen` run for real, in order.
//
// Invariants
//   SIMULATED-ENVIRONMENT-1. Timers fire one by one, in the order in which they are due. Before the next timer fires,
//       all work that the previous timer caused is done, including the timers that it set.
//   SIMULATED-ENVIRONMENT-2. Nothing here depends on real time.

import type { Environment } from '../../actors/ports/environment.ts';
import { z } from 'zod';
import { check, type ChecksOf } from '../../values/checks.ts';
import { mulberry32 } from './chance.ts';

/** The options of `simulatedEnvironment`. */
export interface SimulatedEnvironmentOptions {
  /** @defaultValue 1 */
  readonly seed?: number;
  /** Milliseconds since 1970. @defaultValue 1_700_000_000_000 */
  readonly startAt?: number;
}

/** The time, ids and random numbers in a test, which the test controls. */
export interface SimulatedEnvironment extends Environment {
  /** Waits until all work that needs no time to pass is done. */
  settle(): Promise<void>;
  /** Advances time step by step and waits for all work that becomes due. */
  advance(ms: number): Promise<void>;
  /** The number of pending timers, not counting background timers, which do not keep the program busy. */
  readonly pendingTimers: number;
  /** The number of pending background timers, such as those of keep-alives. */
  readonly backgroundTimers: number;
}

interface Timer {
  readonly dueAt: number;
  readonly number: number;
  readonly task: () => void;
  readonly isBackground: boolean;
}

/** After this number of idle event loop turns, no more work can follow. */
const QUIET_TURNS = 4;

const optionsSchema = z.strictObject({
  seed: z.number().optional(),
  startAt: z.number().optional(),
} satisfies ChecksOf<SimulatedEnvironmentOptions>);

/**
 * Creates the time, ids and random numbers for a test. Time passes only in `advance()`, and a seed makes a run
 * repeatable.
 * @throws {ConfigurationError} `INVALID_OPTION`
 */
export function simulatedEnvironment(
  options: SimulatedEnvironmentOptions = {},
): SimulatedEnvironment {
  const { seed = 1, startAt = 1_700_000_000_000 } = check(
    'simulatedEnvironment',
    optionsSchema,
    options,
  );
  let now = startAt;
  let numbers = 0;
  let activity = 0;
  const timers = new Set<Timer>();
  const counts = new Map<string, number>();
  const lane: (() => void)[] = [];
  const runOne = (): void => {
    activity += 1;
    const task = lane.shift();
    if (lane.length > 0) setImmediate(runOne);
    task?.();
  };
  const settle = async (): Promise<void> => {
    for (let quiet = 0, seen = activity; quiet < QUIET_TURNS; quiet += 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (lane.length > 0 || activity !== seen) quiet = 0;
      seen = activity;
    }
  };
  const due = (): Timer | undefined => {
    let first: Timer | undefined;
    for (const timer of timers)
      if (
        !first ||
        timer.dueAt < first.dueAt ||
        (timer.dueAt === first.dueAt && timer.number < first.number)
      )
        first = timer;
    return first;
  };
  return {
    clock: { now: () => now },
    scheduler: {
      schedule(task, delayMs, { isBackground = false } = {}) {
        activity += 1;
        numbers += 1;
        const timer = { dueAt: now + Math.max(0, delayMs), number: numbers, task, isBackground };
        timers.add(timer);
        // A timer that is due immediately needs no time to pass.
        if (delayMs <= 0)
          setImmediate(() => {
            if (!timers.delete(timer)) return;
            activity += 1;
            task();
          });
        return () => {
          timers.delete(timer);
        };
      },
      yieldThen(task) {
        lane.push(task);
        if (lane.length === 1) setImmediate(runOne);
      },
    },
    ids: {
      next(prefix) {
        const count = (counts.get(prefix) ?? 0) + 1;
        counts.set(prefix, count);
        return `${prefix}_${count}`;
      },
    },
    random: mulberry32(seed),
    settle,
    async advance(ms) {
      const end = now + ms;
      await settle();
      for (let timer = due(); timer && timer.dueAt <= end; timer = due()) {
        timers.delete(timer);
        now = Math.max(now, timer.dueAt);
        activity += 1;
        timer.task();
        await settle();
      }
      now = end;
      await settle();
    },
    get pendingTimers() {
      return [...timers].filter(({ isBackground }) => !isBackground).length;
    },
    get backgroundTimers() {
      return [...timers].filter(({ isBackground }) => isBackground).length;
    },
  };
}
