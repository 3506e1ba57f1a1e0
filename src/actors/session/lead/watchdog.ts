// Ends the wait for a silent model, which neither continues nor ends.
//
// Owns:     one timer, and the time of the last sign of life.
// Does not: know what is waited for.

import type { Environment } from '../../ports/environment.ts';

export class Watchdog {
  readonly #environment: Environment;
  readonly #bark: () => void;
  #patienceMs = 0;
  #lastSign = 0;
  #cancel: (() => void) | null = null;

  /** Calls `bark` once when the patience is over; then nothing is watched any more. */
  constructor(environment: Environment, bark: () => void) {
    this.#environment = environment;
    this.#bark = bark;
  }

  /** Begins, or begins again: a sign of life is due within `patienceMs`, repeatedly. */
  watch(patienceMs: number): void {
    this.stop();
    this.#patienceMs = patienceMs;
    this.#lastSign = this.#environment.clock.now();
    this.#arm(patienceMs);
  }

  /** Records a sign of life. Cheap: the timer looks back instead of being moved. */
  sign(): void {
    this.#lastSign = this.#environment.clock.now();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }

  #arm(delayMs: number): void {
    this.#cancel = this.#environment.scheduler.schedule(() => {
      const leftMs = this.#lastSign + this.#patienceMs - this.#environment.clock.now();
      this.#cancel = null;
      if (leftMs > 0) this.#arm(leftMs);
      else this.#bark();
    }, delayMs);
  }
}
