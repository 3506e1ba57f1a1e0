// The only source of time and chance. Every actor, operator, backoff and AI SDK
// call takes both from here, so that one seed reproduces a whole conversation;
// the linter forbids Date.now, setTimeout, Math.random and randomUUID elsewhere.

/** Reads the time. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00Z. Never goes back within one process. */
  now(): number;
  /**
   * The same by the wall clock, which may go back when it is corrected. For times that others have set: of a signature, of
   * the end of a connection, of entries of other processes. @defaultValue now()
   */
  wall?(): number;
}

/** Reads the time that is compared with times of others: a clock that was once wrong is right again. */
export function wallTime(clock: Clock): number {
  return clock.wall?.() ?? clock.now();
}

/** Runs tasks later. */
export interface Scheduler {
  /**
   * Runs `task` once, `delayMs` from now (0 or less: as soon as possible, never before this call returns).
   * Any delay is honoured, even above 2^31-1 ms. With `isBackground` the task does not keep an otherwise idle
   * process running.
   * @returns a function that cancels the task; calling it late or twice does nothing.
   */
  schedule(
    task: () => void,
    delayMs: number,
    options?: { readonly isBackground?: boolean },
  ): () => void;
  /**
   * Runs `task` after the event loop has served timers and sockets. Tasks run in order, one per turn of the
   * loop: this is the lane for the work of subagents, which must never delay audio.
   */
  yieldThen(task: () => void): void;
}

/** Generates unique ids. */
export interface Ids {
  /** Returns a new id such as `sub_k3f9…`: unique in every process that shares a journal. */
  next(prefix: string): string;
  /**
   * Returns the id of what has this key: the same id whenever the work that needs it is repeated. Absent: only its first
   * id is ever used, since the work continues from the journal.
   */
  of?(prefix: string, key: string): string;
}

/** Generates random numbers. */
export interface Random {
  /** Returns a uniform number in [0, 1). */
  next(): number;
}

/** The source of time, ids and chance. */
export interface Environment {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly ids: Ids;
  readonly random: Random;
}
