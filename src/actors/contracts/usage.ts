// The usage and the cost of model calls. The app knows the prices; the runtime asks it for the cost of each call and
// stores the cost with the usage.

/** Tokens as the provider counted them; 0 if it reported no count. */
export interface Usage {
  /** The tokens of the prompts. */
  readonly inputTokens: number;
  /** The tokens of the answers. */
  readonly outputTokens: number;
  /** All tokens, as the provider counted them. */
  readonly totalTokens: number;
  /** The input tokens that the provider read from its cache, if reported. */
  readonly cachedInputTokens?: number;
  /** The input tokens that the provider wrote to its cache, if reported. */
  readonly cacheWriteTokens?: number;
  /** The reasoning tokens in the output, if reported. */
  readonly reasoningTokens?: number;
  /**
   * The cost in the app's currency, as the runtime's `price` returned it or as a relay reported it. Absent if the cost
   * is unknown.
   */
  readonly cost?: number;
}

/** Returns the sum of two usages; a count that both lack stays absent. */
export function addUsage(left: Usage, right: Usage): Usage {
  const sum: Record<string, number> = {};
  for (const part of USAGE_PARTS) {
    const [one, other] = [left[part], right[part]];
    if (one !== undefined || other !== undefined) sum[part] = (one ?? 0) + (other ?? 0);
  }
  return { inputTokens: 0, outputTokens: 0, totalTokens: 0, ...sum };
}

/** The kinds of tokens that are counted separately. */
export const TOKEN_KINDS = [
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'reasoningTokens',
] as const satisfies readonly (keyof Usage)[];

const USAGE_PARTS = [...TOKEN_KINDS, 'totalTokens', 'cost'] as const;

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };

/** Returns the usage minus an earlier usage. */
export function usageSince(all: Usage, before: Usage): Usage {
  const since: Record<string, number> = {};
  for (const part of USAGE_PARTS)
    if (all[part] !== undefined) since[part] = Math.max(0, all[part] - (before[part] ?? 0));
  return { ...NO_USAGE, ...since };
}

/**
 * The tokens of the lead agent's model, and of model calls about the conversation (summaries, facts, a claim judge);
 * null if none were reported.
 */
export interface LeadUsage {
  /** The tokens of the prompts; null if the model reported no count. */
  readonly inputTokens: number | null;
  /** The tokens of the answers; null if the model reported no count. */
  readonly outputTokens: number | null;
  /** The input tokens that the provider read from its cache. Like the other partial counts, absent if not reported. */
  readonly cachedInputTokens?: number;
  /** The input tokens that the provider wrote to its cache. */
  readonly cacheWriteTokens?: number;
  /** The reasoning tokens in the output. */
  readonly reasoningTokens?: number;
  /** The audio tokens, which cost more than text tokens. */
  readonly audioInputTokens?: number;
  /** The tokens of spoken answers. @defaultValue absent if the model reported no count */
  readonly audioOutputTokens?: number;
  /** The cost that the runtime's `price` returned, in the app's currency. Absent without `price`. */
  readonly cost?: number;
}

/** A conversation's usage so far, across all its processes and connections. */
export interface UsageView {
  /** The usage of the lead agent's model, in text or voice, and of summaries, facts and claim verdicts. */
  readonly lead: LeadUsage;
  /** The usage of all subagents, including those that are no longer in the state. */
  readonly subagents: Usage;
  /** The total; counts that the lead agent's model does not report are treated as 0. */
  readonly total: Usage;
}

const LEAD_PARTS = [...TOKEN_KINDS, 'audioInputTokens', 'audioOutputTokens', 'cost'] as const;

export const NO_LEAD_USAGE: LeadUsage = { inputTokens: null, outputTokens: null };

/** Returns the known counts as a usage; null if there are none. Other properties are dropped. */
export function leadUsageIn(
  reported: Readonly<Partial<Record<keyof LeadUsage, unknown>>>,
): LeadUsage | null {
  const parts: Record<string, number> = {};
  for (const part of LEAD_PARTS) {
    const { [part]: value } = reported;
    const count = part === 'cost' ? value : tokenCount(value);
    if (typeof count === 'number') parts[part] = count;
  }
  return Object.keys(parts).length === 0 ? null : { ...NO_LEAD_USAGE, ...parts };
}

