// Announces the end of the session: the server states its time, and the session is notified some minutes
// before.
//
// EXPIRY-1. The end is announced once per connection, `NOTICE_MS` before it or as soon as it is known.
// EXPIRY-2. An implausible time (because clocks differ) is ignored: the session then counts by itself.

import type { Environment } from '../../actors/ports/environment.ts';

/** Enough time to change to another connection between two turns. */
const NOTICE_MS = 5 * 60_000;
/** No session lasts longer than an hour; clocks may differ slightly. */
const LONGEST_MS = 65 * 60_000;

export class Expiry {
  readonly #environment: Environment;
  readonly #expiring: (inMs: number) => void;
  #cancel: (() => void) | null = null;

  constructor(environment: Environment, expiring: (inMs: number) => void) {
    this.#environment = environment;
    this.#expiring = expiring;
  }

  /** Handles the server's time of the end, in seconds since 1970. */
  known(expiresAt: number | null | undefined): void {
    if (this.#cancel || typeof expiresAt !== 'number') return;
    const { clock, scheduler } = this.#environment;
    const endsAt = expiresAt * 1000;
    const leftMs = endsAt - clock.now();
    if (!(leftMs > 0) || leftMs > LONGEST_MS) return;
    this.#cancel = scheduler.schedule(
      () => this.#expiring(Math.max(0, endsAt - clock.now())),
      leftMs - NOTICE_MS,
    );
  }

  stop(): void {
    this.#cancel?.();
  }
}
