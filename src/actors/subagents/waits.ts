// The waits that are open: each ends once, by what it waits for, its time or its signal.
//
// Owns:     open waits, their timers, what is left of them on signals.
// Does not: know when what is waited for has come (awaiting.ts does).
//
// Invariants
//   WAITS-1. `settle` of a wait is called exactly once; then nothing of it is left anywhere.

import type { Environment } from '../ports/environment.ts';
import type { SubagentRecord } from './family.ts';
import type { Need } from './wait-graph.ts';

/** How a wait ended: as an answer, or without one. */
export type WaitEnd = 'ended' | 'asked' | 'user' | 'timeout' | 'cancelled';

export interface Wait {
  /** The subagent that waits; null: the lead agent, or a program. */
  readonly by: string | null;
  readonly mode: Need['mode'];
  readonly records: readonly SubagentRecord[];
  /** Does a question of somebody else end it, too? */
  readonly heedsOthers: boolean;
  /** Do words of the user, for whom the lead agent waits, end it? */
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

  /** A copy: ending waits does not disturb who looks at it. */
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

  /** The first time counts. */
  end(wait: Wait, why: WaitEnd): void {
    const settle = this.#open.get(wait);
    this.#open.delete(wait);
    settle?.(why);
  }
}

/** What the one who waits needs before it goes on. */
export function needOf({ mode, records }: Wait): Need {
  return { mode, of: records.map(({ id }) => id) };
}
