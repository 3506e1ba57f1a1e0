// What whoever runs subagents may say about their outputs and outcomes.

import { z } from 'zod';
import { aFunction, anObject, type ChecksOf } from '../values/checks.ts';
import type { ClaimJudge } from './judge-claims.ts';
import type { WorkingMemory } from '../actors/ports/working-memory.ts';

/** What a scope may say about outputs and outcomes. */
export interface OutcomeOptions {
  /** Where large outputs, results and failure details go. Without it they are cut, and say so. */
  readonly workingMemory?: WorkingMemory;
  /**
   * What is longer, in UTF-8, goes to working memory; a model reads an excerpt and where the rest
   * is. At least 1024. @defaultValue 32768 with a working memory, 262144 without
   */
  readonly maxInlineBytes?: number;
  /** Reads the claims of a result, beside the rules of the runtime: `modelClaimJudge(…)`. */
  readonly claimJudge?: ClaimJudge;
}

export const outcomeChecks = {
  workingMemory: anObject('a working memory such as workingMemory()', 'save', 'get').optional(),
  // Where it is used.
  maxInlineBytes: z.unknown().optional(),
  claimJudge: aFunction.optional(),
} satisfies ChecksOf<OutcomeOptions>;

/** These options, and the others. */
export function splitOutcomeOptions<T extends OutcomeOptions>(
  options: T,
): [OutcomeOptions, Omit<T, keyof OutcomeOptions>] {
  const { workingMemory, maxInlineBytes, claimJudge, ...others } = options;
  return [
    {
      ...(workingMemory ? { workingMemory } : {}),
      ...(maxInlineBytes === undefined ? {} : { maxInlineBytes }),
      ...(claimJudge ? { claimJudge } : {}),
    },
    others,
  ];
}
