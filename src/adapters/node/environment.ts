// The real time and randomness of the host: Node.js, or a browser and its workers. No other module provides time or
// randomness.
//
//   ENVIRONMENT-1. This module uses only globals and imports no Node.js module: `import 'offstage'` works in each of
//       these hosts.
//   ENVIRONMENT-2. The clock never goes back and never stands still. If the wall clock is set back, this clock
//       continues with the monotonic clock. If the clock stood still, every measured pause would be too long, and
//       deliveries would have to wait.

import { toBase64 } from '../../values/base64.ts';
import type { Environment } from '../../actors/ports/environment.ts';

/** Node.js reduces a longer delay to 1 ms. Source: nodejs.org, `setTimeout` (2026). */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** 9 bytes. */
const ID_CHARACTERS = 12;
/** The maximum number of finished tasks that remain in the lane. */
const LONGEST_TAIL = 256;
/**
 * The number of ids whose random bytes are generated in one call, because a call for each id would be most of its cost.
 */
const IDS_IN_POOL = 256;

/** Runs a task in a later turn of the event loop, and returns a function that cancels the task. */
type Soon = (task: () => void, isBackground: boolean) => () => void;

const soonInNode: Soon = (task, isBackground) => {
  const immediate = setImmediate(task);
  if (isBackground) immediate.unref();
  return () => clearImmediate(immediate);
};

/**
 * Browsers have no `setImmediate`, and extend a nested 0 ms timer to 4 ms (in a hidden tab, to 1 s). Each task is
 * therefore triggered by a message.
 */
function soonByMessages(): Soon {
  const { port1, port2 } = new MessageChannel();
  const waiting: { task: (() => void) | null }[] = [];
  port1.addEventListener('message', () => waiting.shift()?.task?.());
  port1.start();
  return (task) => {
    const entry: (typeof waiting)[number] = { task };
    waiting.push(entry);
    port2.postMessage(null);
    return () => {
      entry.task = null;
    };
  };
}

/** The environment of a real process, page or worker. */
export function nodeEnvironment(): Environment {
  const soon = typeof setImmediate === 'function' ? soonInNode : soonByMessages();
  let latest = 0;
  let lastTicks = 0;
  let lane: (() => void)[] = [];
  let next = 0;
  // Each turn of the event loop runs one task, so that timers and sockets run in between.
  const runOne = (): void => {
    const task = lane[next++];
    if (next < lane.length) soon(runOne, false);
    // Finished tasks are removed in bulk, because they would otherwise accumulate in a lane that is never empty.
    if (next === lane.length || next === LONGEST_TAIL) {
      lane = lane.slice(next);
      next = 0;
    }
    task?.();
  };
  const bytes = new Uint8Array((ID_CHARACTERS * IDS_IN_POOL * 3) / 4);
  let pool = '';
  return {
    clock: {
      now() {
        const ticks = performance.now();
        latest = Math.max(Date.now(), latest + Math.max(0, ticks - lastTicks));
        lastTicks = ticks;
        return Math.floor(latest);
      },
      wall: () => Date.now(),
    },
    scheduler: {
      schedule(task, delayMs, { isBackground = false } = {}) {
        // Node.js runs a 0 ms timer after 1 ms, so immediate tasks use no timer.
        if (delayMs <= 0) return soon(task, isBackground);
        // In a browser, a timer is a number.
        let timer: NodeJS.Timeout | number;
        let leftMs = delayMs;
        const arm = (): void => {
          const sliceMs = Math.min(leftMs, LONGEST_TIMER_MS);
          leftMs -= sliceMs;
          timer = setTimeout(() => (leftMs > 0 ? arm() : task()), sliceMs);
          if (isBackground && typeof timer === 'object') timer.unref();
        };
        arm();
        return () => clearTimeout(timer);
      },
      yieldThen(task) {
        lane.push(task);
        if (lane.length === 1) soon(runOne, false);
      },
    },
    ids: {
      next(prefix) {
        if (pool === '') pool = urlText(crypto.getRandomValues(bytes));
        const id = pool.slice(0, ID_CHARACTERS);
        pool = pool.slice(ID_CHARACTERS);
        // Uses `join` rather than concatenation: V8 stores a concatenated string as a tree, which would keep the whole
        // pool in memory.
        return [prefix, id].join('_');
      },
    },
    random: { next: () => Math.random() },
  };
}

/** Encodes as base64url. The byte count is a multiple of three, so there is no padding. */
function urlText(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_');
}
