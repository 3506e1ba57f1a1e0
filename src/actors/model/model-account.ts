// Counts model calls outside any conversation. For a program's subagent, they are added to its outcome.

import { z } from 'zod';
import { check, type ChecksOf } from '../../values/checks.ts';
import {
  addUsage,
  asUsage,
  leadUsageIn,
  NO_LEAD_USAGE,
  NO_USAGE,
  type ModelCalls,
  type ModelUse,
  type Usage,
} from '../contracts/usage.ts';
import type { Host } from '../runtime/host.ts';
import { costOf } from './price.ts';

const count = z.number().min(0).optional();
const counted = {
  inputTokens: count,
  outputTokens: count,
  cachedInputTokens: count,
  cacheWriteTokens: count,
  reasoningTokens: count,
};
const useSchema = z.strictObject({
  provider: z.string(),
  modelId: z.string(),
  name: z.string().min(1),
  usage: z.strictObject(counted),
  estimated: z
    .strictObject({
      ...counted,
      inputTokens: z.number().min(0),
      outputTokens: z.number().min(0),
      totalTokens: z.number().min(0),
    })
    .optional(),
  beganAt: z.number().min(0),
} satisfies ChecksOf<ModelUse>);

/** @throws {ConfigurationError} `INVALID_ARGUMENT` */
export function readUse(use: unknown): ModelUse {
  return check('used(use)', useSchema, use, 'INVALID_ARGUMENT');
}

/** Adds up the usage and the cost of the model calls that it counts. */
export function modelAccount(host: Pick<Host, 'price' | 'report'>): {
  readonly calls: ModelCalls;
  /** The sum so far. */
  readonly used: () => Usage;
} {
  let sum = NO_USAGE;
  return {
    calls: {
      used(use) {
        const { usage, estimated, beganAt: _, ...names } = readUse(use);
        const tokens = asUsage(leadUsageIn(usage) ?? NO_LEAD_USAGE);
        const cost = costOf(host, { ...names, usage: estimated ?? tokens });
        sum = addUsage(sum, cost === undefined ? tokens : { ...tokens, cost });
      },
      tracesModelCalls: () => false,
    },
    used: () => sum,
  };
}
