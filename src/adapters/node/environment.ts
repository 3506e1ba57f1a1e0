// Real time and real chance, from Node.js. The one place where they come from.

import { randomFillSync } from 'node:crypto';
import type { Environment } from '../../actors/ports/environment.ts';

/** Node sets a longer delay to 1 ms. Source: nodejs.org, `setTimeout` (2026). */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** 9 bytes. */
const ID_CHARACTERS = 12;
/** Done tasks that the lane may still hold. */
const LONGEST_TAIL = 256;
/** Chance is drawn for so many at once: a call for each id costs more than all the rest of it. */
const IDS_IN_POOL = 256;

/** The environment of a process that runs for real. */
export function nodeEnvironment(): Environment {
  let latest = 0;
  let lane: (() => void)[] = [];
  let next = 0;
  // One task for each turn of the event loop: timers and sockets come in between.
  const runOne = (): void => {
    const task = lane[next++];
    if (next < lane.length) setImmediate(runOne);
    // Done tasks go in bulk: a lane that is never empty must not keep them.
    if (next === lane.length || next === LONGEST_TAIL) {
      lane = lane.slice(next);
      next = 0;
    }
    task?.();
  };
  const bytes = Buffer.alloc((ID_CHARACTERS * IDS_IN_POOL * 3) / 4);
  let pool = '';
  return {
    clock: {
      now() {
        // The wall clock may be set back; ours never goes back.
        latest = Math.max(latest, Date.now());
        return latest;
      },
    },
    scheduler: {
      schedule(task, delayMs, { isBackground = false } = {}) {
        // A timer of 0 ms is one of 1 ms: what waits for nothing would wait for it.
        if (delayMs <= 0) {
          const immediate = setImmediate(task);
          if (isBackground) immediate.unref();
          return () => clearImmediate(immediate);
        }
        let timer: NodeJS.Timeout;
        let leftMs = delayMs;
        const arm = (): void => {
          const sliceMs = Math.min(leftMs, LONGEST_TIMER_MS);
          leftMs -= sliceMs;
          timer = setTimeout(() => (leftMs > 0 ? arm() : task()), sliceMs);
          if (isBackground) timer.unref();
        };
        arm();
        return () => clearTimeout(timer);
      },
      yieldThen(task) {
        lane.push(task);
        if (lane.length === 1) setImmediate(runOne);
      },
    },
    ids: {
      next(prefix) {
        if (pool === '') pool = randomFillSync(bytes).toString('base64url');
        const id = pool.slice(0, ID_CHARACTERS);
        pool = pool.slice(ID_CHARACTERS);
        // Joined, not added: V8 keeps what it adds up as a tree, and so the whole pool with it.
        return [prefix, id].join('_');
      },
    },
    random: { next: () => Math.random() },
  };
}
