// Which results are told together, and how long one waits for its siblings: the options of
// a session, checked.

import { z } from 'zod';
import { ConfigurationError } from '../../../values/errors.ts';
import type { AtCeiling } from '../../../machines/index.ts';

export interface ConsolidationOptions {
  /**
   * A result waits so long for its siblings while somebody is attached, in milliseconds,
   * counted from the first result. @defaultValue 300000
   */
  readonly interactiveCeilingMs: number;
  /** The same where nobody was attached when the work was begun. @defaultValue 600000 */
  readonly backgroundCeilingMs: number;
  /**
   * What becomes of those that still work at the ceiling. `deliver`: they go on and are told
   * when they end. `cancel`: they are stopped, and told as cancelled with the others, with
   * whatever they had done. @defaultValue 'deliver'
   */
  readonly atCeiling: AtCeiling;
  /** `cancel`: those that are stopped may take so long, in milliseconds. @defaultValue 5000 */
  readonly graceMs: number;
}

/**
 * `batch`: the results of the background calls that were made, and of the subagents that were spawned by
 * a tool, for one request of the user are told in one reply. `off`: each by itself. An object is `batch` with other numbers.
 */
export type Consolidation = 'off' | 'batch' | Partial<ConsolidationOptions>;

/** Why a subagent was stopped that its siblings did not wait for. */
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
 * The options with their defaults filled in; null for `off`.
 * @throws {ConfigurationError} for an option that is unknown or out of range.
 */
export function consolidationOf(consolidation: Consolidation): ConsolidationOptions | null {
  if (consolidation === 'off') return null;
  const wanted = consolidation === 'batch' ? {} : consolidation;
  const parsed = schema.safeParse({ ...defaultConsolidation, ...wanted });
  if (parsed.success) return parsed.data;
  throw new ConfigurationError('INVALID_OPTION', `consolidation: ${z.prettifyError(parsed.error)}`);
}
