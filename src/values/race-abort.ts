// Races work against an abort signal and against a time limit.
//
// Invariants
//   RACE-ABORT-1. The race rejects with `signal.reason` as soon as the signal aborts, even if the work continues.
//   RACE-ABORT-2. After the race has settled, it has no listener on the signal.
//   RACE-ABORT-3. A late rejection of the work is handled.

/**
 * Returns the result of `work`, unless `signal` aborts first. The work itself continues; pass `signal` to the work to
 * stop it as well.
 * @throws the error of `work`, or `signal.reason`.
 */
export function raceAbort<T>(work: T | PromiseLike<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the caller's reason is passed on unchanged
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    Promise.resolve(work).then(
      (value) => {
        signal.removeEventListener('abort', abort);
        resolve(value);
      },
      (error: unknown) => {
        signal.removeEventListener('abort', abort);
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the work's own error
        reject(error);
      },
    );
  });
}

export interface TimeLimit {
  readonly timeoutMs: number;
  readonly scheduler: { schedule(task: () => void, delayMs: number): () => void };
  /** Creates the error for work that has exceeded the time limit. */
  readonly late: () => Error;
}

/** Runs `work` with a signal that aborts with `late()` after `timeoutMs`. */
export async function inTime<T>(
  work: (signal: AbortSignal) => T | PromiseLike<T>,
  { timeoutMs, scheduler, late }: TimeLimit,
): Promise<T> {
  const controller = new AbortController();
  const untimer = scheduler.schedule(() => controller.abort(late()), timeoutMs);
  try {
    return await work(controller.signal);
  } finally {
    untimer();
  }
}

/**
 * Like `inTime`, but for work that may ignore its signal: returns the result of `work`, unless the time limit is
 * exceeded first.
 * @throws the error of `work`, or `late()`.
 */
export function raceTime<T>(
  work: (signal: AbortSignal) => T | PromiseLike<T>,
  limit: TimeLimit,
): Promise<T> {
  return inTime((signal) => raceAbort(work(signal), signal), limit);
}
