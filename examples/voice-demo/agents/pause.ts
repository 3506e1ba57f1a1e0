// Real work takes time; here the demo's tools wait instead.

import type { Environment } from 'offstage';

/** Resolves after `delayMs`, or rejects with the signal's reason if the signal aborts first. */
export function pause(
  environment: Environment,
  delayMs: number,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => {
      cancel();
      reject(signal?.reason as Error);
    };
    const cancel = environment.scheduler.schedule(() => {
      signal?.removeEventListener('abort', aborted);
      resolve();
    }, delayMs);
    if (signal?.aborted) aborted();
    else signal?.addEventListener('abort', aborted, { once: true });
  });
}