/** Returns the sum of two usages; a count that both lack stays null. */
export function addLeadUsage(left: LeadUsage, right: LeadUsage): LeadUsage {
  const sum: Record<string, number> = {};
  for (const part of LEAD_PARTS) {
    const [one, other] = [left[part] ?? null, right[part] ?? null];
    if (one !== null || other !== null) sum[part] = (one ?? 0) + (other ?? 0);
  }
  return { ...NO_LEAD_USAGE, ...sum };
}

/** Returns a lead agent's usage in the form of a model's usage: unknown counts become 0. */
export function asUsage(usage: LeadUsage): Usage {
  const { audioInputTokens: _, audioOutputTokens: __, ...parts } = usage;
  const [inputTokens, outputTokens] = [parts.inputTokens ?? 0, parts.outputTokens ?? 0];
  return { ...parts, inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}

/** Returns a conversation's total usage from its parts. */
export function usageOfBoth(lead: LeadUsage, subagents: Usage): UsageView {
  return { lead, subagents, total: addUsage(asUsage(lead), subagents) };
}

/** The fields of a subagent's view from which the usage is calculated. */
export interface UsageOf {
  /** The id of the subagent. */
  readonly id: string;
  /** The id of its parent; null if it has none. */
  readonly parentId: string | null;
  /** Its own tokens, without those of its children. */
  readonly usage: Usage;
}

/**
 * Returns the usage of a subagent and its whole subtree, from a session's views; a null id selects all subagents.
 */
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

/** The largest token count that is considered valid; no real model call reaches it. */
const MAX_TOKENS = 1_000_000_000;

/** Returns a provider's token count, rounded; undefined if it is invalid. */
export function tokenCount(count: unknown): number | undefined {
  const isCount = typeof count === 'number' && count >= 0 && count <= MAX_TOKENS;
  return isCount ? Math.round(count) : undefined;
}

/** The names of a model and its provider. */
export interface ModelNames {
  /**
   * The model's provider, as the AI SDK names it. `gateway` for a model that is given as a string; `unknown` for a
   * model that is only configured on a remote worker. For a voice model, the name of its transport.
   */
  readonly provider: string;
  /** The id that the provider uses for the model; for `unknown`, the name of the configuration. */
  readonly modelId: string;
}

/** A model call that a provider has processed, as `price` receives it. */
export interface PricedCall extends ModelNames {
  /**
   * The usage as the provider counted it; estimated from the length of the texts if it reported none. For a voice
   * model: the usage since its last report, with its audio parts.
   */
  readonly usage: Omit<Usage, 'cost'> & Pick<LeadUsage, 'audioInputTokens' | 'audioOutputTokens'>;
  /** The name of the subagent's configuration, or of the lead agent; `summary`, `facts` or `claim_judge`. */
  readonly name: string;
}

/**
 * Returns a model call's cost, in a currency of the app's choice: a number of at least 0. Called once for each
 * processed call of a subagent, a lead agent or `ModelCalls`, but not for relays' calls. The journal stores the cost,
 * so that a later price does not change an earlier cost.
 */
export type Price = (call: PricedCall) => number;

/** A model call that is made for the conversation and not by an agent: a summary, facts, or a verdict on claims. */
export interface ModelUse extends ModelNames, Pick<PricedCall, 'name'> {
  /** The usage as the provider counted it; empty if it reported none. */
  readonly usage: Partial<Omit<Usage, 'totalTokens' | 'cost'>>;
  /** The estimated usage for `price`, if the provider reported none. @defaultValue none */
  readonly estimated?: Omit<Usage, 'cost'>;
  /** When the call started, in milliseconds since 1970. */
  readonly beganAt: number;
}

/** Records the model calls that are made on a conversation's behalf. */
export interface ModelCalls {
  /**
   * Adds a call's usage and cost to the state's `usage.lead`. Must be called once for each call that a provider has
   * processed.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`
   */
  used(use: ModelUse): void;
  /** Returns whether the conversation's trace contains a span for each of the recorded calls. */
  tracesModelCalls(): boolean;
}
