// How long what has ended can be looked up.
//
// Owns:     the order in which delivered results are forgotten.
// Does not: look at a clock by itself: somebody sweeps.
//
// Invariants
//   RETENTION-1. A result is kept until it was delivered, whatever the time, and `retentionMs` longer.
//   RETENTION-2. Of delivered ones the last `MAX_DELIVERED` are kept at most, and more than
//       `MAX_UNDELIVERED` are not taken on: nothing grows for ever, and nothing is dropped unread.

import type { Family, SubagentRecord } from './family.ts';

export const MAX_DELIVERED = 1000;
export const MAX_UNDELIVERED = 1000;

export class Retention {
  readonly #family: Family;
  readonly #retentionMs: number;
  /** Ended and delivered, with the time since when it is both; in the order of that time. */
  readonly #delivered = new Map<SubagentRecord, number>();
  readonly #undelivered = new Set<SubagentRecord>();

  constructor(family: Family, retentionMs: number) {
    this.#family = family;
    this.#retentionMs = retentionMs;
  }

  /** Is there anything that time will forget? */
  get hasDelivered(): boolean {
    return this.#delivered.size > 0;
  }

  get isFull(): boolean {
    return this.#undelivered.size >= MAX_UNDELIVERED;
  }

  /** Its result has reached whom it was for, or there is nobody for it; also before it ends. */
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

  /** Returns how many were forgotten. */
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
    this.#family.forget(record);
  }
}
