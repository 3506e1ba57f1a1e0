// Real time and real chance, from Node.js. The one place where they come from.

import { randomFillSync } from 'node:crypto';
import type { Environment } from '../../actors/ports/environment.ts';

/** Node sets a longer delay to 1 ms. Source: nodejs.org, `setTimeout` (2026). */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const ID_BYTES = 9;
/** Done tasks that the lane may still hold. */
const LONGEST_TAIL = 256;
/** Drawn at once: a call for each id costs more than everything else about it. */
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
  const pool = Buffer.alloc(ID_BYTES * IDS_IN_POOL);
  let drawn = pool.length;
  return {
    clock: {
      now() {
        // The wall clock may be set back; ours never goes back.
        latest = Math.max(latest, Date.now());
        return latest;
      },
    },
    scheduler: {
      schedule(task, delayMs) {
        let timer: NodeJS.Timeout;
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
        if (lane.length === 1) setImmediate(runOne);
      },
    },
    ids: {
      next(prefix) {
        if (drawn === pool.length) {
          randomFillSync(pool);
          drawn = 0;
        }
        const from = drawn;
        drawn += ID_BYTES;
        // Joined, not added: what V8 adds up it keeps as a tree of its parts, twice as large.
        return [prefix, pool.toString('base64url', from, drawn)].join('_');
      },
    },
    random: { next: () => Math.random() },
  };
}
