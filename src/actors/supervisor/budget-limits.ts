// What a budget may say, and its check.

import { z } from 'zod';
import { check } from '../../checks.ts';

/** What a session, or a subagent and its whole subtree, may use. A limit that is not there is none. */
export interface BudgetLimits {
  /** Tokens in and out, of all model calls. Where a provider does not count them they are estimated. */
  readonly tokens?: number;
  /** Model calls of all of them; one that is tried again counts again. */
  readonly steps?: number;
  /**
   * Of a subagent: time since it was accepted, waiting included, in milliseconds. Of a session or a service:
   * time in which it was in some process.
   */
  readonly timeMs?: number;
  /** Subagents that may be spawned below it, over its whole life. */
  readonly agents?: number;
}

const count = z.number().int().min(1);

export const budgetLimits = z.strictObject({
  tokens: count.optional(),
  steps: count.optional(),
  timeMs: z.number().positive().optional(),
  agents: z.number().int().min(0).optional(),
});

/** @throws {ConfigurationError} for a limit that is unknown or out of range. */
export function checkBudget(limits: BudgetLimits = {}, path = 'budget'): BudgetLimits {
  check(path, budgetLimits, limits);
  return limits;
}
