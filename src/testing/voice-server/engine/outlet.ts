// Sends the server's frames to the client, with the faults of a bad network.
//
// OUTLET-1. Frames keep their order, even delayed ones; a close waits for the frames before it.
// OUTLET-2. After the end, no frame is sent.

import type { Environment } from '../../../actors/ports/environment.ts';
import type { FaultMoment } from './fault-control.ts';
import { Timers } from './timers.ts';

/** A close frame can contain 123 bytes of reason; the reasons here are ASCII. */
const MAX_REASON_LENGTH = 123;

/** The server's end of a socket. */
export interface Link {
  send(text: string): void;
  close(code: number, reason: string): void;
  /** Closes the socket without a close frame. */
  terminate(): void;
  /** Holds the client's frames. */
  hold(on: boolean): void;
}

export class Outlet {
  readonly #environment: Environment;
  readonly #link: Link;
  readonly #timers: Timers;
  readonly #afterFrames: { left: number; readonly strike: () => void }[] = [];
  #waiting: (() => void)[] = [];
  #isStalled = false;
  #isOver = false;
  #delayMs = 0;
  /** The arrival time of the latest frame in transit: no frame overtakes it. */
  #lastDueAt = 0;
  #onItsWay = 0;

  constructor(environment: Environment, link: Link) {
    this.#environment = environment;
    this.#link = link;
    this.#timers = new Timers(environment.scheduler);
  }

  delay(ms: number): void {
    this.#delayMs = ms;
  }

  send(text: string): void {
    this.#pass(() => {
      this.#link.send(text);
      this.#count();
    });
  }

  close(code: number, reason: string): void {
    this.#pass(() => {
      this.end();
      this.#link.close(code, reason.slice(0, MAX_REASON_LENGTH));
    });
  }

  /** Closes the socket at once, losing frames in transit. */
  terminate(): void {
    if (this.#isOver) return;
    this.end();
    this.#link.terminate();
  }

  stall(on: boolean): void {
    if (this.#isOver) return;
    this.#isStalled = on;
    this.#link.hold(on);
    if (on) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const deliver of waiting) this.#deliver(deliver);
  }

  at(moment: FaultMoment | undefined, strike: () => void): void {
    if (this.#isOver) return;
    if (moment === undefined) strike();
    else if ('afterMs' in moment) this.#timers.later(strike, moment.afterMs);
    else if (moment.afterFrames <= 0) strike();
    else this.#afterFrames.push({ left: moment.afterFrames, strike });
  }

  end(): void {
    this.#isOver = true;
    this.#waiting = [];
    this.#timers.stop();
  }

  #pass(deliver: () => void): void {
    if (this.#isOver) return;
    if (this.#delayMs === 0 && this.#onItsWay === 0) {
      this.#deliver(deliver);
      return;
    }
    const now = this.#environment.clock.now();
    this.#lastDueAt = Math.max(this.#lastDueAt, now + this.#delayMs);
    this.#onItsWay += 1;
    this.#timers.later(() => {
      this.#onItsWay -= 1;
      this.#deliver(deliver);
    }, this.#lastDueAt - now);
  }

  #deliver(deliver: () => void): void {
    if (this.#isOver) return;
    if (this.#isStalled) this.#waiting.push(deliver);
    else deliver();
  }

  #count(): void {
    for (const fault of this.#afterFrames.splice(0)) {
      fault.left -= 1;
      if (fault.left > 0) this.#afterFrames.push(fault);
      else fault.strike();
    }
  }
}
