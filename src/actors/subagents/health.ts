// Detects hung subagents, which show no sign of life. Being hung is a mark beside the state; the next sign of
// life clears it.
//
// Owns:     the mark.
// Does not: end a subagent: its configuration decides what follows from being hung.
//
// Invariants
//   HEALTH-1. Only a subagent that prepares or runs can be hung: one that waits (for a slot, an answer, a
//       child) is not silent, but waiting.

import type { SubagentRecord } from './subagent-registry.ts';

export class Health {
  readonly #defaultTimeoutMs: number;
  /** Live subagents that can become hung. */
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

  /** Records a sign of life. True if the subagent was hung until now. */
  seen(record: SubagentRecord, now: number): boolean {
    const wasHung = record.isHung;
    record.lastActiveAt = now;
    record.isHung = false;
    return wasHung;
  }

  /** Marks hung subagents, and returns those that were not hung before. */
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

  /** Returns the timeout that its author wrote, 0 included; else that of the scope. */
  #timeoutOf({ admission }: SubagentRecord): number {
    return admission.definition.source.inactivityTimeoutMs ?? this.#defaultTimeoutMs;
  }
}
