// The usage of a model call where the provider has counted none, and its cost: the answer of the app's `price`, asked in
// one way for all models of the runtime.

import type { LanguageModel, ModelMessage } from 'ai';
import { ConfigurationError } from '../../values/errors.ts';
import { shown } from '../../values/plain-checks.ts';
import type { ModelNames, ModelUse, PricedCall, Usage } from '../contracts/usage.ts';
import type { Host } from '../runtime/host.ts';

const CHARACTERS_PER_TOKEN = 4;
/** Tokens counted for an image or a file, whose size does not tell its tokens. */
const TOKENS_PER_FILE = 1_000;

/** The texts that a model has read and written. */
export interface Exchanged {
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
  readonly written: string;
}

/** Returns the usage of an answer, estimated by its length if the provider counted nothing. */
export function countedUsage(usage: Usage, { instructions, messages, written }: Exchanged): Usage {
  if (usage.totalTokens > 0) return usage;
  const inputTokens = estimateTokens(instructions, messages);
  const outputTokens = tokensIn(written.length);
  return { ...usage, inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
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

/** Returns what a call costs; undefined where nobody knows it. An invalid answer is reported. */
export function costOf(
  { price, report }: Pick<Host, 'price' | 'report'>,
  call: PricedCall,
): number | undefined {
  if (!price) return undefined;
  try {
    const cost: unknown = price(call);
    if (typeof cost === 'number' && Number.isFinite(cost) && cost >= 0) return cost;
    throw new ConfigurationError(
      'INVALID_PRICE',
      `Expected \`price\` to return a number of at least 0, got ${shown(cost)}`,
    );
  } catch (error) {
    report(error, `price of a model call of ${call.name}`);
    return undefined;
  }
}

/** Returns the model as `price` gets it. */
export function namesOf(model: LanguageModel): ModelNames {
  if (typeof model === 'string') return { provider: 'gateway', modelId: model };
  const { provider, modelId } = model;
  return { provider, modelId };
}

/** Returns what a call has used, for the account of its conversation. */
export function useOf(
  model: LanguageModel,
  name: string,
  usage: Usage,
  exchanged: Exchanged,
  beganAt: number,
): ModelUse {
  const { totalTokens, cost: _, ...counted } = usage;
  const { cost: __, ...estimated } = countedUsage(usage, exchanged);
  return { ...namesOf(model), name, usage: totalTokens > 0 ? counted : {}, estimated, beganAt };
}
