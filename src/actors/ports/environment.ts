// The only source of time and chance. Every actor, operator, backoff and AI SDK
// call takes both from here, so that one seed reproduces a whole conversation;
// the linter forbids Date.now, setTimeout, Math.random and randomUUID elsewhere.

/** Time that can be read. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00Z. Never goes back within one process. */
  now(): number;
}

/** Time that can be waited for. */
export interface Scheduler {
  /**
   * Runs `task` once, `delayMs` from now (0 or less: as soon as possible, never
   * before this call returns). Any delay is honoured, also above 2^31-1 ms.
   * With `isBackground` it does not keep a process running that has nothing else to do.
   * @returns a function that takes the task back; calling it late or twice does nothing.
   */
  schedule(
    task: () => void,
    delayMs: number,
    options?: { readonly isBackground?: boolean },
  ): () => void;
  /**
   * Runs `task` when the event loop has had a turn for timers and sockets.
   * Tasks run in order, one for each turn of the loop: this is the lane for the
   * work of subagents, which must never make audio late.
   */
  yieldThen(task: () => void): void;
}

/** Names that have not been used before. */
export interface Ids {
  /** A new id such as `sub_k3f9…`: unique in every process that shares a journal. */
  next(prefix: string): string;
}

/** Chance. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
}

/** Time and chance in one place. */
export interface Environment {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly ids: Ids;
  readonly random: Random;
}
