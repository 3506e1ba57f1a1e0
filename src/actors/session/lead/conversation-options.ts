// The options that limit a session's conversation and its memory, checked once.

import { aFunction } from '../../../values/checks.ts';
import type { LanguageModel } from 'ai';
import { z } from 'zod';
import { ConfigurationError } from '../../../values/errors.ts';
import { modelSummary, type MemoryDistiller, type Summarise } from '../../context/model-upkeep.ts';
import type { UpkeepOptions } from '../../context/upkeep.ts';
import { checkedLimits, type ConversationLimits } from '../../conversation/items.ts';

/** The options of a conversation: how long it may be, how it is summarised, and which facts are remembered. */
export interface ConversationOptions {
  /** The limits of the conversation. @defaultValue 500 items, 200,000 characters, 20,000 of one item */
  readonly limits?: Partial<ConversationLimits>;
  /**
   * Summarises the beginning of a long conversation, between turns. `false`: the oldest items are dropped without a
   * summary. @defaultValue `modelSummary` with the session's `model`; `false` without a model
   */
  readonly summarise?: Summarise | false;
  /** The fill level, between 0 and 1 of the limits, above which the conversation is summarised. @defaultValue 0.75 */
  readonly summariseAbove?: number;
  /** The number of newest items that are never summarised. @defaultValue 20 */
  readonly keepItems?: number;
  /**
   * Extracts facts from the conversation for `memory`: `modelDistiller(…)`, or your own function. @defaultValue none: no
   * facts are remembered
   */
  readonly distil?: MemoryDistiller;
  /**
   * The number of model turns between extractions of facts; the end of the session extracts them, too.
   * @defaultValue 5
   */
  readonly distilEveryTurns?: number;
  /** The time limit of a summary or an extraction, in milliseconds. @defaultValue 30000 */
  readonly timeoutMs?: number;
}

const defaults = {
  summariseAbove: 0.75,
  keepItems: 20,
  distilEveryTurns: 5,
  timeoutMs: 30_000,
} as const satisfies ConversationOptions;

const schema = z.strictObject({
  limits: z.object({}).loose().optional(),
  summarise: z.union([aFunction, z.literal(false)]).optional(),
  summariseAbove: z.number().gt(0).lt(1),
  keepItems: z.number().int().min(1),
  distil: aFunction.optional(),
  distilEveryTurns: z.number().int().min(1),
  timeoutMs: z.number().positive(),
});

/** @throws {ConfigurationError} for invalid options, and for `distil` without a memory. */
export function checkedConversation(
  options: ConversationOptions = {},
  { model, hasMemory }: { readonly model: LanguageModel | undefined; readonly hasMemory: boolean },
): { readonly limits: ConversationLimits; readonly upkeep: UpkeepOptions } {
  const parsed = schema.safeParse({ ...defaults, ...options });
  if (!parsed.success)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `conversation: ${z.prettifyError(parsed.error)}`,
    );
  const { summarise, distil } = options;
  if (distil && !hasMemory)
    throw new ConfigurationError(
      'INVALID_OPTION',
      'conversation.distil: expected `memory` to be a store for the facts, got undefined',
    );
  const { summariseAbove, keepItems, distilEveryTurns, timeoutMs } = parsed.data;
  const byModel = model === undefined ? null : modelSummary({ model });
  return {
    limits: checkedLimits(options.limits ?? {}),
    upkeep: {
      summarise: summarise === false ? null : (summarise ?? byModel),
      distil: distil ?? null,
      summariseAbove,
      keepItems,
      distilEveryTurns,
      timeoutMs,
    },
  };
}
