// The usage and the cost of model calls. The app has the prices; the runtime asks for each call, and keeps the answer with it.

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

/** The tokens that are counted each. */
export const TOKEN_KINDS = [
  'inputTokens',
  'outputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'reasoningTokens',
] as const satisfies readonly (keyof Usage)[];

const USAGE_PARTS = [...TOKEN_KINDS, 'totalTokens', 'cost'] as const;

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, totalTokens: 0 };

/** The part of a usage that came after another one. */
export function usageSince(all: Usage, before: Usage): Usage {
  const since: Record<string, number> = {};
  for (const part of USAGE_PARTS)
    if (all[part] !== undefined) since[part] = Math.max(0, all[part] - (before[part] ?? 0));
  return { ...NO_USAGE, ...since };
}

/**
 * Tokens of the lead agent's model, and of the calls that are made for the conversation beside it (summaries, facts, a judge of
 * claims); null if nobody has reported them.
 */
export interface LeadUsage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  /** The part of the input that the provider read from its cache. Absent: it has not reported that, as of the others. */
  readonly cachedInputTokens?: number;
  /** The part of the input that the provider wrote to its cache. */
  readonly cacheWriteTokens?: number;
  /** The reasoning part of the output. */
  readonly reasoningTokens?: number;
  /** The parts that are sound, which costs more than text. */
  readonly audioInputTokens?: number;
  readonly audioOutputTokens?: number;
  /** The sum that `price` of the runtime returned, in the currency of the app. Absent: there is no `price`. */
  readonly cost?: number;
}

/** The usage of a conversation so far, over all its processes and connections. */
export interface UsageView {
  /** Of the lead agent's model, in text or voice, and of summaries, facts and verdicts on claims. */
  readonly lead: LeadUsage;
  /** Of all subagents, also of those that are no longer in the state. */
  readonly subagents: Usage;
  /** Both together; what the lead agent's wire does not report counts as 0. */
  readonly total: Usage;
}

const LEAD_PARTS = [...TOKEN_KINDS, 'audioInputTokens', 'audioOutputTokens', 'cost'] as const;

export const NO_LEAD_USAGE: LeadUsage = { inputTokens: null, outputTokens: null };

/** Returns the usage in these numbers; null: they have none. Nothing else of them is kept. */
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

/** The sum of two; a count that neither has stays unknown. */
export function addLeadUsage(left: LeadUsage, right: LeadUsage): LeadUsage {
  const sum: Record<string, number> = {};
  for (const part of LEAD_PARTS) {
    const [one, other] = [left[part] ?? null, right[part] ?? null];
    if (one !== null || other !== null) sum[part] = (one ?? 0) + (other ?? 0);
  }
  return { ...NO_LEAD_USAGE, ...sum };
}

/** The usage of a lead agent as that of a model: what is not known counts as 0. */
export function asUsage(usage: LeadUsage): Usage {
  const { audioInputTokens: _, audioOutputTokens: __, ...parts } = usage;
  const [inputTokens, outputTokens] = [parts.inputTokens ?? 0, parts.outputTokens ?? 0];
  return { ...parts, inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}

/** The usage of a conversation whose parts are these. */
export function usageOfBoth(lead: LeadUsage, subagents: Usage): UsageView {
  return { lead, subagents, total: addUsage(asUsage(lead), subagents) };
}

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

/** A model, by its names. */
export interface ModelNames {
  /**
   * The provider of the model, as the AI SDK names it; `gateway` for a model that is named by a string, `unknown` for
   * one that only a worker elsewhere has. For a voice model the name of its transport.
   */
  readonly provider: string;
  /** The model as its provider names it; for `unknown`, the name of the configuration. */
  readonly modelId: string;
}

/** A model call that a provider has read. */
export interface PricedCall extends ModelNames {
  /**
   * As the provider counted it; estimated from the length of the texts if it counted nothing. Of a voice model: since
   * its last report, with the parts that are sound.
   */
  readonly usage: Omit<Usage, 'cost'> & Pick<LeadUsage, 'audioInputTokens' | 'audioOutputTokens'>;
  /** The name of the subagent's configuration, or of the lead agent; `summary`, `facts` or `claim_judge`. */
  readonly name: string;
}

/**
 * Returns what a model call costs, in a currency of the app's choice: a number that is not negative. Called once for each
 * call of a subagent, a lead agent or `ModelCalls` that a provider has read, not for those of relays; the journal keeps the answer, so
 * that a later price changes no earlier cost.
 */
export type Price = (call: PricedCall) => number;

/** A model call beside those of agents: a summary, facts, a verdict on claims. */
export interface ModelUse extends ModelNames, Pick<PricedCall, 'name'> {
  /** As the provider counted it; empty if it counted nothing. */
  readonly usage: Partial<Omit<Usage, 'totalTokens' | 'cost'>>;
  /** For `price`, where the provider counted nothing. @defaultValue none */
  readonly estimated?: Omit<Usage, 'cost'>;
  /** When it began, in milliseconds since 1970. */
  readonly beganAt: number;
}

/** The account of the conversation that a model call is made for. */
export interface ModelCalls {
  /**
   * Counts what a call has used, in `usage.lead` of the state, with its cost. Call it once for each call that a provider has read.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`
   */
  used(use: ModelUse): void;
  /** Whether the trace of the conversation has a span of each call that is counted. */
  tracesModelCalls(): boolean;
}
