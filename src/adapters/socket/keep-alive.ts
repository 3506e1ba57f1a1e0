// Detects a peer that disappeared silently: a socket to a machine without network looks open for many minutes.

import type { Scheduler } from '../../actors/ports/environment.ts';

interface KeepAliveOptions {
  readonly scheduler: Scheduler;
  /** `null`: no pings, and no timeout. */
  readonly intervalMs: number | null;
  readonly ping: () => void;
  /** Called at most once, if nothing was received from one ping to the next. */
  readonly onSilence: () => void;
}

export interface KeepAlive {
  start(): void;
  /** Records any message of the peer as a sign of life. */
  heard(): void;
  stop(): void;
}

export function createKeepAlive(options: KeepAliveOptions): KeepAlive {
  const { scheduler, intervalMs, ping, onSilence } = options;
  let wasHeard = true;
  let stop = (): void => {};

  const scheduleNext = (delayMs: number): void => {
    stop = scheduler.schedule(() => (wasHeard ? next(delayMs) : look(delayMs)), delayMs);
  };
  const next = (delayMs: number): void => {
    wasHeard = false;
    ping();
    scheduleNext(delayMs);
  };
  /** A blocked event loop runs its timers first: an answer may still be unread in the socket. */
  const look = (delayMs: number): void => {
    let isStopped = false;
    stop = () => {
      isStopped = true;
    };
    scheduler.yieldThen(() => {
      if (isStopped) return;
      if (wasHeard) next(delayMs);
      else onSilence();
    });
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
