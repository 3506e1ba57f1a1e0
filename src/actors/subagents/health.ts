// Who shows no sign of life any more. A mark beside the state, which the next sign clears.
//
// Owns:     the mark.
// Does not: end anybody: what follows from being hung is the configuration's choice.
//
// Invariants
//   HEALTH-1. Hung are only those that are getting ready or running: whoever waits (for a slot, an
//       answer, a child) is not silent, but waiting.

import type { SubagentRecord } from './family.ts';

export class Health {
  readonly #defaultTimeoutMs: number;
  /** Live ones that can become hung. */
  readonly #watched = new Set<SubagentRecord>();

  constructor(defaultTimeoutMs: number) {
    this.#defaultTimeoutMs = defaultTimeoutMs;
  }

  get isWatching(): boolean {
    return this.#watched.size > 0;
  }

  started(record: SubagentRecord): void {
    if (this.#timeoutOf(record) > 0) this.#watched.add(record);
  }

  ended(record: SubagentRecord): void {
    this.#watched.delete(record);
  }

  /** A sign of life. True if it was hung until now. */
  seen(record: SubagentRecord, now: number): boolean {
    const wasHung = record.isHung;
    record.lastActiveAt = now;
    record.isHung = false;
    return wasHung;
  }

  /** Marks those that are hung, and returns those that were not before. */
  sweep(now: number): readonly SubagentRecord[] {
    const found: SubagentRecord[] = [];
    for (const record of this.#watched) {
      const { state } = record.subagent ?? {};
      if (record.isHung || (state !== 'spawning' && state !== 'running')) continue;
      if (now - record.lastActiveAt < this.#timeoutOf(record)) continue;
      record.isHung = true;
      found.push(record);
    }
    return found;
  }

  /** What its author wrote, 0 included; else what holds for the scope. */
  #timeoutOf({ place }: SubagentRecord): number {
    return place.definition.source.inactivityTimeoutMs ?? this.#defaultTimeoutMs;
  }
}
