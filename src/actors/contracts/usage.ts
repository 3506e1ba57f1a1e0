// The usage and the cost of model calls. The app knows the prices; the runtime asks for the cost of each call, and stores it
// with the usage.

/** Tokens as the provider counted them; 0 if it gave no count. */
export interface Usage {
  /** The tokens of the prompts. */
  readonly inputTokens: number;
  /** The tokens of the answers. */
  readonly outputTokens: number;
  /** All tokens, as the provider counted them. */
  readonly totalTokens: number;
  /** The part of the input that the provider read from its cache, if it reports that. */
  readonly cachedInputTokens?: number;
  /** The part of the input that the provider wrote to its cache, if it reports that. */
  readonly cacheWriteTokens?: number;
  /** The reasoning part of the output, if the provider reports it. */
  readonly reasoningTokens?: number;
  /**
   * The cost in the currency of the app: as `price` of the runtime returned it, or as a relay reported it. Absent if neither
   * did.
   */
  readonly cost?: number;
}

/** Returns the sum of two usages; a part that neither has is absent. */
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

/** Returns the usage beyond an earlier one. */
export function usageSince(all: Usage, before: Usage): Usage {
  const since: Record<string, number> = {};
  for (const part of USAGE_PARTS)
    if (all[part] !== undefined) since[part] = Math.max(0, all[part] - (before[part] ?? 0));
  return { ...NO_USAGE, ...since };
}

/**
 * Tokens of the lead agent's model, and of model calls for the conversation (summaries, facts, a judge of claims); null if none
 * were reported.
 */
export interface LeadUsage {
  /** The tokens of the prompts; null: the model gave no count. */
  readonly inputTokens: number | null;
  /** The tokens of the answers; null: the model gave no count. */
  readonly outputTokens: number | null;
  /** The part of the input that the provider read from its cache. Absent, like the other parts: not reported. */
  readonly cachedInputTokens?: number;
  /** The part of the input that the provider wrote to its cache. */
  readonly cacheWriteTokens?: number;
  /** The reasoning part of the output. */
  readonly reasoningTokens?: number;
  /** The audio parts, which cost more than text. */
  readonly audioInputTokens?: number;
  /** The tokens of spoken answers. @defaultValue absent if the model gave no count */
  readonly audioOutputTokens?: number;
  /** The cost that `price` of the runtime returned, in the currency of the app. Absent: there is no `price`. */
  readonly cost?: number;
}

/** The usage of a conversation so far, over all its processes and connections. */
export interface UsageView {
  /** The usage of the lead agent's model, in text or voice, and of summaries, facts and verdicts on claims. */
  readonly lead: LeadUsage;
  /** The usage of all subagents, including those that are no longer in the state. */
  readonly subagents: Usage;
  /** The total; parts that the lead agent's wire does not report count as 0. */
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

/** Returns the sum of two usages; a count that neither has stays null. */
export function addLeadUsage(left: LeadUsage, right: LeadUsage): LeadUsage {
  const sum: Record<string, number> = {};
  for (const part of LEAD_PARTS) {
    const [one, other] = [left[part] ?? null, right[part] ?? null];
    if (one !== null || other !== null) sum[part] = (one ?? 0) + (other ?? 0);
  }
  return { ...NO_LEAD_USAGE, ...sum };
}

/** Returns the usage of a lead agent as that of a model: unknown counts become 0. */
export function asUsage(usage: LeadUsage): Usage {
  const { audioInputTokens: _, audioOutputTokens: __, ...parts } = usage;
  const [inputTokens, outputTokens] = [parts.inputTokens ?? 0, parts.outputTokens ?? 0];
  return { ...parts, inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}

/** Returns the usage of a conversation with these parts. */
export function usageOfBoth(lead: LeadUsage, subagents: Usage): UsageView {
  return { lead, subagents, total: addUsage(asUsage(lead), subagents) };
}

/** The part of a subagent's view that its usage needs. */
export interface UsageOf {
  /** The id of the subagent. */
  readonly id: string;
  /** The id of its parent; null: it has none. */
  readonly parentId: string | null;
  /** Its own tokens, without those of its children. */
  readonly usage: Usage;
}

/** Returns the usage of a subagent and all below it, from the views of a session; with null, of all subagents. */
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

/** The limit of a valid token count, which no model call reaches. */
const MAX_TOKENS = 1_000_000_000;

/** Returns a provider's token count, rounded; undefined if it is invalid. */
export function tokenCount(count: unknown): number | undefined {
  const isCount = typeof count === 'number' && count >= 0 && count <= MAX_TOKENS;
  return isCount ? Math.round(count) : undefined;
}

/** The names of a model. */
export interface ModelNames {
  /**
   * The provider of the model, as the AI SDK names it; `gateway` for a model that a string names, `unknown` for one that only a
   * worker elsewhere has. For a voice model, the name of its transport.
   */
  readonly provider: string;
  /** The model's id at its provider; for `unknown`, the name of the configuration. */
  readonly modelId: string;
}

/** A model call that a provider has processed. */
export interface PricedCall extends ModelNames {
  /**
   * The usage, as the provider counted it; estimated from the length of the texts if it counted nothing. For a voice model: the
   * usage since its last report, with its audio parts.
   */
  readonly usage: Omit<Usage, 'cost'> & Pick<LeadUsage, 'audioInputTokens' | 'audioOutputTokens'>;
  /** The name of the subagent's configuration, or of the lead agent; `summary`, `facts` or `claim_judge`. */
  readonly name: string;
}

/**
 * Returns the cost of a model call, in a currency of the app's choice: a number of at least 0. Called once for each processed
 * call of a subagent, a lead agent or `ModelCalls`, but not for those of relays; the journal stores the cost, so that a later
 * price changes no earlier cost.
 */
export type Price = (call: PricedCall) => number;

/** A model call that no agent makes: a summary, facts, a verdict on claims. */
export interface ModelUse extends ModelNames, Pick<PricedCall, 'name'> {
  /** The usage, as the provider counted it; empty if it counted nothing. */
  readonly usage: Partial<Omit<Usage, 'totalTokens' | 'cost'>>;
  /** The estimated usage for `price`, if the provider counted nothing. @defaultValue none */
  readonly estimated?: Omit<Usage, 'cost'>;
  /** When the call began, in milliseconds since 1970. */
  readonly beganAt: number;
}

/** The account of a conversation, for model calls made on its behalf. */
export interface ModelCalls {
  /**
   * Counts the use of a call, with its cost, in `usage.lead` of the state. Call it once for each call that a provider has
   * processed.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`
   */
  used(use: ModelUse): void;
  /** Returns whether the trace of the conversation has a span of each counted call. */
  tracesModelCalls(): boolean;
}
