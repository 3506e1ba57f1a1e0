// Estimates a model call's usage if the provider did not count its tokens, and computes every call's cost. The app's
// `price` is called in the same way for all models of the runtime.

import type { LanguageModel, ModelMessage } from 'ai';
import { ConfigurationError } from '../../values/errors.ts';
import { shown } from '../../values/plain-checks.ts';
import type { ModelNames, ModelUse, PricedCall, Usage } from '../contracts/usage.ts';
import type { Host } from '../runtime/host.ts';

const CHARACTERS_PER_TOKEN = 4;
/** The estimated number of tokens in an image or a file, regardless of its size. */
const TOKENS_PER_FILE = 1_000;

/** The texts that a model has received and written. */
export interface Exchanged {
  readonly instructions: string;
  readonly messages: readonly ModelMessage[];
  readonly written: string;
}

/** Returns the usage of an answer, estimated from the length of the texts if the provider reported no counts. */
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

/** Returns a call's cost; undefined if the app has no `price`, or if `price` fails (which is reported). */
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

/** Returns the provider and the id of a model, as `price` receives them. */
export function namesOf(model: LanguageModel): ModelNames {
  if (typeof model === 'string') return { provider: 'gateway', modelId: model };
  const { provider, modelId } = model;
  return { provider, modelId };
}

/** Returns a call's usage as its conversation's account records it. */
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
