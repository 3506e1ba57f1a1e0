// Detects that a peer has disappeared without closing the connection. A socket to a disconnected machine can seem open
// for many minutes.

import type { Scheduler } from '../../actors/ports/environment.ts';

interface KeepAliveOptions {
  readonly scheduler: Scheduler;
  /** `null`: no pings and no timeout. */
  readonly intervalMs: number | null;
  readonly ping: () => void;
  /** Called at most once, if nothing has been received between two pings. */
  readonly onSilence: () => void;
}

export interface KeepAlive {
  start(): void;
  /** Treats any message from the peer as proof that the peer is alive. */
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
  /** After the event loop has been blocked, timers run first, so a response may still be unread in the socket. */
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
