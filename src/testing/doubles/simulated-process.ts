// One process in simulated time, from its start until it is killed. It shares its clock with the outside world. Once it
// has been killed, its timers do not fire and its output is discarded.
//
// Owns:     the timers of the process, and whether it is alive.
// Does not: know the code that runs in it.

import type { Environment } from '../../actors/ports/environment.ts';
import type { SimulatedEnvironment } from './simulated-environment.ts';

export class SimulatedProcess {
  /** The number of the process, starting at 1. */
  readonly number: number;
  /** The runtime's environment. */
  readonly environment: Environment;
  /** The environment that the app and its tools use. They must clean up their own timers. */
  readonly ofApp: Environment;
  readonly #timers = new Set<() => void>();
  readonly #timersOfApp = new Set<() => void>();
  #isAlive = true;

  constructor(number: number, world: SimulatedEnvironment) {
    this.number = number;
    this.environment = this.#view(world, this.#timers);
    this.ofApp = this.#view(world, this.#timersOfApp);
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** The number of the runtime's pending timers, including background timers. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Runs a task from outside the process, if the process is alive. */
  do(task: () => void): void {
    if (this.#isAlive) task();
  }

  kill(): void {
    this.#isAlive = false;
    for (const timers of [this.#timers, this.#timersOfApp]) {
      for (const cancel of timers) cancel();
      timers.clear();
    }
  }

  #view(
    { clock, scheduler, ids, random }: SimulatedEnvironment,
    timers: Set<() => void>,
  ): Environment {
    return {
      clock,
      ids,
      random,
      scheduler: {
        schedule: (task, delayMs, options) => {
          if (!this.#isAlive) return () => {};
          const cancel = scheduler.schedule(
            () => {
              timers.delete(cancel);
              task();
            },
            delayMs,
            options,
          );
          timers.add(cancel);
          return () => {
            timers.delete(cancel);
            cancel();
          };
        },
        yieldThen: (task) => {
          if (this.#isAlive) scheduler.yieldThen(() => this.do(task));
        },
      },
    };
  }
}
