// One model call, charged to a budget: estimates the size of its input and records its cost.

import type { ModelMessage } from 'ai';
import type { Budget } from '../admission/budget.ts';
import type { StepUsage } from '../model/model-step.ts';

const CHARACTERS_PER_TOKEN = 4;
/** Tokens counted for an image or a file, whose size does not tell its tokens. */
const TOKENS_PER_FILE = 1_000;

export type Permit =
  | {
      readonly ok: true;
      /** Limit on the output tokens of the call; undefined: no limit. */
      readonly maxOutputTokens: number | undefined;
      /** Records the usage of a call that was answered. */
      answered(usage: StepUsage, text: string): void;
      /** Records a call that failed. `underWay`: the provider may have read it, and charged for it. */
      failed(underWay: boolean): void;
    }
  | { readonly ok: false; readonly message: string };

const unlimited: Permit = { ok: true, maxOutputTokens: undefined, answered() {}, failed() {} };

interface Asking {
  readonly budget: Budget | null;
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
  /** True for the call that hands in partial work. */
  readonly final: boolean;
}

/** Asks the budget for permission before a model call. */
export function permitFor({ budget, instructions, messages, final }: Asking): Permit {
  if (!budget) return unlimited;
  const inputTokens = estimateTokens(instructions, messages);
  const call = final ? budget.beginFinalCall() : budget.beginCall(inputTokens);
  if (!call.ok) return { ok: false, message: call.error.message };
  return {
    ok: true,
    maxOutputTokens: call.maxOutputTokens,
    answered: ({ totalTokens }, text) =>
      call.settle(totalTokens > 0 ? totalTokens : inputTokens + tokensIn(text.length)),
    failed: (underWay) => call.settle(underWay ? inputTokens : 0),
  };
}

/** Estimates the number of tokens that a model reads. */
export function estimateTokens(instructions: string, messages: readonly ModelMessage[]): number {
  let characters = instructions.length;
  let files = 0;
  for (const { content } of messages) {
    if (typeof content === 'string') {
      characters += content.length;
      continue;
    }
    for (const part of content) {
      if (part.type === 'file' || part.type === 'image') files += 1;
      else if ('text' in part) characters += part.text.length;
      else characters += JSON.stringify(part).length;
    }
  }
  return tokensIn(characters) + files * TOKENS_PER_FILE;
}

function tokensIn(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}
