// Notices a peer that is gone without a word: a socket to a machine that lost its
// network looks open for many minutes.

import type { Scheduler } from '../../actors/ports/environment.ts';

export interface KeepAliveOptions {
  readonly scheduler: Scheduler;
  /** `null`: no pings, no ending. */
  readonly intervalMs: number | null;
  readonly ping: () => void;
  /** Nothing was heard from one ping to the next. Called at most once. */
  readonly onSilence: () => void;
}

export interface KeepAlive {
  start(): void;
  /** Whatever the peer sends shows that it lives. */
  heard(): void;
  stop(): void;
}

export function createKeepAlive(options: KeepAliveOptions): KeepAlive {
  const { scheduler, intervalMs, ping, onSilence } = options;
  let wasHeard = true;
  let stop = (): void => {};

  const scheduleNext = (delayMs: number): void => {
    stop = scheduler.schedule(() => {
      if (!wasHeard) {
        onSilence();
        return;
      }
      wasHeard = false;
      ping();
      scheduleNext(delayMs);
    }, delayMs);
  };

  return {
    start() {
      if (intervalMs !== null) scheduleNext(intervalMs);
    },
    heard() {
      wasHeard = true;
    },
    stop: () => stop(),
  };
}
