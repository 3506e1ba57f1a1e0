// An environment in which only the test advances time.

import type { Environment } from '../../../../src/actors/ports/environment.ts';

export interface ManualEnvironment extends Environment {
  /** Advances time and runs the due tasks in the order of their times. */
  advance(ms: number): void;
  /** The delays of the scheduled tasks that have neither run nor been cancelled. */
  readonly pending: readonly number[];
}

interface Task {
  readonly dueAt: number;
  readonly order: number;
  readonly run: () => void;
}

export function manualEnvironment(): ManualEnvironment {
  let now = 0;
  let order = 0;
  const tasks = new Set<Task>();

  const nextDueBy = (limit: number): Task | undefined =>
    [...tasks]
      .filter((task) => task.dueAt <= limit)
      .toSorted((a, b) => a.dueAt - b.dueAt || a.order - b.order)[0];

  return {
    clock: { now: () => now },
    scheduler: {
      schedule(run, delayMs) {
        const task: Task = { dueAt: now + Math.max(0, delayMs), order: (order += 1), run };
        tasks.add(task);
        return () => void tasks.delete(task);
      },
      yieldThen: (task) => void setImmediate(task),
    },
    ids: {
      next: () => {
        throw new Error('Not used by this adapter');
      },
    },
    random: {
      next: () => {
        throw new Error('Not used by this adapter');
      },
    },
    advance(ms) {
      const end = now + ms;
      for (let task = nextDueBy(end); task !== undefined; task = nextDueBy(end)) {
        tasks.delete(task);
        now = task.dueAt;
        task.run();
      }
      now = end;
    },
    get pending() {
      return [...tasks].map((task) => task.dueAt - now);
    },
  };
}
