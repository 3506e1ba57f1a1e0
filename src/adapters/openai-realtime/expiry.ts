// When the server will end the session: it names the second, and we say so a while before.
//
// EXPIRY-1. Said once for each connection, `NOTICE_MS` before the end or as soon as it is known.
// EXPIRY-2. A time that cannot be right (our clocks differ) is not believed: the session counts by itself then.

import type { Environment } from '../../actors/ports/environment.ts';

/** So long before the end there is time enough to change to another connection between two turns. */
const NOTICE_MS = 5 * 60_000;
/** No session lasts longer than an hour; a clock may differ a little. */
const LONGEST_MS = 65 * 60_000;

export class Expiry {
  readonly #environment: Environment;
  readonly #expiring: (inMs: number) => void;
  #cancel: (() => void) | null = null;

  constructor(environment: Environment, expiring: (inMs: number) => void) {
    this.#environment = environment;
    this.#expiring = expiring;
  }

  /** The server says when it ends the session; seconds since 1970. */
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
