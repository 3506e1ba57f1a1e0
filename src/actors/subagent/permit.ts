// The permission of a budget for one model call, and what the call uses: as the provider counted it, or about that.

import type { ModelMessage } from 'ai';
import type { Budget } from '../admission/budget.ts';
import type { Usage } from '../contracts/usage.ts';
import type { ModelResponse } from '../model/model-step.ts';
import { countedUsage, estimateTokens } from '../model/price.ts';

/** A model call that may be made. */
export interface Granted {
  readonly ok: true;
  /** Limit on the output tokens of the call; undefined: no limit. */
  readonly maxOutputTokens: number | undefined;
  /** Returns the usage of an answer, estimated by its length if the provider counted nothing. */
  counted(response: Pick<ModelResponse, 'usage' | 'text'>): Usage;
  /** Records what a call that was answered used. */
  settle(tokens: number, cost: number): void;
  /** Records a call that failed. `underWay`: the provider may have read it, and charged for it. */
  failed(underWay: boolean, priceOf: (usage: Usage) => number): void;
}

type Permit = Granted | { readonly ok: false; readonly message: string };

/** A model call that a budget has to permit. */
interface Asking {
  readonly budget: Budget | null;
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
  /** True for the call that hands in partial work. */
  readonly final: boolean;
}

/** Asks the budget for permission before a model call. */
export function permitFor({ budget, instructions, messages, final }: Asking): Permit {
  const counted: Granted['counted'] = ({ usage, text }) =>
    countedUsage(usage, { instructions, messages, written: text });
  if (!budget) return { ok: true, maxOutputTokens: undefined, counted, settle() {}, failed() {} };
  const inputTokens = estimateTokens(instructions, messages);
  const call = final ? budget.beginFinalCall() : budget.beginCall(inputTokens);
  if (!call.ok) return { ok: false, message: call.error.message };
  return {
    ok: true,
    maxOutputTokens: call.maxOutputTokens,
    counted,
    settle: (tokens, cost) => call.settle(tokens, cost),
    failed: (underWay, priceOf) => {
      const read = { inputTokens, outputTokens: 0, totalTokens: inputTokens };
      if (underWay) call.settle(inputTokens, priceOf(read));
      else call.settle(0);
    },
  };
}
