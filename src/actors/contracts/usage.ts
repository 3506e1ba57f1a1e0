// What model calls use and cost. The app has the prices; the runtime asks for each call, and keeps the answer with it.

/** Tokens as the provider counted them; 0 if it gave no count. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  /** The part of the input that the provider read from its cache, if it reports that. */
  readonly cachedInputTokens?: number;
  /** The part of the input that the provider wrote to its cache, if it reports that. */
  readonly cacheWriteTokens?: number;
  /** The reasoning part of the output, if the provider reports it. */
  readonly reasoningTokens?: number;
  /**
   * In the currency of the app: what `price` of the runtime returned, or what a relay reported. Absent if neither
   * did.
   */
  readonly cost?: number;
}

/** The sum of two usages; a part that neither has is absent. */
export function addUsage(left: Usage, right: Usage): Usage {
  const sum: Record<string, number> = {};
  for (const part of USAGE_PARTS) {
    const [one, other] = [left[part], right[part]];
    if (one !== undefined || other !== undefined) sum[part] = (one ?? 0) + (other ?? 0);
  }
  return { inputTokens: 0, outputTokens: 0, totalTokens: 0, ...sum };
}

const USAGE_PARTS = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'reasoningTokens',
  'cost',
] as const satisfies readonly (keyof Usage)[];

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };

/** A view of a subagent, as far as its usage is concerned. */
export interface UsageOf {
  readonly id: string;
  readonly parentId: string | null;
  readonly usage: Usage;
}

/** The sum of a subagent and all below it, out of the views of a session; null: of all of them. */
export function usageBelow(subagents: readonly UsageOf[], id: string | null): Usage {
  const below = Map.groupBy(subagents, ({ parentId }) => parentId);
  const sum = (of: UsageOf): Usage =>
    (below.get(of.id) ?? []).reduce((total, child) => addUsage(total, sum(child)), of.usage);
  const ids = new Set(subagents.map((one) => one.id));
  const roots = subagents.filter((one) =>
    id === null ? one.parentId === null || !ids.has(one.parentId) : one.id === id,
  );
  return roots.reduce((total, root) => addUsage(total, sum(root)), NO_USAGE);
}

/** No model call has more: a greater number is not a token count. */
const MAX_TOKENS = 1_000_000_000;

/** Returns a token count of a provider; undefined if it is not a valid one. */
export function tokenCount(count: unknown): number | undefined {
  const isCount = typeof count === 'number' && count >= 0 && count <= MAX_TOKENS;
  return isCount ? Math.round(count) : undefined;
}

/** A model call that a provider has read. */
export interface PricedCall {
  /**
   * The provider of the model, as the AI SDK names it; `gateway` for a model that is named by a string, `unknown` for
   * one that only a worker elsewhere has.
   */
  readonly provider: string;
  /** The model as its provider names it; for `unknown`, the name of the configuration. */
  readonly modelId: string;
  /** As the provider counted it; estimated from the length of the texts if it counted nothing. */
  readonly usage: Omit<Usage, 'cost'>;
  /** The name of the subagent's configuration. */
  readonly name: string;
}

/**
 * Returns what a model call costs, in a currency of the app's choice: a number that is not negative. Called once for each
 * call that a provider has read, not for those of relays; the journal keeps the answer, so that a later price changes no earlier cost.
 */
export type Price = (call: PricedCall) => number;
