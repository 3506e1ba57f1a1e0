// The timer of the sweep: armed as long as time can change something.
//
// Owns:     one timer, which by itself does not keep a process running.
// Does not: know what a sweep does.

import type { Scheduler } from '../ports/environment.ts';

export interface SweeperOptions {
  readonly scheduler: Scheduler;
  /** Interval of the sweep; 0: never. */
  readonly intervalMs: number;
  isNeeded(): boolean;
  sweep(): void;
}

export class Sweeper {
  readonly #options: SweeperOptions;
  #stop: (() => void) | null = null;
  #isDisposed = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  /** Arms or cancels the timer, according to whether it is needed. */
  update(): void {
    const { scheduler, intervalMs, isNeeded, sweep } = this.#options;
    if (this.#isDisposed || intervalMs === 0 || !isNeeded()) {
      this.#stop?.();
      this.#stop = null;
      return;
    }
    this.#stop ??= scheduler.schedule(
      () => {
        this.#stop = null;
        sweep();
        this.update();
      },
      intervalMs,
      { isBackground: true },
    );
  }

  dispose(): void {
    this.#isDisposed = true;
    this.update();
  }
}
