// A session's batches. Assigns each call, and each subagent that a tool spawned, to a batch, and stores the batch's
// members. A member's id is that of the call or, for a spawned subagent, that of its result's delivery.
//
// Owns:     the options that determine which results are reported together, the batches, and the batch that new calls
//           for the latest request join.
// Does not: decide when a batch is reported (the batch's machine does).

import { z } from 'zod';
import { batchMachine, type AtCeiling, type BatchSnapshot } from '../../../machines/index.ts';
import { ConfigurationError } from '../../../values/errors.ts';
import type { AnyUnit } from '../../runtime/commit-unit.ts';
import { Cell } from '../../runtime/draft.ts';
import type { Host } from '../../runtime/host.ts';
import { Population, type MemberSnapshot } from '../../runtime/hosting.ts';

/**
 * The time limits for the results of one request to wait for each other, so that they can be reported together.
 */
export interface ConsolidationOptions {
  /**
   * The maximum time in milliseconds, counted from the first result, that a result waits for the others in its batch
   * while a client is attached.
   * @defaultValue 300000
   */
  readonly interactiveCeilingMs: number;
  /** The same limit, for work that started when no client was attached. @defaultValue 600000 */
  readonly backgroundCeilingMs: number;
  /**
   * Determines how subagents are handled that are still working when this time has passed. `deliver`: they continue,
   * and their results are reported later. `cancel`: they are stopped, and reported as cancelled together with the other
   * results. The report includes their partial work.
   * @defaultValue 'deliver'
   */
  readonly atCeiling: AtCeiling;
  /** With `cancel`: the time in milliseconds that stopped subagents have to finish. @defaultValue 5000 */
  readonly graceMs: number;
}

/**
 * `batch`: one reply reports all results for one request by the user: those of background calls, and those of subagents
 * that tools spawned. `off`: each result is reported separately. An object means `batch` with the given limits.
 */
export type Consolidation = 'off' | 'batch' | Partial<ConsolidationOptions>;

/**
 * The reason for stopping a subagent after the other results in its batch have waited for the maximum time.
 */
export const CEILING_REASON = 'cancelled at consolidation ceiling';

export const defaultConsolidation: ConsolidationOptions = {
  interactiveCeilingMs: 300_000,
  backgroundCeilingMs: 600_000,
  atCeiling: 'deliver',
  graceMs: 5000,
};

const schema = z.strictObject({
  interactiveCeilingMs: z.number().positive(),
  backgroundCeilingMs: z.number().positive(),
  atCeiling: z.enum(['deliver', 'cancel']),
  graceMs: z.number().positive(),
});

/**
 * Fills in the defaults, or returns null for `off`.
 * @throws {ConfigurationError} if an option is unknown or out of range.
 */
export function consolidationOf(consolidation: Consolidation): ConsolidationOptions | null {
  if (consolidation === 'off') return null;
  const wanted = consolidation === 'batch' ? {} : consolidation;
  const parsed = schema.safeParse({ ...defaultConsolidation, ...wanted });
  if (parsed.success) return parsed.data;
  throw new ConfigurationError('INVALID_OPTION', `consolidation: ${z.prettifyError(parsed.error)}`);
}

/** A call at the moment when it is made. */
export interface MadeCall {
  readonly callId: string;
  /** The utterance that caused the call. @defaultValue null: none */
  readonly requestId?: string | null;
  /** Whether the result may be reported with others. @defaultValue false */
  readonly isConsolidated?: boolean;
  readonly at: number;
}

type Latest = { readonly requestId: string; readonly batchId: string } | null;

/** A session's batches, as plain JSON. */
export interface BatchesSnapshot {
  readonly latest: Latest;
  readonly members: readonly MemberSnapshot[];
}

export class Batches extends Population<typeof batchMachine> {
  readonly #options: ConsolidationOptions | null;
  readonly #latest: Cell<Latest>;

  /** @param options Null if the session has no batches. */
  constructor(options: ConsolidationOptions | null, unit: AnyUnit, host: Host) {
    super(batchMachine, 'batch', unit, host);
    this.#options = options;
    this.#latest = new Cell<Latest>(unit.draft, null);
  }

  /** The batch that the current request's calls join, or null if there is none. */
  get latest(): string | null {
    return this.#latest.value?.batchId ?? null;
  }

  /** Returns the state of all batches, for `restoreAll`. */
  toSnapshot(): BatchesSnapshot {
    return { latest: this.#latest.value, members: this.snapshots };
  }

  /** Resumes from the state that `toSnapshot` returned. */
  restoreAll({ latest, members }: BatchesSnapshot): void {
    this.#latest.value = latest;
    this.restore(members);
  }

  /** Returns a batch's context, or null if the id is unknown. */
  contextOf(batchId: string): BatchSnapshot['context'] | null {
    return this.of(batchId)?.context ?? null;
  }

  /** Returns the batch that is waiting for this result, or null if there is none. */
  expecting(id: string): string | null {
    return this.ids.find((batchId) => this.contextOf(batchId)?.working.includes(id)) ?? null;
  }

  /** Returns the batch that is waiting for this result or already contains it, or null if there is none. */
  holding(id: string): string | null {
    const holder = this.ids.find((batchId) => this.contextOf(batchId)?.parts.includes(id));
    return this.expecting(id) ?? holder ?? null;
  }

  /**
   * Returns whether this batch has stopped its unfinished members. They are then reported together with the others.
   */
  hasStopped(batchId: string | null): boolean {
    return batchId !== null && this.stateOf(batchId)?.value === 'closing';
  }

  /**
   * Adds a call to the batch of its request, and creates the batch if there is none. Returns the batch, or null if the
   * result is reported separately.
   */
  join(
    { callId, requestId = null, isConsolidated = false, at }: MadeCall,
    isAttached: boolean,
  ): string | null {
    if (requestId === null || !isConsolidated || !this.#options) return null;
    const { interactiveCeilingMs, backgroundCeilingMs, atCeiling, graceMs } = this.#options;
    const joined = { type: 'batch.joined', callId, at };
    const latest = this.#latest.value;
    if (latest?.requestId === requestId && this.accepts(latest.batchId, joined)) {
      this.apply(latest.batchId, joined);
      return latest.batchId;
    }
    const replied = { type: 'batch.replied', at };
    // The reply to the previous request is over, even if the model is still speaking.
    if (latest && this.accepts(latest.batchId, replied)) this.apply(latest.batchId, replied);
    const batchId = `batch_${callId}`;
    const ceilingMs = isAttached ? interactiveCeilingMs : backgroundCeilingMs;
    this.create(batchId, { batchId, ceilingMs, atCeiling, graceMs });
    this.apply(batchId, joined);
    this.#latest.value = { requestId, batchId };
    return batchId;
  }
}
