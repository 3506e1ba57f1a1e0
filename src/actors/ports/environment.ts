// The only source of time and randomness. Every actor, operator, backoff and AI SDK call uses it, so that one seed
// reproduces a whole conversation; the linter forbids Date.now, setTimeout, Math.random and randomUUID elsewhere.

/** Reads the time. */
export interface Clock {
  /** Returns milliseconds since 1970-01-01T00:00Z. Never goes backwards within one process. */
  now(): number;
  /**
   * Returns milliseconds since 1970 by the wall clock, which may jump back when it is corrected. For comparison with
   * times of other systems: when a signature was made, when a connection ends, when other processes wrote entries.
   * @defaultValue now()
   */
  wall?(): number;
}

/**
 * Returns the wall clock time, for comparison with times of other systems: after the wall clock is corrected, this time
 * is correct too.
 */
export function wallTime(clock: Clock): number {
  return clock.wall?.() ?? clock.now();
}

/** Runs tasks later. */
export interface Scheduler {
  /**
   * Runs `task` once, `delayMs` from now (0 or less: as soon as possible, never before this call returns). Any delay is
   * supported, even above 2^31-1 ms. With `isBackground`, the task does not keep an otherwise idle process running.
   * @returns a function that cancels the task; a late or second call has no effect.
   */
  schedule(
    task: () => void,
    delayMs: number,
    options?: { readonly isBackground?: boolean },
  ): () => void;
  /**
   * Runs `task` after the event loop has handled timers and sockets. Tasks run in order, one per turn of the loop: the
   * work of subagents runs here, so that it never delays audio.
   */
  yieldThen(task: () => void): void;
}

/** Generates unique ids. */
export interface Ids {
  /** Returns a new id such as `sub_k3f9…`, unique among all processes that share a journal. */
  next(prefix: string): string;
  /**
   * Returns the id for this key; the same key always yields the same id, so that repeated work has the same ids. Absent
   * if work is never repeated, because it is continued from the journal.
   */
  of?(prefix: string, key: string): string;
}

/** Generates random numbers. */
export interface Random {
  /** Returns a uniformly distributed number in [0, 1). */
  next(): number;
}

/** The source of time, ids and randomness. */
export interface Environment {
  /** The time now. */
  readonly clock: Clock;
  /** Timers. */
  readonly scheduler: Scheduler;
  /** New ids. */
  readonly ids: Ids;
  /** Randomness that spreads retries out in time. */
  readonly random: Random;
}
