// Decides how long the result of an ended subagent can be read.
//
// Owns:     the order in which delivered results are forgotten.
// Does not: look at a clock by itself: the sweeper calls it.
//
// Invariants
//   RETENTION-1. A result is kept until it was delivered, whatever the time, and `retentionMs` longer.
//   RETENTION-2. At most the last `MAX_DELIVERED` delivered results are kept, and more than `MAX_UNDELIVERED`
//       undelivered ones are refused: nothing grows without bound, and nothing is dropped unread.

import type { SubagentRegistry, SubagentRecord } from './subagent-registry.ts';

export const MAX_DELIVERED = 1000;
export const MAX_UNDELIVERED = 1000;

export class Retention {
  readonly #registry: SubagentRegistry;
  readonly #retentionMs: number;
  /** Ended and delivered subagents, in the order of the time since when they are both. */
  readonly #delivered = new Map<SubagentRecord, number>();
  readonly #undelivered = new Set<SubagentRecord>();

  constructor(registry: SubagentRegistry, retentionMs: number) {
    this.#registry = registry;
    this.#retentionMs = retentionMs;
  }

  /** True while there is a result that time will forget. */
  get hasDelivered(): boolean {
    return this.#delivered.size > 0;
  }

  get isFull(): boolean {
    return this.#undelivered.size >= MAX_UNDELIVERED;
  }

  /** Records that its result has reached its addressee, or that there is none; also before it ends. */
  delivered(record: SubagentRecord, at: number): void {
    if (record.deliveredAt !== null) return;
    record.deliveredAt = at;
    if (record.isLive) return;
    this.#undelivered.delete(record);
    this.#keep(record, at);
  }

  ended(record: SubagentRecord, at: number): void {
    if (record.deliveredAt === null) this.#undelivered.add(record);
    else this.#keep(record, at);
  }

  /** Forgets results that are due, and returns their number. */
  sweep(now: number): number {
    let count = 0;
    for (const [record, since] of this.#delivered) {
      if (now - since < this.#retentionMs) break;
      this.#forget(record);
      count += 1;
    }
    return count;
  }

  #keep(record: SubagentRecord, at: number): void {
    this.#delivered.set(record, at);
    if (this.#retentionMs === 0) this.#forget(record);
    else if (this.#delivered.size > MAX_DELIVERED)
      for (const oldest of this.#delivered.keys()) {
        this.#forget(oldest);
        break;
      }
  }

  #forget(record: SubagentRecord): void {
    this.#delivered.delete(record);
    this.#registry.forget(record);
  }
}
