// Ends the wait for a silent model that neither continues nor ends.
//
// Owns:     one timer, and the time of the last sign of life.
// Does not: know why it waits.

import type { Environment } from '../../ports/environment.ts';

export class Watchdog {
  readonly #environment: Environment;
  readonly #onTimeout: () => void;
  #timeoutMs = 0;
  #lastSign = 0;
  #cancel: (() => void) | null = null;

  /** Calls `onTimeout` once when the time is over, and then stops watching. */
  constructor(environment: Environment, onTimeout: () => void) {
    this.#environment = environment;
    this.#onTimeout = onTimeout;
  }

  /** Starts or restarts the watch: a sign of life is due within every `timeoutMs`. */
  watch(timeoutMs: number): void {
    this.stop();
    this.#timeoutMs = timeoutMs;
    this.#lastSign = this.#environment.clock.now();
    this.#arm(timeoutMs);
  }

  /** Records a sign of life. Cheap: the timer checks the time of the last sign instead of being moved. */
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
