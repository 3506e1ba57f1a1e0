// The setup and the report of a measuring process.

import { setImmediate as turn } from 'node:timers/promises';

/** User and system time of this process so far, in microseconds, all threads. */
export function cpuMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Collects all garbage. Needs `--expose-gc`. */
export async function collectGarbage(): Promise<void> {
  if (!globalThis.gc) throw new Error('Expected node to be started with --expose-gc');
  for (let round = 0; round < 4; round += 1) {
    globalThis.gc();
    await turn();
  }
}

/** Bytes of live JavaScript objects. */
export async function heapBytes(): Promise<number> {
  await collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Lets the event loop turn until `isTrue`; fails after a minute. */
export async function until(isTrue: () => boolean, what: string): Promise<void> {
  const giveUpAt = performance.now() + 60_000;
  while (!isTrue()) {
    if (performance.now() > giveUpAt) throw new Error(`Never happened: ${what}`);
    await turn();
  }
}

/** Waits until all work that is due now is done. */
export async function settled(): Promise<void> {
  for (let quiet = 0; quiet < 20; quiet += 1) await turn();
}
