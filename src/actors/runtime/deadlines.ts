// The deadlines of one unit: each armed once, under the name of the activity that it belongs to.
//
// Owns:     the timers.
// Does not: know what a deadline means: it brings about an event when it is due.

import type { DeadlineInput } from '../../machines/index.ts';
import type { Environment } from '../ports/environment.ts';

interface Armed {
  readonly dueAt: number;
  readonly cancel: () => void;
}

export class Deadlines {
  readonly #armed = new Map<string, Armed>();

  /** None is left. */
  get isEmpty(): boolean {
    return this.#armed.size === 0;
  }

  /** When the first one is due, milliseconds since 1970; `Infinity`: there is none. */
  get nextDueAt(): number {
    let next = Infinity;
    for (const { dueAt } of this.#armed.values()) next = Math.min(next, dueAt);
    return next;
  }

  /** Takes the place of the one that had this key; `due` is called once, unless it is disarmed before. */
  arm(
    key: string,
    { dueAt }: Pick<DeadlineInput, 'dueAt'>,
    { clock, scheduler }: Environment,
    due: () => void,
  ): void {
    this.disarm(key);
    const cancel = scheduler.schedule(() => {
      this.#armed.delete(key);
      due();
    }, dueAt - clock.now());
    this.#armed.set(key, { dueAt, cancel });
  }

  disarm(key: string): void {
    this.#armed.get(key)?.cancel();
    this.#armed.delete(key);
  }

  disarmAll(): void {
    for (const key of this.#armed.keys()) this.disarm(key);
  }
}
