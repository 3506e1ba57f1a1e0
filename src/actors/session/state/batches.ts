// The batches of a session: assigns each call, and each subagent that was spawned by a tool, to a batch, and
// holds its members. The id of a member is that of the call, or of the delivery of a spawned subagent's
// result.
//
// Owns:     the lives of the batches, and the batch that calls for the latest request join.
// Does not: decide when a batch is told (its machine does).

import { batchMachine, type BatchSnapshot } from '../../../machines/index.ts';
import type { AnyUnit } from '../../runtime/commit-unit.ts';
import type { Host } from '../../runtime/host.ts';
import { Population, type MemberSnapshot } from '../../runtime/population.ts';
import type { ConsolidationOptions } from './consolidation.ts';

/** A call, as it is made. */
export interface MadeCall {
  readonly callId: string;
  /** The utterance for which it is made. @defaultValue null: none */
  readonly requestId?: string | null;
  /** True if its result may be told with others. @defaultValue false */
  readonly isConsolidated?: boolean;
  readonly at: number;
}

type Latest = { readonly requestId: string; readonly batchId: string } | null;

/** The batches of a session, as plain JSON. */
export interface BatchesSnapshot {
  readonly latest: Latest;
  readonly members: readonly MemberSnapshot[];
}

export class Batches extends Population {
  readonly #options: ConsolidationOptions | null;
  #latest: Latest = null;

  /** @param options Null: the session has no batches. */
  constructor(options: ConsolidationOptions | null, unit: AnyUnit, host: Host) {
    super(batchMachine, 'batch', unit, host);
    this.#options = options;
  }

  /** The batch that calls for the current request join; null: none yet. */
  get latest(): string | null {
    return this.#latest?.batchId ?? null;
  }

  /** The state of all batches, for `goOnFrom`. */
  toSnapshot(): BatchesSnapshot {
    return { latest: this.#latest, members: this.snapshots };
  }

  /** Continues from the state that `whole` returned. */
  restoreAll({ latest, members }: BatchesSnapshot): void {
    this.#latest = latest;
    this.restore(members);
  }

  /** Returns the context of a batch; null if there is none of this id. */
  contextOf(batchId: string): BatchSnapshot['context'] | null {
    return (this.stateOf(batchId)?.context ?? null) as BatchSnapshot['context'] | null;
  }

  /** Returns the batch that waits for this result, or null. */
  expecting(id: string): string | null {
    return this.ids.find((batchId) => this.contextOf(batchId)?.working.includes(id)) ?? null;
  }

  /** Returns the batch with which this result is told, or null. */
  of(id: string): string | null {
    const holding = this.ids.find((batchId) => this.contextOf(batchId)?.parts.includes(id));
    return this.expecting(id) ?? holding ?? null;
  }

  /**
   * Adds a call to those that were made for the same request, or begins a batch with it. Returns the batch,
   * or null if its result is told by itself.
   */
  join(
    { callId, requestId = null, isConsolidated = false, at }: MadeCall,
    isAttached: boolean,
  ): string | null {
    if (requestId === null || !isConsolidated || !this.#options) return null;
    const { interactiveCeilingMs, backgroundCeilingMs, atCeiling, graceMs } = this.#options;
    const joined = { type: 'batch.joined', callId, at };
    const latest = this.#latest;
    if (latest?.requestId === requestId && this.accepts(latest.batchId, joined)) {
      this.apply(latest.batchId, joined);
      return latest.batchId;
    }
    const replied = { type: 'batch.replied', at };
    // The reply to the previous request is over, whatever its model still says.
    if (latest && this.accepts(latest.batchId, replied)) this.apply(latest.batchId, replied);
    const batchId = `batch_${callId}`;
    const ceilingMs = isAttached ? interactiveCeilingMs : backgroundCeilingMs;
    this.create(batchId, { batchId, ceilingMs, atCeiling, graceMs });
    this.apply(batchId, joined);
    this.#latest = { requestId, batchId };
    return batchId;
  }
}
