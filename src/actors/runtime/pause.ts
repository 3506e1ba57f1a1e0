// A pause before another attempt.

import { backoffMs } from '../../machines/index.ts';
import { isA } from '../../values/errors.ts';
import type { Environment, Scheduler } from '../ports/environment.ts';
import { JobError } from '../ports/jobs.ts';

/** Resolves after `ms`; rejects with the signal's reason if the signal aborts first. */
export function pause(scheduler: Scheduler, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = scheduler.schedule(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, ms);
    const abort = (): void => {
      cancel();
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the reason is the caller's
      reject(signal.reason);
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}

/**
 * Calls `ask` until the engine is reachable, with pauses of `baseMs` to `maxMs`.
 * @throws the signal's reason, or an error that is not retryable.
 */
export async function untilReached<T>(
  ask: () => Promise<T>,
  { scheduler, random }: Environment,
  signal: AbortSignal,
  { baseMs: baseDelayMs, maxMs: maxDelayMs }: { readonly baseMs: number; readonly maxMs: number },
  report: (error: unknown) => void,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await ask();
    } catch (error) {
      if (signal.aborted || !isA(error, JobError) || !error.retryable) throw error;
      report(error);
      const ms = backoffMs({ baseDelayMs, maxDelayMs }, attempt, random.next());
      await pause(scheduler, ms, signal);
    }
  }
}
