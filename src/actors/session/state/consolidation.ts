// The options of a session that decide which results are told together, and how long a result waits for its
// siblings; checked.

import { z } from 'zod';
import { ConfigurationError } from '../../../values/errors.ts';
import type { AtCeiling } from '../../../machines/index.ts';

export interface ConsolidationOptions {
  /**
   * Time that a result waits for its siblings while a client is attached, in milliseconds, counted from the
   * first result. @defaultValue 300000
   */
  readonly interactiveCeilingMs: number;
  /** The same if no client was attached when the work was begun. @defaultValue 600000 */
  readonly backgroundCeilingMs: number;
  /**
   * The treatment of subagents that still work at the ceiling. `deliver`: they continue and are told when
   * they end. `cancel`: they are stopped, and told as cancelled with the others, with their partial work.
   * @defaultValue 'deliver'
   */
  readonly atCeiling: AtCeiling;
  /** With `cancel`: time that stopped subagents may take, in milliseconds. @defaultValue 5000 */
  readonly graceMs: number;
}

/**
 * `batch`: one reply tells the results of all background calls that were made, and of all subagents that were
 * spawned by a tool, for one request of the user. `off`: each is told by itself. An object is `batch` with
 * other numbers.
 */
export type Consolidation = 'off' | 'batch' | Partial<ConsolidationOptions>;

/** The reason of the stop of a subagent for which its siblings did not wait. */
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
 * Fills in the defaults of the options; null for `off`.
 * @throws {ConfigurationError} for an option that is unknown or out of range.
 */
export function consolidationOf(consolidation: Consolidation): ConsolidationOptions | null {
  if (consolidation === 'off') return null;
  const wanted = consolidation === 'batch' ? {} : consolidation;
  const parsed = schema.safeParse({ ...defaultConsolidation, ...wanted });
  if (parsed.success) return parsed.data;
  throw new ConfigurationError('INVALID_OPTION', `consolidation: ${z.prettifyError(parsed.error)}`);
}
