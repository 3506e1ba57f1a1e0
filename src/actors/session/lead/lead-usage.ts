// The usage of a lead agent's model: an entry of the session for each report, with its cost, and the sums for screens.
//
// LEAD-USAGE-1. Usage is counted once, by its entry, whichever process it was in. Screens and hooks get it when
//     it is in the journal.

import { z } from 'zod';
import { check, type ChecksOf } from '../../../values/checks.ts';
import {
  asUsage,
  leadUsageIn,
  NO_LEAD_USAGE,
  usageOfBoth,
  type LeadUsage,
  type ModelCalls,
  type ModelNames,
  type ModelUse,
  type PricedCall,
  type Usage,
} from '../../contracts/usage.ts';
import type { Receiver } from '../../contracts/session-protocol.ts';
import { costOf } from '../../model/price.ts';
import type { Host } from '../../runtime/host.ts';
import type { Projection } from '../state/projection.ts';
import type { SessionRecords } from '../state/session-records.ts';

type Reported = Readonly<Partial<Record<keyof LeadUsage, unknown>>>;

/** A report of a lead agent's model. */
interface Report extends ModelNames, Pick<PricedCall, 'name'> {
  /** As the provider counted it; anything else than a count is passed over. */
  readonly counted: Reported;
  /** For `price`, where the provider has counted nothing. @defaultValue as it was counted */
  readonly estimated?: Omit<Usage, 'cost'> | undefined;
  /** When a call began that is none of the response under way, in milliseconds since 1970. */
  readonly beganAt?: number;
}

/** Puts what the model has used into the journal. */
export function reportUsage(
  session: Receiver & { readonly host: Pick<Host, 'price' | 'report'> },
  { counted, estimated, beganAt, ...names }: Report,
): void {
  const usage = leadUsageIn(counted);
  const cost =
    usage || estimated ? costOf(session.host, pricedCall(names, usage, estimated)) : undefined;
  const used = leadUsageIn({ ...usage, cost });
  const { provider, modelId, name } = names;
  const event = {
    type: 'usage.reported',
    agentName: name,
    model: { provider, modelId },
  } as const;
  if (beganAt !== undefined)
    session.receive('usage', { ...event, usage: used ?? NO_LEAD_USAGE, beganAt });
  else if (used) session.receive('usage', { ...event, usage: used });
}

const count = z.number().min(0).optional();
const counted = {
  inputTokens: count,
  outputTokens: count,
  cachedInputTokens: count,
  cacheWriteTokens: count,
  reasoningTokens: count,
};
const useSchema = z.strictObject({
  provider: z.string(),
  modelId: z.string(),
  name: z.string().min(1),
  usage: z.strictObject(counted),
  estimated: z
    .strictObject({
      ...counted,
      inputTokens: z.number().min(0),
      outputTokens: z.number().min(0),
      totalTokens: z.number().min(0),
    })
    .optional(),
  beganAt: z.number().min(0),
} satisfies ChecksOf<ModelUse>);

/** Counts the calls that are made for a conversation beside those of its agents (LEAD-USAGE-1). */
export function modelCallsOf(
  session: Receiver & { readonly host: Pick<Host, 'price' | 'report' | 'journal'> },
): ModelCalls {
  return {
    used(use) {
      const { usage, ...rest } = check('used(use)', useSchema, use, 'INVALID_ARGUMENT') as ModelUse;
      reportUsage(session, { ...rest, counted: usage });
    },
    tracesModelCalls: () => session.host.journal.tracesModelCalls?.() ?? false,
  };
}

function pricedCall(
  names: ModelNames & Pick<PricedCall, 'name'>,
  usage: LeadUsage | null,
  estimated: Omit<Usage, 'cost'> | undefined,
): PricedCall {
  if (!usage) return { ...names, usage: estimated ?? asUsage({ inputTokens: 0, outputTokens: 0 }) };
  const { audioInputTokens, audioOutputTokens } = usage;
  return {
    ...names,
    usage: {
      ...(estimated ?? asUsage(usage)),
      ...(audioInputTokens !== undefined && { audioInputTokens }),
      ...(audioOutputTokens !== undefined && { audioOutputTokens }),
    },
  };
}

/** Shows what the conversation has used so far. `used`: by the lead agent's model just now. */
export function showUsage(
  {
    records,
    tree,
    projection,
  }: {
    readonly records: Pick<SessionRecords, 'usage'>;
    readonly tree: { readonly usage: Usage };
    readonly projection: Projection;
  },
  used?: LeadUsage,
): void {
  const usage = usageOfBoth(records.usage, tree.usage);
  projection.emit({ type: 'usage.changed', usage, ...(used && { used }) });
}
