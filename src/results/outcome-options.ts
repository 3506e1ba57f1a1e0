// The options of a scope for the outputs and outcomes of its subagents.

import { z } from 'zod';
import { aFunction, anObject, type ChecksOf } from '../values/checks.ts';
import type { ClaimJudge } from './judge-claims.ts';
import type { WorkingMemory } from '../actors/ports/working-memory.ts';

/** The options of a scope for outputs and outcomes. */
export interface OutcomeOptions {
  /**
   * The memory for large outputs, results and failure details. Without it they are cut, and marked as cut.
   */
  readonly workingMemory?: WorkingMemory;
  /**
   * The size in UTF-8 above which a value goes to working memory; a model reads an excerpt and where the rest
   * is. At least 1024. @defaultValue 32768 with a working memory, 262144 without
   */
  readonly maxInlineBytes?: number;
  /** Checks the claims of a result, in addition to the rules of the runtime: `modelClaimJudge(…)`. */
  readonly claimJudge?: ClaimJudge;
}

export const outcomeChecks = {
  workingMemory: anObject('a working memory such as workingMemory()', 'save', 'get').optional(),
  // Checked where it is used.
  maxInlineBytes: z.unknown().optional(),
  claimJudge: aFunction.optional(),
} satisfies ChecksOf<OutcomeOptions>;

/** Splits these options from the others. */
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
