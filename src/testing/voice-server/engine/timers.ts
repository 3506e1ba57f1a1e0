// Scheduled tasks that can all be cancelled at once.

import type { Scheduler } from '../../../actors/ports/environment.ts';

export class Timers {
  readonly #scheduler: Scheduler;
  readonly #cancels = new Set<() => void>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** Runs `task` once, `delayMs` from now. */
  later(task: () => void, delayMs: number): void {
    const cancel = this.#scheduler.schedule(() => {
      this.#cancels.delete(cancel);
      task();
    }, delayMs);
    this.#cancels.add(cancel);
  }

  /** Cancels the tasks that are not due yet. */
  stop(): void {
    for (const cancel of this.#cancels) cancel();
    this.#cancels.clear();
  }
}
