// Counts the messages that a wire could not use, so that a change of the protocol is visible.
//
// WIRE-TROUBLES-1. The number of remembered types is bounded, in case a peer invents types.
// WIRE-TROUBLES-2. An unknown type is reported once.

import type { WireDiagnostics } from './wire.ts';

const MAX_UNKNOWN_TYPES = 64;
const OTHER_TYPES = '(others)';

export class WireTroubles {
  readonly #unknown = new Map<string, number>();
  #malformed = 0;

  get diagnostics(): WireDiagnostics {
    return {
      unknownEvents: Object.fromEntries(this.#unknown),
      malformedEvents: this.#malformed,
    };
  }

  malformed(): void {
    this.#malformed += 1;
  }

  /** @returns whether it is the first of its type */
  unknown(type: string): boolean {
    const isListed = this.#unknown.has(type) || this.#unknown.size < MAX_UNKNOWN_TYPES;
    const key = isListed ? type : OTHER_TYPES;
    const count = (this.#unknown.get(key) ?? 0) + 1;
    this.#unknown.set(key, count);
    return count === 1;
  }
}
