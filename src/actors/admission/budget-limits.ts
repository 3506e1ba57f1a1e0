// Checks the limits of a budget.

import { z } from 'zod';
import { check } from '../../values/checks.ts';
import type { BudgetLimits } from '../contracts/config.ts';

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
