// The order in which a manager's tasks run. At most `maxRunning` tasks run at the same time, and at most one task per
// topic or written resource.
//
// Owns:     the running and the waiting tasks, and the locks of the running tasks.
// Does not: know what a task does.
//
// Invariants
//   TASK-QUEUE-1. A task starts when its slot and all its locks are free at the same time. It holds no lock while it
//       waits for another, so tasks cannot deadlock.
//   TASK-QUEUE-2. A later task never receives a lock that a waiting task needs, so no task waits forever.

import type { Scheduler } from '../actors/ports/environment.ts';
import { CapacityError } from '../values/errors.ts';

/** The resources that a task needs in order to run. */
export interface TaskNeeds {
  readonly topic: string | null;
  /** The resources that the task writes to. */
  readonly writes: readonly string[];
}

/** The options of a wait. */
export interface TaskWait {
  readonly signal: AbortSignal;
  readonly scheduler: Scheduler;
  /** Absent: no limit. */
  readonly timeoutMs?: number | undefined;
  /** Called if the task must wait, with the number of tasks before it. */
  waits?(before: number): void;
}

/** The reason why the task was still waiting: a slot or a lock. */
export type TaskWaitStage = 'semaphore' | 'lock';

/** A task has waited too long in the queue. */
export class TaskQueueTimeoutError extends CapacityError {
  /** The stage in which the task was waiting. */
  readonly stage: TaskWaitStage;
  /** How long the task waited, in milliseconds. */
  readonly waitedMs: number;
  /** The number of waiting tasks. */
  readonly queueLength: number;

  constructor(stage: TaskWaitStage, waitedMs: number, queueLength: number) {
    const what = stage === 'semaphore' ? 'a free place' : 'what another task is writing';
    super(
      'TASK_QUEUE_TIMEOUT',
      `The task waited ${waitedMs} ms for ${what}, and did not begin; ${queueLength} tasks were waiting`,
    );
    this.stage = stage;
    this.waitedMs = waitedMs;
    this.queueLength = queueLength;
  }
}

interface Waiting {
  readonly holds: readonly string[];
  begin(): void;
}

export class TaskQueue {
  readonly #maxRunning: number;
  #running = 0;
  #waiting: Waiting[] = [];
  readonly #held = new Set<string>();

  constructor(maxRunning: number) {
    this.#maxRunning = maxRunning;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Waits until the task may run. Returns the function that frees the task's slot and locks. Repeated calls have no
   * effect.
   * @throws {TaskQueueTimeoutError} `TASK_QUEUE_TIMEOUT`; if the signal aborts, the signal's reason.
   */
  async acquire({ topic, writes }: TaskNeeds, wait: TaskWait): Promise<() => void> {
    const { signal, scheduler, timeoutMs } = wait;
    signal.throwIfAborted();
    const holds = [
      ...(topic === null ? [] : [`topic ${topic}`]),
      ...new Set(writes.map((resource) => `write ${resource}`)),
    ];
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { holds, begin: resolve };
    this.#waiting.push(waiting);
    this.#fill();
    if (this.#waiting.includes(waiting)) {
      wait.waits?.(this.#waiting.indexOf(waiting));
      const leave = (error: unknown): void => {
        const at = this.#waiting.indexOf(waiting);
        if (at < 0) return;
        this.#waiting.splice(at, 1);
        this.#fill();
        reject(error);
      };
      const abort = (): void => leave(signal.reason);
      signal.addEventListener('abort', abort, { once: true });
      const cancelTimer =
        timeoutMs === undefined
          ? () => {}
          : scheduler.schedule(
              () => leave(new TaskQueueTimeoutError(this.#stage, timeoutMs, this.waiting)),
              timeoutMs,
            );
      try {
        await promise;
      } finally {
        cancelTimer();
        signal.removeEventListener('abort', abort);
      }
    }
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#running -= 1;
      for (const key of holds) this.#held.delete(key);
      this.#fill();
    };
  }

  get #stage(): TaskWaitStage {
    return this.#running >= this.#maxRunning ? 'semaphore' : 'lock';
  }

  /** TASK-QUEUE-1, TASK-QUEUE-2 */
  #fill(): void {
    const taken = new Set(this.#held);
    const still: Waiting[] = [];
    const begun: Waiting[] = [];
    for (const one of this.#waiting) {
      const isFree = this.#running < this.#maxRunning && !one.holds.some((key) => taken.has(key));
      for (const key of one.holds) taken.add(key);
      if (!isFree) {
        still.push(one);
        continue;
      }
      this.#running += 1;
      for (const key of one.holds) this.#held.add(key);
      begun.push(one);
    }
    this.#waiting = still;
    for (const one of begun) one.begin();
  }
}
