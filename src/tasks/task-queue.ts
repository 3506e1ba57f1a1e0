// The order in which the tasks of a manager run: so many at once, one at a time on a topic, and one at a time that
// writes a resource.
//
// Owns:     which tasks run, which wait, and what the running ones hold.
// Does not: know what a task does.
//
// Invariants
//   TASK-QUEUE-1. A task begins when it has a place and all that it needs, at once: it never holds a part and waits
//       for the rest, so tasks cannot wait for each other in a circle.
//   TASK-QUEUE-2. What a waiting task needs is not given to one that came later: nobody waits for ever.

import type { Scheduler } from '../actors/ports/environment.ts';
import { CapacityError } from '../values/errors.ts';

/** The resources that a task must have to run. */
export interface TaskNeeds {
  readonly topic: string | null;
  /** The resources that it writes. */
  readonly writes: readonly string[];
}

/** How a task waits. */
export interface TaskWait {
  readonly signal: AbortSignal;
  readonly scheduler: Scheduler;
  /** Absent: as long as it takes. */
  readonly timeoutMs?: number | undefined;
  /** Called if it has to wait, with the number of tasks before it. */
  waits?(before: number): void;
}

/** The reason for which a task waited too long. */
export type TaskWaitStage = 'semaphore' | 'lock';

/** A task waited longer than it may for its turn. */
export class TaskQueueTimeoutError extends CapacityError {
  readonly stage: TaskWaitStage;
  readonly waitedMs: number;
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
   * Waits for its turn. Returns the function that gives everything back, which may be called more than once.
   * @throws {TaskQueueTimeoutError} `TASK_QUEUE_TIMEOUT`; the reason of the signal if it aborts.
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
