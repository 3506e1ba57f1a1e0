// The deadlines of one unit: each is armed once, under the name of its activity.
//
// Owns:     the timers.
// Does not: know the meaning of a deadline: a due deadline only causes an event.

import type { DeadlineInput } from '../../machines/index.ts';
import type { Environment } from '../ports/environment.ts';

interface Armed {
  readonly dueAt: number;
  readonly cancel: () => void;
}

export class Deadlines {
  readonly #armed = new Map<string, Armed>();

  /** Whether no deadline is armed. */
  get isEmpty(): boolean {
    return this.#armed.size === 0;
  }

  /** When the first deadline is due, in milliseconds since 1970; `Infinity` if there is none. */
  get nextDueAt(): number {
    let next = Infinity;
    for (const { dueAt } of this.#armed.values()) next = Math.min(next, dueAt);
    return next;
  }

  /**
   * Arms a deadline in place of the one with the same key; `due` is called once, unless the deadline is
   * disarmed before.
   */
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
