// One life of a process on simulated time: it shares the clock with the world outside, and when
// it is killed none of its timers ever fires again. What it still says goes to nobody.
//
// Owns:     the timers of the process, and whether it is alive.
// Does not: know what runs in it.

import type { Environment } from '../../actors/ports/environment.ts';
import type { SimulatedEnvironment } from '../doubles/simulated-environment.ts';

export class SimulatedProcess {
  /** Counts from 1. */
  readonly number: number;
  /** For the runtime. */
  readonly environment: Environment;
  /** For the app and its tools: what they leave behind is their own affair. */
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

  /** Timers of the runtime that wait, those in the background included. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Something from outside reaches it, if it is still there. */
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
