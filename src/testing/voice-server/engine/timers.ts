// Scheduled tasks that can all be cancelled together.

import type { Scheduler } from '../../../actors/ports/environment.ts';

export type Timers = ReturnType<typeof timersOf>;

export function timersOf(scheduler: Scheduler) {
  const cancels = new Set<() => void>();

  return {
    /** Runs `task` once after `delayMs`. */
    later(task: () => void, delayMs: number): void {
      const cancel = scheduler.schedule(() => {
        cancels.delete(cancel);
        task();
      }, delayMs);
      cancels.add(cancel);
    },
    /** Cancels the tasks that are not due yet. */
    stop(): void {
      for (const cancel of cancels) cancel();
      cancels.clear();
    },
  };
}
