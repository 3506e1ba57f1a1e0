// Stops waiting when a model is silent and neither continues nor finishes.
//
// Owns:     one timer, and the time of the model's last activity.
// Does not: know the reason for waiting.

import type { Environment } from '../../ports/environment.ts';

export class Watchdog {
  readonly #environment: Environment;
  readonly #onTimeout: () => void;
  #timeoutMs = 0;
  #lastSign = 0;
  #cancel: (() => void) | null = null;

  /** Calls `onTimeout` once when the time has elapsed, and then stops watching. */
  constructor(environment: Environment, onTimeout: () => void) {
    this.#environment = environment;
    this.#onTimeout = onTimeout;
  }

  /** Starts or restarts the watch. After that, the model must show activity at least every `timeoutMs`. */
  watch(timeoutMs: number): void {
    this.stop();
    this.#timeoutMs = timeoutMs;
    this.#lastSign = this.#environment.clock.now();
    this.#arm(timeoutMs);
  }

  /** Records activity. Cheap, because the timer only compares the time of the last activity and is not rescheduled. */
  touch(): void {
    this.#lastSign = this.#environment.clock.now();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  #arm(delayMs: number): void {
    this.#cancel = this.#environment.scheduler.schedule(() => {
      const leftMs = this.#lastSign + this.#timeoutMs - this.#environment.clock.now();
      this.#cancel = null;
      if (leftMs > 0) this.#arm(leftMs);
      else this.#onTimeout();
    }, delayMs);
  }
}
