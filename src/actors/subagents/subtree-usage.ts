import { z } from 'zod';
import { check } from '../../values/checks.ts';
import { usageBelow, type Usage, type UsageOf } from '../contracts/usage.ts';

const tokens = z.number().nonnegative();

const schema = z.object({
  subagents: z.array(
    z.looseObject({
      id: z.string(),
      parentId: z.string().nullable(),
      usage: z.looseObject({ inputTokens: tokens, outputTokens: tokens, totalTokens: tokens }),
    }),
  ),
  id: z.string().nullable(),
});

/**
 * Sums up the usage of a subagent and of all below it, out of the `subagents` of a session's state; null: of all. The lead
 * agent's own usage is no part of it. An unknown `id` has used nothing.
 * @throws {ConfigurationError} `INVALID_ARGUMENT` for subagents that are not those of a state.
 */
export function subtreeUsage(subagents: readonly UsageOf[], id: string | null): Usage {
  check('subtreeUsage(subagents, id)', schema, { subagents, id }, 'INVALID_ARGUMENT');
  return usageBelow(subagents, id);
}
