// Time and randomness in workerd, without `node:*`.
//
// Does not: keep an object in memory for long. A pending timer keeps the object in memory and is billed. For background
//           timers of more than a minute, the session therefore relies on the object's alarm, which
//           `durableObjectJournal` sets.

import type { Environment } from '../../actors/ports/environment.ts';

const LONGEST_TIMER_MS = 2 ** 31 - 1;
const LONGEST_BACKGROUND_MS = 60_000;
const ID_BYTES = 9;

/** The environment of a session in a Durable Object. */
export function workersEnvironment(): Environment {
  let latest = 0;
  const lane: (() => void)[] = [];
  /** One task runs in each turn of the event loop. */
  const runOne = (): void => {
    const task = lane.shift();
    if (lane.length > 0) setTimeout(runOne, 0);
    task?.();
  };
  return {
    clock: {
      // In deployed Workers, the clock stops while code runs and advances with I/O.
      now: () => (latest = Math.max(latest, Date.now())),
      wall: () => Date.now(),
    },
    scheduler: {
      schedule(task, delayMs, { isBackground = false } = {}) {
        if (isBackground && delayMs > LONGEST_BACKGROUND_MS) return () => {};
        let timer: ReturnType<typeof setTimeout>;
        let leftMs = Math.max(0, delayMs);
        const arm = (): void => {
          const sliceMs = Math.min(leftMs, LONGEST_TIMER_MS);
          leftMs -= sliceMs;
          timer = setTimeout(() => (leftMs > 0 ? arm() : task()), sliceMs);
        };
        arm();
        return () => clearTimeout(timer);
      },
      yieldThen(task) {
        lane.push(task);
        if (lane.length === 1) setTimeout(runOne, 0);
      },
    },
    ids: {
      next: (prefix) => `${prefix}_${idText(crypto.getRandomValues(new Uint8Array(ID_BYTES)))}`,
    },
    random: { next: () => Math.random() },
  };
}

function idText(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
}
