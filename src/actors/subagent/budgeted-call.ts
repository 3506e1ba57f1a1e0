// One model call, held against a budget: about how large its input is, and what it cost.

import type { ModelMessage } from 'ai';
import type { StepUsage } from '../model/model-step.ts';
import type { Budget } from '../admission/budget.ts';

const CHARACTERS_PER_TOKEN = 4;
/** Of an image or a file, whose size says nothing about its tokens. */
const TOKENS_PER_FILE = 1_000;

export type Permit =
  | {
      readonly ok: true;
      /** The model shall say no more than this; undefined: as much as it likes. */
      readonly maxOutputTokens: number | undefined;
      /** It answered. */
      answered(usage: StepUsage, text: string): void;
      /** It failed. `underWay`: it may have been read, and cost something. */
      failed(underWay: boolean): void;
    }
  | { readonly ok: false; readonly message: string };

const unlimited: Permit = { ok: true, maxOutputTokens: undefined, answered() {}, failed() {} };

interface Asking {
  readonly budget: Budget | null;
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
  /** The call that hands in partial work. */
  readonly final: boolean;
}

/** Asks for a model call, before it is made. */
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

/** About how many tokens a model reads. */
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
