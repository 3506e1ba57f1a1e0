// Sends the server's frames to the client and applies the faults of a bad network.
//
// OUTLET-1. Frames keep their order even if they are delayed. A close waits for the frames before it.
// OUTLET-2. After the end, no frame is sent.

import type { Environment } from '../../../actors/ports/environment.ts';
import type { FaultMoment } from './fault-control.ts';
import { timersOf } from './timers.ts';

/** The reason in a close frame can have at most 123 bytes. The reasons here are ASCII. */
const MAX_REASON_LENGTH = 123;

/** The server's side of a socket. */
export interface Link {
  send(text: string): void;
  close(code: number, reason: string): void;
  /** Closes the socket without a close frame. */
  terminate(): void;
  /** Holds back the frames that the client sends. */
  hold(on: boolean): void;
}

/** Receives the frames that the client sends. */
export interface FrameTaker {
  receive(text: string): void;
  /** Called when the client is gone, with this close code. */
  lost(code: number): void;
}

export type Outlet = ReturnType<typeof outletOf>;

export function outletOf(environment: Environment, link: Link) {
  const afterFrames: { left: number; readonly strike: () => void }[] = [];
  let held: (() => void)[] = [];
  let isStalled = false;
  let isOver = false;
  let delayMs = 0;
  /** The arrival time of the latest frame in transit. No frame may overtake it. */
  let lastDueAt = 0;
  let onItsWay = 0;
  const timers = timersOf(environment.scheduler);

  function end(): void {
    isOver = true;
    held = [];
    timers.stop();
  }

  function pass(deliver: () => void): void {
    if (isOver) return;
    if (delayMs === 0 && onItsWay === 0) {
      arrive(deliver);
      return;
    }
    const now = environment.clock.now();
    lastDueAt = Math.max(lastDueAt, now + delayMs);
    onItsWay += 1;
    timers.later(() => {
      onItsWay -= 1;
      arrive(deliver);
    }, lastDueAt - now);
  }

  function arrive(deliver: () => void): void {
    if (isOver) return;
    if (isStalled) held.push(deliver);
    else deliver();
  }

  function count(): void {
    for (const fault of afterFrames.splice(0)) {
      fault.left -= 1;
      if (fault.left > 0) afterFrames.push(fault);
      else fault.strike();
    }
  }

  return {
    delay(ms: number): void {
      delayMs = ms;
    },
    send: (text: string): void =>
      pass(() => {
        link.send(text);
        count();
      }),
    close: (code: number, reason: string): void =>
      pass(() => {
        end();
        link.close(code, reason.slice(0, MAX_REASON_LENGTH));
      }),
    /** Closes the socket immediately, so that the frames in transit are lost. */
    terminate(): void {
      if (isOver) return;
      end();
      link.terminate();
    },
    stall(on: boolean): void {
      if (isOver) return;
      isStalled = on;
      link.hold(on);
      if (on) return;
      const waiting = held;
      held = [];
      for (const deliver of waiting) arrive(deliver);
    },
    at(moment: FaultMoment | undefined, strike: () => void): void {
      if (isOver) return;
      if (moment === undefined) strike();
      else if ('afterMs' in moment) timers.later(strike, moment.afterMs);
      else if (moment.afterFrames <= 0) strike();
      else afterFrames.push({ left: moment.afterFrames, strike });
    },
    end,
  };
}
