// The open waits: each ends once, by its condition, its time or its signal.
//
// Owns:     open waits, their timers, their listeners on signals.
// Does not: decide when the condition of a wait is met (awaiting.ts does).
//
// Invariants
//   WAITS-1. `settle` of a wait is called exactly once; then no timer and no listener of it is left.

import type { Environment } from '../ports/environment.ts';
import type { SubagentRecord } from './subagent-registry.ts';
import type { Need } from './wait-graph.ts';

/** The reason for which a wait ended: with an answer, or without one. */
export type WaitEnd = 'ended' | 'asked' | 'user' | 'timeout' | 'cancelled';

export interface Wait {
  /** The subagent that waits; null: the lead agent, or a program. */
  readonly by: string | null;
  readonly mode: Need['mode'];
  readonly records: readonly SubagentRecord[];
  /** True if a question of another subagent ends it, too. */
  readonly heedsOthers: boolean;
  /** True if words of the user, for whom the lead agent waits, end it. */
  readonly heedsUser: boolean;
}

interface WaitOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  settle(why: WaitEnd): void;
}

export class Waits {
  readonly #scheduler: Environment['scheduler'];
  readonly #open = new Map<Wait, (why: WaitEnd) => void>();

  constructor({ scheduler }: Pick<Environment, 'scheduler'>) {
    this.#scheduler = scheduler;
  }

  get count(): number {
    return this.#open.size;
  }

  /** A copy: ending waits does not disturb its reader. */
  get all(): readonly Wait[] {
    return [...this.#open.keys()];
  }

  by(id: string): readonly Wait[] {
    return this.all.filter((wait) => wait.by === id);
  }

  begin(wait: Wait, { timeoutMs, signal, settle }: WaitOptions): void {
    const abort = (): void => this.end(wait, 'cancelled');
    const stopClock =
      timeoutMs === Infinity
        ? () => {}
        : this.#scheduler.schedule(() => this.end(wait, 'timeout'), timeoutMs);
    signal?.addEventListener('abort', abort, { once: true });
    this.#open.set(wait, (why) => {
      stopClock();
      signal?.removeEventListener('abort', abort);
      settle(why);
    });
  }

  /** Ends a wait; the first reason counts. */
  end(wait: Wait, why: WaitEnd): void {
    const settle = this.#open.get(wait);
    this.#open.delete(wait);
    settle?.(why);
  }
}

/** Returns the need of the waiting agent before it continues. */
export function needOf({ mode, records }: Wait): Need {
  return { mode, of: records.map(({ id }) => id) };
}
