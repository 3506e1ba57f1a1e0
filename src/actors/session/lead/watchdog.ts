// Ends a wait for somebody who has fallen silent: a model that neither goes on nor ends.
//
// Owns:     one timer, and when there was last a sign of life.
// Does not: know what is waited for.

import type { Environment } from '../../ports/environment.ts';

export class Watchdog {
  readonly #environment: Environment;
  readonly #bark: () => void;
  #patienceMs = 0;
  #lastSign = 0;
  #cancel: (() => void) | null = null;

  /** `bark` is called once the patience is over; then nobody is watched any more. */
  constructor(environment: Environment, bark: () => void) {
    this.#environment = environment;
    this.#bark = bark;
  }

  /** Begins, or begins again: a sign of life is due within `patienceMs`, over and over. */
  watch(patienceMs: number): void {
    this.stop();
    this.#patienceMs = patienceMs;
    this.#lastSign = this.#environment.clock.now();
    this.#arm(patienceMs);
  }

  /** Costs next to nothing: the timer looks back instead of being moved. */
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
