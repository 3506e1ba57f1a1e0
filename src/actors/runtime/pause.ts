// A pause before another attempt.

import type { Scheduler } from '../ports/environment.ts';

/** Resolves after `ms`; rejects with the reason of the signal when that aborts first. */
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
